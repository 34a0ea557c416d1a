"""Cluster barriers whose arrive and wait do not pair up."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UnpairedClusterBarrier(Rule):
    """`barrier.cluster.arrive` and `barrier.cluster.wait` do not pair up in each thread of the cluster.

    Why: every thread of the cluster arrives once for each use of its barrier and waits before it arrives again. An
        arrive too many is undefined, a wait without arrive too; threads that skip either leave the others waiting.
    Fix: one arrive and one wait in every thread of every CTA, outside of branches.
    Not reported: work between arrive and wait; threads that have exited.
    """

    code = "PTX706"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: barrier.cluster", since="7.8")

    good = (
        """
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
""",
    )
    bad = (
        """
barrier.cluster.arrive.aligned;
barrier.cluster.arrive.aligned;  // expect: unpaired-cluster-barrier
barrier.cluster.wait.aligned;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report arrivals too many, waits without arrival, and threads that the others do not join."""
        for story in facts.stories(Fault.CLUSTER_TWICE):
            yield story.finding(
                f"{story.subject('arrive')} at the cluster barrier again without having waited for the use before",
                "add the barrier.cluster.wait that belongs to the first arrive",
            )
        for story in facts.stories(Fault.CLUSTER_UNWAITED):
            yield story.finding(
                f"{story.subject('arrive')} at the cluster barrier here, and no thread of the cluster ever waits at it",
                "wait with barrier.cluster.wait before relying on what the other CTAs did",
            )
        for story in facts.stories(Fault.CLUSTER_UNARRIVED):
            yield story.finding(
                f"{story.subject('wait')} at the cluster barrier without having arrived",
                "arrive before waiting, in the same threads",
            )
        for story in facts.stories(Fault.STUCK_CLUSTER):
            yield story.finding(
                f"{story.subject('wait')} at the cluster barrier, and other threads of the cluster never arrive",
                "let every thread of every CTA that has not exited arrive",
            )
