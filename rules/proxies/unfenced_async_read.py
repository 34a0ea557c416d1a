"""Generic writes that the async proxy reads without a fence."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UnfencedAsyncRead(Rule):
    """The async proxy reads shared memory that threads wrote, with no proxy fence in between.

    Why: bulk copies and the operands of wgmma and tcgen05 go by the async proxy; a barrier orders the generic alone.
        Ordinary stores, `stmatrix` and `cp.async` are generic; the copy engine and the tensor cores may read the
        bytes as they were before. This passes most tests. A warning for what `cp.async` brought: the ISA counts it as
        generic, while CUTLASS and FlashAttention pipelines hand such data to wgmma without a fence.
    Fix: `fence.proxy.async.shared::cta` in each writing thread, after its writes and before the barrier.
    Not reported: a fence in another thread after the barrier (`fence-after-barrier`); results of asynchronous
        operations, which a wait makes visible to both; bytes whose place the run could not determine.
    """

    code = "PTX301"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: membar/fence", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[4096];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
st.shared.u32 [%r3], %r1;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[4096];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
st.shared.u32 [%r3], %r1;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;  // expect: unfenced-async-read
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the reads of each group of writes; the arrival instead by which a role hands them to another."""
        for clash in facts.clashes(Mistake.UNFENCED):
            release = clash.release
            is_hand_over = release is not None and clash.execution.body[release.point].opcode == "mbarrier"
            yield clash.finding(
                f"{clash.early} by the async proxy after {clash.unfinished}, without fence.proxy.async in between",
                "run fence.proxy.async.shared::cta in the writing threads, after the writes and before the "
                f"{'arrival' if is_hand_over else 'barrier'}",
                at=release.point if release is not None and is_hand_over else None,
                is_contested=clash.is_copied,
            )
