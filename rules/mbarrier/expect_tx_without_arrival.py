"""Transactions in a phase that nobody arrives in."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ExpectTxWithoutArrival(Rule):
    """A phase of an mbarrier has bytes to expect and copies that bring them, but no arrival.

    Why: `mbarrier.expect_tx` raises the transaction count alone. The arrivals that `mbarrier.init` asks for are still
        pending, so the phase never completes.
    Fix: use `mbarrier.arrive.expect_tx`, which does both, or add an arrive.
    Not reported: phases in which another thread arrives.
    """

    code = "PTX111"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.expect_tx", since="8.0")

    good = (
        """
.shared .align 8 .b64 full;
.shared .align 16 .b8 tile[512];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r3;
@!%p2 bra WAIT;
xor.b32 %r3, %r3, 1;
bar.sync 0;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
""",
    )
    bad = (
        """
.shared .align 8 .b64 full;
.shared .align 16 .b8 tile[512];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
@%p1 bra WAIT;
mbarrier.expect_tx.relaxed.cta.shared.b64 [full], 512;  // expect: expect-tx-without-arrival
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r3;
@!%p2 bra WAIT;
xor.b32 %r3, %r3, 1;
bar.sync 0;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report phases with transactions and no arrival."""
        for story in facts.stories(Fault.EXPECT_WITHOUT_ARRIVAL):
            yield story.finding(
                f"{story.subject('raise')} the expected bytes of {story.barrier} without arriving, and nobody else "
                f"arrives: phase {story.number('phase')} still waits for {story.counted('expected', 'arrival')}",
                "use mbarrier.arrive.expect_tx",
            )
