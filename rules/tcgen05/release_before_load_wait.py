"""Tensor memory handed back before it has been read."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ReleaseBeforeLoadWait(Rule):
    """Tensor memory is handed back while a `tcgen05.ld` may still be reading it.

    Why: `tcgen05.ld` is asynchronous. Use of its registers waits for the data in the same thread, but orders nothing
        for others: without `tcgen05.wait::ld` before the release the next MMA may overwrite columns that are being
        read.
    Fix: `tcgen05.wait::ld`, then `tcgen05.fence::before_thread_sync`, then the arrive or barrier.
    Not reported: registers that are used before the release, though nothing waits for them (a `mov` is no use); columns
        that nobody writes again in the run.
    """

    code = "PTX604"
    severity = Severity.ERROR
    isa = IsaRef("TensorCore 5th Generation Instructions: tcgen05.wait", since="8.6")

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
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];
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
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];  // expect: release-before-load-wait
mov.b32 %r6, %r4;
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
        """
.shared .align 8 .b64 drained;
.shared .align 4 .b32 slot;
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 32;
setp.ne.u32 %p2, %r1, 0;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
@%p2 bra READY;
mbarrier.init.shared.b64 [drained], 128;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];  // expect: release-before-load-wait
tcgen05.fence::before_thread_sync;
mbarrier.arrive.shared.b64 _, [drained];
@%p1 bra DONE;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [drained], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the load whose columns are overwritten."""
        for clash in facts.clashes(Mistake.LOAD_RELEASED):
            yield clash.finding(
                f"{clash.early} before the wait for the tcgen05.ld of {clash.first.agent}",
                "run tcgen05.wait::ld before the arrive or barrier that hands the columns back",
                at=clash.first.point,
            )
