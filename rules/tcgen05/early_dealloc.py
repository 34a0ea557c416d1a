"""Tensor memory freed while it is in use."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.analyses.allocations import DEALLOC, Kind, unsynchronized
from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class EarlyDealloc(Rule):
    """Tensor memory is freed while another warp, or an MMA, may still be using it.

    Why: after `tcgen05.dealloc` the columns may belong to another CTA. All that uses them has to be over, and known
        to be over by the warp that frees them.
    Fix: `tcgen05.wait::ld` or a wait for the commit, then a barrier of all users, then the dealloc. With
        `cta_group::2` a cluster barrier.
    Not reported: users that the run does not reach.
    """

    code = "PTX608"
    severity = Severity.ERROR
    isa = IsaRef(
        "TensorCore 5th Generation Instructions: tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit",
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
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;  // expect: early-dealloc
DONE:
""",
        """
.shared .align 4 .b32 slot;
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
shl.b32 %r2, %r1, 16;
and.b32 %r2, %r2, 0x600000;
add.u32 %r4, %r3, %r2;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%r1};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5}, [%r4];
tcgen05.wait::ld.sync.aligned;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;  // expect: early-dealloc
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the dealloc."""
        for clash in facts.clashes(Mistake.FREED_EARLY):
            remedy = "let all users finish and meet at a barrier before the dealloc"
            if clash.text(clash.first) == DEALLOC:
                yield clash.finding(
                    f"{clash.first.agent} frees {clash.memory}, and nothing orders that after the use by "
                    f"{clash.second.agent} (`{clash.text(clash.second)}`)",
                    remedy,
                    at=clash.first.point,
                )
                continue
            yield clash.finding(
                f"{clash.second.agent} frees {clash.memory}, and nothing orders that after {clash.unfinished}", remedy
            )
        execution = facts.execution
        for point in dict.fromkeys(e.point for e in unsynchronized(execution, DEALLOC, Kind.WAIT_GROUP)):
            yield Finding(
                execution.body[point].span,
                "tensor memory of a CTA pair is freed before the warp has met the other CTA, which may be using it",
                "put a cluster barrier between the last use and the dealloc",
            )
