"""Waits that begin with the wrong parity."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class WrongInitialParity(Rule):
    """The waits on an mbarrier alternate as they should, but begin with the wrong parity.

    Why: on a fresh mbarrier a wait for parity 0 blocks until phase 0 completes, and a wait for parity 1 returns at
        once. A consumer of data has to begin with 0. A producer that waits for empty slots has to begin with 1, since
        nobody has released them yet.
    Fix: begin with the other parity.
    Not reported: parity 1 first on a barrier that starts out free.
    """

    code = "PTX103"
    severity = Severity.ERROR
    isa = IsaRef(
        "Parallel Synchronization and Communication Instructions: mbarrier.test_wait/mbarrier.try_wait", since="7.1"
    )

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
mov.u32 %r3, 1;
LOOP:
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r3;  // expect: wrong-initial-parity
@!%p2 bra WAIT;
xor.b32 %r3, %r3, 1;
bar.sync 0;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report waits that are mended by asking for the other parity throughout."""
        for story in facts.stories(Fault.PARITY_INITIAL):
            parity = story.number("parity")
            effect = "returns at once, before any phase has completed" if parity else "blocks until phase 0 completes"
            yield story.finding(
                f"first wait of {story.agent} on {story.barrier} asks for parity {parity}: on a fresh mbarrier it "
                f"{effect}",
                f"begin with parity {1 - parity}",
            )
