"""Accesses to another CTA before it is known to run."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class RemoteAccessBeforeClusterSync(Rule):
    """Shared memory or an mbarrier of another CTA is accessed before any barrier of the cluster.

    Why: until the cluster has synchronized once, the other CTA may not have started, and what it initializes may not be
        there: the access is undefined. A barrier of the own CTA says nothing of the other.
    Fix: `barrier.cluster.arrive` and `barrier.cluster.wait` after the initialization, before the first remote access.
    Not reported: accesses through cluster addresses to the own CTA.
    """

    code = "PTX707"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: barrier.cluster", since="7.8")

    good = (
        """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@%p1 bra WAIT;
mov.u32 %r2, %cluster_ctarank;
xor.b32 %r3, %r2, 1;
mov.u32 %r4, full;
mapa.shared::cluster.u32 %r5, %r4, %r3;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
""",
    )
    bad = (
        """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
@%p1 bra WAIT;
mov.u32 %r2, %cluster_ctarank;
xor.b32 %r3, %r2, 1;
mov.u32 %r4, full;
mapa.shared::cluster.u32 %r5, %r4, %r3;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];  // expect: remote-access-before-cluster-sync
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report remote accesses before the first use of the cluster barrier is complete."""
        for story in facts.stories(Fault.REMOTE_EARLY):
            yield story.finding(
                f"{story.subject('access')} {story.barrier} before any cluster barrier: CTA {story.number('rank')} may "
                "not have started, nor initialized it",
                "synchronize the cluster first: barrier.cluster.arrive, barrier.cluster.wait",
            )
