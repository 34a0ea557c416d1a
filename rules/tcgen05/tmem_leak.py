"""Tensor memory that is never freed."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.analyses.allocations import Permits, skipping_return
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class TmemLeak(Rule):
    """Tensor memory is allocated and, on some path, not freed before the kernel ends.

    Why: all that a CTA allocates must be freed before it exits. What is not is lost to the kernels after it; the
        driver reports CUDA_ERROR_TENSOR_MEMORY_LEAK.
    Fix: `tcgen05.dealloc` on every path to the end, after all users are through.
    Not reported: paths that only some threads of the CTA take.
    """

    code = "PTX607"
    severity = Severity.ERROR
    isa = IsaRef(
        "TensorCore 5th Generation Instructions: tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit",
        since="8.6",
    )

    good = (
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
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )
    bad = (
        """
.shared .align 4 .b32 slot;
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;  // expect: tmem-leak
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
bar.sync 0;
mov.u32 %r4, %r3;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare what the run allocated and freed; then look for a return that skips the freeing."""
        execution = facts.execution
        leak = Permits.of(execution).leaked()
        if leak is not None:
            yield Finding(
                execution.body[leak.point].span,
                f"{leak.amount} columns of tensor memory are allocated and not all of them freed",
                "run tcgen05.dealloc before the kernel ends",
            )
            return
        skipped = skipping_return(facts)
        if skipped is not None:
            alloc, leave = skipped
            yield Finding(
                facts.span(alloc),
                "tensor memory is allocated, and the CTA may return without freeing it",
                "run tcgen05.dealloc on that path too, or decide before the allocation",
                (Related(facts.span(leave), "this way leads past every tcgen05.dealloc"),),
            )
