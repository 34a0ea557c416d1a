"""Commits that nobody waits for."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.analyses.allocations import unwaited_commits
from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class CommitWithoutWaiter(Rule):
    """A `tcgen05.commit` arrives at an mbarrier that nobody ever waits on.

    Why: the commit is there to tell others that the operations before it are done. Where nobody waits, they are used
        or freed too early, or the commit was meant for another barrier.
    Fix: wait at that mbarrier, or commit to the one that is waited on.
    Not reported: barriers that are waited on elsewhere in the kernel, also in another CTA, and kernels with waits
        that the run does not reach.
    """

    code = "PTX603"
    severity = Severity.WARNING
    isa = IsaRef("TensorCore 5th Generation Instructions: tcgen05.commit", since="8.6")

    good = (
        """
.shared .align 8 .b64 done;
.shared .align 8 .b64 other;
.shared .align 4 .b32 slot;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [other], 1;
bar.sync 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [done], 0;
@!%p1 bra WAIT;
""",
    )
    bad = (
        """
.shared .align 8 .b64 done;
.shared .align 8 .b64 other;
.shared .align 4 .b32 slot;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [other], 1;
bar.sync 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [other];  // expect: commit-without-waiter
bar.sync 0;
mov.u32 %r1, 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the barriers of commits with those of waits."""
        execution = facts.execution
        is_stuck = any(defect.fault is Fault.NO_ARRIVAL for defect in execution.defects)
        if not is_stuck and any("mbarrier" in isa.roles(execution.body[point]) for point in execution.uncovered):
            return
        for event in unwaited_commits(execution):
            yield Finding(
                execution.body[event.point].span,
                "this tcgen05.commit arrives at an mbarrier that nobody waits on",
                "wait at that mbarrier, or commit to the one that is waited on",
            )
