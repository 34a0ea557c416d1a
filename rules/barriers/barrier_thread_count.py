"""CTA barriers whose thread count is not what arrives."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class BarrierThreadCount(Rule):
    """A CTA barrier is used with a thread count that does not fit the threads that come to it.

    Why: a barrier with a count completes when that many threads have arrived, those of `bar.arrive` and `bar.sync`
        together. With too large a count the threads wait for ever; with too small a one they go on without the others;
        users that name different counts for one use are undefined.
    Fix: state in every place the number of threads that arrive or wait in one use of the barrier.
    Not reported: a `bar.arrive` whose count exceeds its own threads because others wait at the same barrier.
    """

    code = "PTX701"
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
@%p1 bra DONE;
bar.sync 1, 64;
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
setp.ge.u32 %p1, %r1, 64;
@%p1 bra DONE;
bar.sync 1, 96;  // expect: barrier-thread-count
DONE:
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report barriers whose uses differ in their count, and those that are never full."""
        for story in facts.stories(Fault.BARRIER_COUNT):
            is_overrun = story.incident.agent is None
            other = f"{story.number('other')} arrive in one use" if is_overrun else f"{story.number('other')} elsewhere"
            yield story.finding(
                f"{story.barrier} used for {story.counted('count', 'thread')} here, but {other}",
                "give every place that meets here the same count: all threads that arrive or wait",
            )
        for story in facts.stories(Fault.STUCK_BARRIER):
            yield story.finding(
                f"{story.subject('wait')} at {story.barrier} for {story.counted('count', 'thread')}, and only "
                f"{story.number('arrived')} ever arrive",
                "count the threads that come here, and let all of them come equally often",
            )
