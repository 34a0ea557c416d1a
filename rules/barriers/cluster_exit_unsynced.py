"""CTAs that exit while others still access them."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ClusterExitUnsynced(Rule):
    """A CTA may exit while another CTA of its cluster still accesses its shared memory or mbarriers.

    Why: with the CTA its shared memory is gone, and may already belong to another one. Arrivals, copies and commits
        under way to it are accesses too.
    Fix: end with `barrier.cluster.arrive` (relaxed will do) and `barrier.cluster.wait` in every thread.
    Not reported: CTAs that have seen every remote access to them complete, under all schedules tried.
    """

    code = "PTX708"
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
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@%p1 bra WAIT;
mov.u32 %r2, %cluster_ctarank;
xor.b32 %r3, %r2, 1;
mov.u32 %r4, full;
mapa.shared::cluster.u32 %r5, %r4, %r3;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];  // expect: cluster-exit-unsynced
WAIT:

""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report remote accesses to a CTA whose threads have all exited under some schedule."""
        for story in facts.stories(Fault.REMOTE_LATE):
            yield story.finding(
                f"{story.subject('access')} {story.barrier} when CTA {story.number('rank')} may have exited",
                "synchronize the cluster before the exit",
            )
