"""mbarriers used after their invalidation."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class BarrierAfterInval(Rule):
    """An mbarrier is used after `mbarrier.inval`, or nothing orders a warp's last use before it.

    Why: the memory is no mbarrier any more and may hold other data; the operation is undefined. A warp that lags behind
        may still be at its wait when the elected thread goes on to invalidate.
    Fix: invalidate when every thread is through with it: after a barrier that all of them pass.
    Not reported: a new initialization after `mbarrier.inval`.
    """

    code = "PTX114"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.inval", since="7.0")

    good = (
        """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.arrive.shared.b64 _, [full];
READY:
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
bar.sync 0;
@%p1 bra DONE;
mbarrier.inval.shared.b64 [full];
DONE:
""",
    )
    bad = (
        """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.arrive.shared.b64 _, [full];
READY:
bar.sync 0;
@%p1 bra WAIT;
mbarrier.inval.shared.b64 [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;  // expect: barrier-after-inval
@!%p2 bra WAIT;
""",
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 128
{
.reg .pred %p<4>;
.reg .b32 %r<4>;
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@!%p1 mbarrier.init.shared.b64 [full], 1;
bar.sync 0;
@!%p1 mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
@!%p1 mbarrier.inval.shared.b64 [full];  // expect: barrier-after-inval
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report uses of objects that have been invalidated, or may have been."""
        for story in facts.stories(Fault.AFTER_INVAL):
            yield story.finding(
                f"{story.subject('use')} {story.barrier} after its invalidation",
                "invalidate it after a barrier that every user has passed",
            )
        for clash in facts.clashes(Mistake.INVALIDATED):
            yield clash.finding(
                f"{clash.memory} is invalidated by {clash.later} while {clash.first.agent} may still use it "
                f"(`{clash.text(clash.first)}`): nothing orders the one before the other",
                "invalidate it after a barrier that every user has passed",
            )
