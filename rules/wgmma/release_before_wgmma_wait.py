"""Operands handed back while wgmma reads them."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ReleaseBeforeWgmmaWait(Rule):
    """Shared memory is handed back for a refill while a `wgmma.mma_async` may still be reading its operands from it.

    Why: wgmma is asynchronous. Until `wgmma.wait_group` covers its group the slot must stay as it is; an arrive at
        the slot's mbarrier lets the producer overwrite it.
    Fix: wait before the arrive, with a count small enough for the group, or hand back the slot of the group before.
    Not reported: slots that nobody refills in the run.
    """

    code = "PTX502"
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
mbarrier.init.shared.b64 [empty], 128;
READY:
bar.sync 0;
@%p1 bra REFILL;
mov.b64 %rd2, 0x4000004000080040;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
mbarrier.arrive.shared.b64 _, [empty];  // expect: release-before-wgmma-wait
wgmma.wait_group.sync.aligned 0;
bra DONE;
REFILL:
mbarrier.try_wait.parity.shared.b64 %p2, [empty], 0;
@!%p2 bra REFILL;
st.shared.u32 [tile], %r1;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the release that lets the refill begin."""
        for clash in facts.clashes(Mistake.WGMMA_RELEASED):
            release = clash.release
            yield clash.finding(
                f"{clash.early} while a wgmma of {clash.first.agent} may read it: it is handed back before "
                "the wait for its group",
                "let wgmma.wait_group cover the group before the arrive",
                at=clash.second.point if release is None else release.point,
            )
