"""mbarriers initialized for more arrivals than come."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ArrivalCountMismatch(Rule):
    """An mbarrier is initialized for another number of arrivals than come in each of its phases.

    Why: a phase completes when as many arrivals have come as the count of `mbarrier.init` says. With too large a count
        every wait hangs. Copies count bytes, not arrivals; `cp.async.mbarrier.arrive` without `.noinc` adds none.
    Fix: initialize with the number of arrivals per phase: one for each thread, elected lane or commit that arrives.
    Not reported: counts too small (`over-arrival`, at the arrive).
    """

    code = "PTX108"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.init", since="7.0")

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
mbarrier.init.shared.b64 [full], 2;  // expect: arrival-count-mismatch
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

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report initializations that are mended by another count."""
        for story in facts.stories(Fault.ARRIVALS_MISSING):
            yield story.finding(
                f"{story.barrier} initialized for {story.counted('expected', 'arrival')}, but phase "
                f"{story.number('phase')} gets only {story.number('arrivals')}",
                f"initialize with {story.number('arrivals')}, or let the other threads arrive too",
            )
        for story in facts.stories(Fault.BAD_COUNT):
            yield story.finding(
                f"{story.barrier} initialized for {story.counted('count', 'arrival')}; the count may be 1 to 1048575",
                "initialize with the number of arrivals per phase",
            )
