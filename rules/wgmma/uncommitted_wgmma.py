"""wgmma in no group."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UncommittedWgmma(Rule):
    """A `wgmma.mma_async` is never committed to a group, so no `wgmma.wait_group` waits for it.

    Why: wait_group counts committed groups. What is in none may still be reading its operands and writing its
        accumulator when the wait returns.
    Fix: `wgmma.commit_group` after the last wgmma of a batch, before the wait.
    Not reported: products whose operands nobody touches again.
    """

    code = "PTX501"
    severity = Severity.ERROR
    isa = IsaRef("Asynchronous Multiply-and-Accumulate Instruction: wgmma.commit_group", since="8.0")

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
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 0, 1, 1, 0, 0;  // expect: uncommitted-wgmma
wgmma.wait_group.sync.aligned 0;
mbarrier.arrive.shared.b64 _, [empty];
bra DONE;
REFILL:
mbarrier.try_wait.parity.shared.b64 %p2, [empty], 0;
@!%p2 bra REFILL;
st.shared.u32 [tile], %r1;
DONE:
""",  # noqa: E501
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each wgmma whose operands are touched."""
        for clash in facts.clashes(Mistake.WGMMA_UNCOMMITTED):
            yield clash.finding(
                f"{clash.early} while a wgmma of {clash.first.agent} may read it: it is in no group, so no "
                "wait_group waits for it",
                "run wgmma.commit_group before the wait",
                at=clash.first.point,
            )
