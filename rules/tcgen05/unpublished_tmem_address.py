"""Addresses of tensor memory read too early."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UnpublishedTmemAddress(Rule):
    """A thread reads the address of tensor memory from shared memory before `tcgen05.alloc` is ordered before the read.

    Why: the allocating warp writes the address with an ordinary weak store. Other warps need a barrier between that
        and their read.
    Fix: `__syncthreads()` between the allocation and the read, with the tcgen05 fences around it.
    Not reported: reads by the allocating warp itself.
    """

    code = "PTX609"
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
ld.shared.u32 %r3, [slot];  // expect: unpublished-tmem-address
bar.sync 0;

bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the reads."""
        for clash in facts.clashes(Mistake.ADDRESS_UNPUBLISHED):
            reader = clash.first if clash.second.is_write else clash.second
            yield clash.finding(
                f"{reader.agent} looks for the address at {clash.memory}, and nothing orders that after tcgen05.alloc",
                "synchronize the CTA between the allocation and the use of the address",
                at=reader.point,
            )
