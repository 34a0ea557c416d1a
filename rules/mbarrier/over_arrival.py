"""More arrivals than a phase has left."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class OverArrival(Rule):
    """More threads arrive in a phase of an mbarrier than it was initialized for.

    Why: the phase completes at the count of `mbarrier.init`, before the others have arrived; what is left over counts
        in the next phase (measured on an H200). Waiting threads go on too early and the phases drift apart.
    Fix: initialize with the number of threads that arrive, or let one elected thread arrive for all.
    Not reported: arrivals for a later phase that the arriving thread has waited for.
    """

    code = "PTX109"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.arrive", since="7.0")

    good = (
        """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ntid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], %r2;
READY:
bar.sync 0;
mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
""",
    )
    bad = (
        """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
mbarrier.arrive.shared.b64 _, [full];  // expect: over-arrival
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report arrivals in excess of the count."""
        for story in facts.stories(Fault.OVER_ARRIVAL):
            total = story.number("arrivals")
            yield story.finding(
                f"{story.subject('arrive')} at {story.barrier} with {story.counted('arrived', 'arrival')} where phase "
                f"{story.number('phase')} has {story.number('left')} of {story.number('expected')} left",
                f"initialize with {total}, or arrive once per phase" if total else "arrive once per phase and count",
            )
