"""mbarriers used by threads that may not see them initialized."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UnpublishedBarrierInit(Rule):
    """An mbarrier may be used by another thread before its initialization.

    Why: the initialization is a plain write of one thread. Without a barrier between it and the first use, another
        thread may arrive or wait on whatever the memory held.
    Fix: `__syncthreads()` after the initialization; a cluster barrier, after `fence.mbarrier_init.release.cluster`,
        when other CTAs use it too.
    Not reported: uses by the initializing thread itself.
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
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report initializations that a use precedes under some schedule."""
        for story in facts.stories(Fault.UNPUBLISHED):
            yield story.finding(
                f"initialization of {story.barrier} is not ordered before its use by {story.agent}",
                "synchronize the CTA (or the cluster) after the initialization",
            )
