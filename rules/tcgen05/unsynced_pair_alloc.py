"""Tensor memory of a pair allocated by one CTA alone."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.analyses.allocations import ALLOC, Kind, unsynchronized
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UnsyncedPairAlloc(Rule):
    """A warp allocates tensor memory for a pair of CTAs before it has met the other CTA.

    Why: `tcgen05.alloc.cta_group::2` is executed by a warp in each CTA of the pair and needs both to be running.
        Until a cluster barrier the other one may not have started.
    Fix: a cluster barrier before the allocation.
    Not reported: warps that have waited at an mbarrier for the other CTA.
    """

    code = "PTX612"
    severity = Severity.WARNING
    isa = IsaRef("TensorCore 5th Generation Instructions: Issue Granularity", since="8.6")

    good = (
        """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry kernel() .reqntid 32 .reqnctapercluster 2
{
.reg .b32 %r<3>;
.shared .align 4 .b32 slot;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
ld.shared.b32 %r2, [slot];
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r2, 32;
ret;
}
""",
    )
    bad = (
        """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry kernel() .reqntid 32 .reqnctapercluster 2
{
.reg .b32 %r<3>;
.shared .align 4 .b32 slot;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32;  // expect: unsynced-pair-alloc
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
ld.shared.b32 %r2, [slot];
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r2, 32;
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look in the run for a meeting before each allocation."""
        execution = facts.execution
        for point in dict.fromkeys(e.point for e in unsynchronized(execution, ALLOC, Kind.INIT)):
            yield Finding(
                execution.body[point].span,
                "tensor memory of a CTA pair is allocated before the warp has met the other CTA, which may not run yet",
                "put a cluster barrier before the allocation",
            )
