"""Tensor memory handed over without the fences of tcgen05."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxlint.facts import Clash, Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class MissingTcgen05Fence(Rule):
    """Tensor memory goes from one thread to another without a `tcgen05.fence` on the releasing or the acquiring side.

    Why: operations on tensor memory are asynchronous. By the patterns of the ISA one thread hands tensor memory to
        another by `wait::ld` or `wait::st`, `fence::before_thread_sync`, and a release; the other acquires and runs
        `fence::after_thread_sync` before it goes on. `tcgen05.commit` contains the first fence, so who waits for an
        MMA needs the second alone, even in the same thread. Without it the compiler may move the access over the wait.
        A warning: the ISA also says that the ordinary memory model applies, ptxas 13.0 makes no instruction of either
        fence, and Triton, CUTLASS and the CuTe DSL leave both out. An error where the arrive or the wait is relaxed, so
        that the ordinary model orders nothing either.
    Fix: `tcgen05.fence::before_thread_sync` before the arrive or barrier, `tcgen05.fence::after_thread_sync` after the
        wait or barrier.
    Not reported: kernels without any `tcgen05.fence`; `tcgen05.dealloc`, which is synchronous; operations that are not
        complete when they are handed over, which have rules of their own; shared memory that MMAs read.
    """

    code = "PTX606"
    severity = Severity.WARNING
    isa = IsaRef("TensorCore 5th Generation Instructions: tcgen05.fence", since="8.6")

    good = (
        """
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b64 done;
.shared .align 8 .b64 drained;
.shared .align 4 .b32 slot;
mov.u32 %r5, tile;
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0x8100490;
mov.b64 %rd2, 0x4000004000080040;
setp.ge.u32 %p1, %r1, 32;
setp.ne.u32 %p2, %r1, 0;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
@%p2 bra READY;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [drained], 128;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
shl.b32 %r6, %r1, 16;
and.b32 %r6, %r6, 0x600000;
add.u32 %r6, %r6, %r3;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r6];
tcgen05.wait::ld.sync.aligned;
tcgen05.fence::before_thread_sync;
mbarrier.arrive.shared.b64 _, [drained];
@%p2 bra END;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [drained], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
LAST:
mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
@!%p3 bra LAST;
END:
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b64 done;
.shared .align 8 .b64 drained;
.shared .align 4 .b32 slot;
mov.u32 %r5, tile;
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0x8100490;
mov.b64 %rd2, 0x4000004000080040;
setp.ge.u32 %p1, %r1, 32;
setp.ne.u32 %p2, %r1, 0;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
@%p2 bra READY;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [drained], 128;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
shl.b32 %r6, %r1, 16;
and.b32 %r6, %r6, 0x600000;
add.u32 %r6, %r6, %r3;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r6];
tcgen05.wait::ld.sync.aligned;
tcgen05.fence::before_thread_sync;
mbarrier.arrive.shared.b64 _, [drained];
@%p2 bra END;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [drained], 0;
@!%p3 bra WAIT;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 0;  // expect: missing-tcgen05-fence
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
LAST:
mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
@!%p3 bra LAST;
END:
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
        """
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b64 done;
.shared .align 8 .b64 drained;
.shared .align 4 .b32 slot;
mov.u32 %r5, tile;
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0x8100490;
mov.b64 %rd2, 0x4000004000080040;
setp.ge.u32 %p1, %r1, 32;
setp.ne.u32 %p2, %r1, 0;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
@%p2 bra READY;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [drained], 128;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
shl.b32 %r6, %r1, 16;
and.b32 %r6, %r6, 0x600000;
add.u32 %r6, %r6, %r3;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r6];
tcgen05.wait::ld.sync.aligned;
mbarrier.arrive.shared.b64 _, [drained];  // expect: missing-tcgen05-fence
@%p2 bra END;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [drained], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
LAST:
mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
@!%p3 bra LAST;
END:
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the release that lacks the first fence, and the access that lacks the second."""
        for clash in facts.clashes(Mistake.TENSOR_RELEASE_UNFENCED):
            release = clash.release
            found = clash.finding(
                f"{clash.unfinished} is handed over without tcgen05.fence::before_thread_sync; {clash.early} after it",
                "run tcgen05.fence::before_thread_sync before this, in the threads that have used the tensor memory",
                at=None if release is None else release.point,
            )
            yield _judged(found, clash)
        for clash in facts.clashes(Mistake.TENSOR_ACQUIRE_UNFENCED):
            found = clash.finding(
                f"{clash.early} after {clash.unfinished}, and there is no tcgen05.fence::after_thread_sync since the "
                "wait for it",
                "run tcgen05.fence::after_thread_sync after the wait or barrier",
            )
            yield _judged(found, clash)


def _judged(found: Finding, clash: Clash) -> Finding:
    """An error where something relaxed on the way leaves the fence as the only thing that could order anything."""
    return found if clash.weak is None or clash.is_guessed else replace(found, severity=Severity.ERROR)
