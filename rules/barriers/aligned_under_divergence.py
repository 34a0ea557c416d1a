"""Aligned barriers that part of a warp reaches."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class AlignedUnderDivergence(Rule):
    """An aligned barrier is run by only some lanes of a warp.

    Why: `bar.sync` and every `.aligned` form require that all threads of the warp run the same instruction together. In
        a branch that some lanes take, or in two places for one warp, it is undefined.
    Fix: hoist the barrier out of the branch, or use `barrier.sync` without `.aligned`.
    Not reported: branches that whole warps take; forms without `.aligned`.
    """

    code = "PTX705"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: bar, barrier", since="6.0")

    good = (
        """
mov.u32 %r1, %laneid;
setp.lt.u32 %p1, %r1, 16;
@%p1 bra LOW;
barrier.sync 1, 32;
bra DONE;
LOW:
barrier.sync 1, 32;
DONE:
""",
    )
    bad = (
        """
mov.u32 %r1, %laneid;
setp.lt.u32 %p1, %r1, 16;
@%p1 bra LOW;
bar.sync 1, 32;
bra DONE;
LOW:
bar.sync 1, 32;  // expect: aligned-under-divergence
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report aligned barriers under which a warp is divided."""
        for story in facts.stories(Fault.DIVERGENT):
            yield story.finding(
                f"aligned {story.barrier} is run by {story.number('lanes')} of the {story.number('live')} threads of a "
                "warp, without the others",
                "hoist it out of the branch, or use barrier.sync without .aligned",
            )
