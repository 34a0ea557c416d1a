"""mbarriers initialized while they are live."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class BarrierReinit(Rule):
    """An mbarrier is initialized again while it is live.

    Why: `mbarrier.init` on memory that holds an mbarrier is undefined. In practice the phase jumps back to 0 while
        waiting threads keep their parity, and arrivals under way count for the wrong phase.
    Fix: initialize once before the loop and carry the parity on; to reuse the memory, call `mbarrier.inval` once all
        are through, then a barrier.
    Not reported: initialization after `mbarrier.inval`.
    """

    code = "PTX105"
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
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
mov.u32 %r2, 0;
LOOP:
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;  // expect: barrier-reinit
READY:
bar.sync 0;
@%p1 bra WAIT;
mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
bar.sync 0;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report initializations of live objects."""
        for story in facts.stories(Fault.REINIT):
            yield story.finding(
                f"{story.barrier} initialized by {story.agent} for the {story.visit} time, without mbarrier.inval, "
                f"after {story.counted('phase', 'phase')}",
                "initialize once, before the loop, or invalidate first",
            )
