"""mbarriers used by threads that may not see them initialized."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxlint.facts import Clash, Facts, Fault, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UnpublishedBarrierInit(Rule):
    """An mbarrier may be used by another thread before its initialization.

    Why: the initialization is a plain write of one thread. Without a barrier between it and the first use, another
        thread may arrive or wait on whatever the memory held. `barrier.cluster.arrive.relaxed` alone is no such
        barrier: it orders only initializations that `fence.mbarrier_init.release.cluster`, or another releasing fence,
        has followed.
    Fix: `__syncthreads()` after the initialization; a cluster barrier, after `fence.mbarrier_init.release.cluster`,
        when other CTAs use it too.
    Not reported: uses by the initializing thread itself; a relaxed arrival after `fence.proxy.async` in place of the
        fence.
    """

    code = "PTX112"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.init", since="7.0")

    good = (
        """
.shared .align 8 .b64 full;
.shared .align 16 .b8 tile[512];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r3;
@!%p2 bra WAIT;
xor.b32 %r3, %r3, 1;
bar.sync 0;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
""",
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 128 .reqnctapercluster 2
{
.reg .pred %p<4>;
.reg .b32 %r<5>;
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
@%p1 bra DONE;
mov.u32 %r2, %cluster_ctarank;
xor.b32 %r3, %r2, 1;
mov.u32 %r4, full;
mapa.shared::cluster.u32 %r4, %r4, %r3;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [full], 0;
@!%p2 bra WAIT;
DONE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
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
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra WAIT;
mbarrier.init.shared.b64 [full], 1;  // expect: unpublished-barrier-init
mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
ret;
}
""",
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 128 .reqnctapercluster 2
{
.reg .pred %p<4>;
.reg .b32 %r<5>;
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;  // expect: unpublished-barrier-init
READY:
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
@%p1 bra DONE;
mov.u32 %r2, %cluster_ctarank;
xor.b32 %r3, %r2, 1;
mov.u32 %r4, full;
mapa.shared::cluster.u32 %r4, %r4, %r3;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [full], 0;
@!%p2 bra WAIT;
DONE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report initializations that a use precedes under some schedule."""
        for story in facts.stories(Fault.UNPUBLISHED):
            yield story.finding(
                f"initialization of {story.barrier} is not ordered before its use by {story.agent}",
                "synchronize the CTA (or the cluster) after the initialization",
            )
        for clash in _one_for_each_arrival(facts.clashes(Mistake.INIT_UNPUBLISHED)):
            used = f"nothing publishes the initialization of {clash.memory} to {clash.later}, which uses it "
            used += f"(`{clash.text(clash.second)}`)"
            if clash.release is None:
                fix = "synchronize the CTA (or the cluster) after the initialization"
                yield clash.finding(f"{used}: no barrier stands between", fix, at=clash.first.point)
            else:
                fix = "run fence.mbarrier_init.release.cluster after the initialization, or arrive without .relaxed"
                yield clash.finding(f"{used}: the arrival that leads there is relaxed", fix, at=clash.first.point)


def _one_for_each_arrival(clashes: Iterable[Clash]) -> Iterable[Clash]:
    """The first of those that one relaxed arrival leads to, or that one place initializes: one change mends them."""
    found: dict[object, Clash] = {}
    for clash in clashes:
        here = clash.first.point if clash.release is None else clash.release.point
        found.setdefault(clash.execution.body[here].loc or here, clash)
    return found.values()
