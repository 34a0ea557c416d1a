"""Tensor memory handed over before it has been written."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ReleaseBeforeStoreWait(Rule):
    """Tensor memory is handed over while a `tcgen05.st` may still be writing it.

    Why: `tcgen05.st` is asynchronous. Without `tcgen05.wait::st` before the release the others may find the old
        contents.
    Fix: `tcgen05.wait::st`, then `tcgen05.fence::before_thread_sync`, then the arrive or barrier.
    Not reported: columns that nobody else touches in the run.
    """

    code = "PTX605"
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
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r1};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
mbarrier.arrive.shared.b64 _, [drained];
@%p2 bra END;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [drained], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 1;
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
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r1};  // expect: release-before-store-wait
tcgen05.fence::before_thread_sync;
mbarrier.arrive.shared.b64 _, [drained];
@%p2 bra END;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [drained], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 1;
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
        """Report the store whose columns are touched."""
        for clash in facts.clashes(Mistake.STORE_RELEASED):
            yield clash.finding(
                f"{clash.early} before the wait for the tcgen05.st of {clash.first.agent}",
                "run tcgen05.wait::st before the arrive or barrier that hands the columns over",
                at=clash.first.point,
            )
