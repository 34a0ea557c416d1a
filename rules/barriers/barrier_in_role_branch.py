"""Barriers of the whole CTA inside one role."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class BarrierInRoleBranch(Rule):
    """A barrier of the whole CTA stands in a branch that only some of its threads take.

    Why: `__syncthreads()` waits for all threads of the CTA that have not exited. Inside the branch of one role the
        others never come to it, or come to another one, and pair up with the wrong place.
    Fix: use a named barrier with the number of threads of the role.
    Not reported: barriers in each of the branches that pair up; roles whose other threads exit.
    """

    code = "PTX702"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: bar, barrier", since="1.0")

    good = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 64
{
.reg .pred %p<4>;
.reg .b32 %r<2>;
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 32;
READY:
bar.sync 0;
setp.lt.u32 %p3, %r1, 32;
@%p3 bra WAIT;
bar.sync 1, 32;
mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
ret;
}
""",
    )
    bad = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 64
{
.reg .pred %p<4>;
.reg .b32 %r<2>;
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 32;
READY:
bar.sync 0;
setp.lt.u32 %p3, %r1, 32;
@%p3 bra WAIT;
bar.sync 0;  // expect: barrier-in-role-branch
mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report barriers without which the kernel would run."""
        for story in facts.stories(Fault.ROLE_BARRIER):
            yield story.finding(
                f"{story.subject('wait')} at {story.barrier} for the whole CTA, in a branch that the other threads do "
                f"not take: {story.number('arrived')} threads ever arrive",
                "use a named barrier with the count of this role",
            )
