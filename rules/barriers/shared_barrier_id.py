"""One named barrier for two groups of threads."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class SharedBarrierId(Rule):
    """Two groups of threads use one named barrier at the same time, so that they may be counted together.

    Why: a barrier counts threads, whoever they are. A use that one group began may be completed by warps of another;
        then each group goes on without some of its own. Two hand-offs of one pair of groups on one number are no
        better: a group that arrives for the one and waits for the other is counted twice (a warning: the ISA leaves it
        undefined, flashinfer's epilogues do it).
    Fix: give each group, and each of two barriers that may be open at once, an id of its own (0 to 15).
    Not reported: groups that take turns, where in every schedule the same warps meet in each use.
    """

    code = "PTX704"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: bar, barrier", since="1.0")

    good = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 128
{
.reg .pred %p<4>;
.reg .b32 %r<4>;
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 64;
@%p1 bra SECOND;
bar.sync 1, 64;
bra DONE;
SECOND:
bar.sync 2, 64;
DONE:
ret;
}
""",
    )
    bad = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 128
{
.reg .pred %p<4>;
.reg .b32 %r<4>;
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 5;
and.b32 %r3, %r2, 1;
setp.eq.u32 %p1, %r3, 0;
setp.ge.u32 %p2, %r1, 64;
@%p2 bra SECOND;
@%p1 bar.sync 3, 64;
bar.sync 1, 64;
bra DONE;
SECOND:
@%p1 bar.sync 3, 64;
bar.sync 1, 64;  // expect: shared-barrier-id
DONE:
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the barriers whose uses gather other warps in other schedules."""
        for story in facts.stories(Fault.SHARED_BARRIER):
            is_twice = story.number("users") <= story.number("count")
            users = f"is used by {story.counted('users', 'thread')} in groups of {story.number('count')}"
            if is_twice:
                users = "counts a warp twice that arrives there and then waits there"
            yield story.finding(
                f"{story.barrier} {users}: which of them meet depends on who comes first",
                "give each group of threads a barrier id of its own",
                is_contested=is_twice,
            )
