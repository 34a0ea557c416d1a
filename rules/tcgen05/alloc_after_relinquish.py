"""Allocations after the permit is given up."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.analyses.allocations import ALLOC, RELINQUISH, Event, Permits, name
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class AllocAfterRelinquish(Rule):
    """A warp allocates tensor memory after it has given up the permit to do so.

    Why: after `tcgen05.relinquish_alloc_permit` the CTA may not allocate again; other CTAs of the SM rely on that.
    Fix: allocate all that the kernel needs before giving up the permit.
    Not reported: allocations that the run does not reach, and other warps.
    """

    code = "PTX610"
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
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;  // expect: alloc-after-relinquish
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
@%p1 bra FREED;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
FREED:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Follow the run."""
        execution = facts.execution
        given: dict[tuple[int, int], Event] = {}
        reported: set[int] = set()
        for event in Permits.of(execution).events:
            threads = [(event.agent.rank, thread) for thread in event.agent.threads] if event.agent else []
            before = next((given[thread] for thread in threads if thread in given), None)
            if name(execution, event) == RELINQUISH:
                given.update(dict.fromkeys(threads, event))
            elif name(execution, event) == ALLOC and before is not None and event.point not in reported:
                reported.add(event.point)
                yield Finding(
                    execution.body[event.point].span,
                    f"tensor memory is allocated by {event.agent} after giving up the permit to do so",
                    "allocate before tcgen05.relinquish_alloc_permit",
                    (Related(execution.body[before.point].span, "given up here"),),
                )
