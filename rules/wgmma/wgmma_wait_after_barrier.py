"""Barriers that come before the wait for wgmma."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class WgmmaWaitAfterBarrier(Rule):
    """A CTA barrier hands shared memory back while a `wgmma.mma_async` may still be reading operands from it.

    Why: `wgmma.wait_group` tells only the warp that runs it that the group of its warpgroup is over. Other warpgroups
        and the producer learn of it by a barrier after the wait, not by one before.
    Fix: `wgmma.wait_group` first, in each warp and for the right group, then the barrier, then the refill.
    Not reported: slots that nobody refills in the run.
    """

    code = "PTX505"
    severity = Severity.ERROR
    isa = IsaRef("Asynchronous Multiply-and-Accumulate Instruction: wgmma.wait_group", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[4096];
.shared .align 8 .b64 empty;
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
setp.ge.u32 %p1, %r1, 128;
setp.ne.u32 %p4, %r1, 0;
@%p4 bra READY;
mbarrier.init.shared.b64 [empty], 128;
READY:
bar.sync 0;
@%p1 bra REFILL;
mov.b64 %rd2, 0x4000004000080040;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
bar.sync 1, 128;
mbarrier.arrive.shared.b64 _, [empty];
bra DONE;
REFILL:
mbarrier.try_wait.parity.shared.b64 %p2, [empty], 0;
@!%p2 bra REFILL;
st.shared.u32 [tile], %r1;
DONE:
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[4096];
.shared .align 8 .b64 empty;
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
setp.ge.u32 %p1, %r1, 128;
setp.ne.u32 %p4, %r1, 0;
@%p4 bra READY;
mbarrier.init.shared.b64 [empty], 1;
READY:
bar.sync 0;
@%p1 bra REFILL;
mov.b64 %rd2, 0x4000004000080040;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
bar.sync 1, 128;
setp.ne.u32 %p3, %r1, 127;
@!%p3 mbarrier.arrive.shared.b64 _, [empty];
wgmma.wait_group.sync.aligned 0;  // expect: wgmma-wait-after-barrier
bra DONE;
REFILL:
mbarrier.try_wait.parity.shared.b64 %p2, [empty], 0;
@!%p2 bra REFILL;
st.shared.u32 [tile], %r1;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the wait that comes too late, or else the access that comes too early."""
        for clash in facts.clashes(Mistake.WGMMA_WAIT_LATE):
            yield clash.finding(
                f"{clash.early} while a wgmma of {clash.first.agent} may read it: the barrier between them "
                "comes before the wait for its group",
                "let wgmma.wait_group cover the group before the barrier",
                at=clash.late_wait,
            )
