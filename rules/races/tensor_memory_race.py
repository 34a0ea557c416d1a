"""Accesses to tensor memory that nothing orders."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class TensorMemoryRace(Rule):
    """Two accesses to the same columns of tensor memory, at least one a write, are not ordered.

    Why: MMAs, copies, loads and stores of tensor memory are asynchronous, and only those that the ISA calls pipelined
        stay in order by themselves.
    Fix: commit and wait at the mbarrier (mma, cp), `wait::ld` or `wait::st` before the release (ld, st).
    Not reported: mma, cp and shift of one thread among each other.
    """

    code = "PTX902"
    severity = Severity.ERROR
    isa = IsaRef(
        "TensorCore 5th Generation Instructions: Memory Consistency Model for 5th generation of TensorCore operations",
        since="8.6",
    )

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
@%p2 bra WAIT;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];
tcgen05.wait::ld.sync.aligned;
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
mbarrier.init.shared.b64 [drained], 1;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
@%p2 bra WAIT;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [drained];
mbarrier.arrive.shared.b64 _, [done];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];  // expect: tensor-memory-race
tcgen05.wait::ld.sync.aligned;
LATER:
mbarrier.try_wait.parity.shared.b64 %p3, [drained], 0;
@!%p3 bra LATER;
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the access that comes second."""
        for clash in facts.clashes(Mistake.SLICES):
            if clash.reuse is not None and not clash.is_shared:
                yield clash.finding(
                    f"{clash.early} while {clash.unfinished} may not be over: the accumulators are "
                    f"{clash.reuse.extent} columns wide and lie {clash.reuse.stride} apart",
                    f"let the accumulators lie {clash.reuse.extent} columns apart",
                )
        for clash in facts.clashes(Mistake.TENSOR_RACE):
            yield clash.finding(
                f"{clash.early}, and nothing orders that after {clash.unfinished}",
                clash.remedy,
            )
