"""Arrivals at a barrier that is not reset yet."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ArriveRunAhead(Rule):
    """A warp arrives again at a CTA barrier before its last use is complete.

    Why: `bar.arrive` does not wait. A warp that comes back to the same number before the others have come counts twice
        in one use: the barrier completes without them, and later uses drift apart.
    Fix: let the arriver wait for the other side before it arrives again: a second barrier for the way back, or
        `bar.sync` on both sides; two numbers in turn need the way back as well.
    Not reported: an arrive followed by a sync of the same warp on the same number (an initial credit).
    """

    code = "PTX703"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: bar, barrier", since="2.0")

    good = (
        """
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
setp.ge.u32 %p4, %r1, 64;
@%p4 bra DONE;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra OTHER;
FIRST:
bar.sync 1, 64;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p2, %r2, 4;
@%p2 bra FIRST;
bra DONE;
OTHER:
bar.sync 1, 64;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra OTHER;
DONE:
""",
    )
    bad = (
        """
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
setp.ge.u32 %p4, %r1, 64;
@%p4 bra DONE;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra OTHER;
FIRST:
bar.arrive 1, 64;  // expect: arrive-run-ahead
add.u32 %r2, %r2, 1;
setp.lt.u32 %p2, %r2, 4;
@%p2 bra FIRST;
bra DONE;
OTHER:
bar.sync 1, 64;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra OTHER;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report arrivals of a warp that has arrived in the same use."""
        for story in facts.stories(Fault.RUN_AHEAD):
            yield story.finding(
                f"warp {story.number('warp')} arrives at {story.barrier} again ({story.visit} arrival here) before the "
                "use in which it has arrived is complete",
                "wait for the other side before arriving again",
            )
