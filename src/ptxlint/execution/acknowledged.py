"""Phases that nobody waits for, and that nobody needs to wait for.

A ring whose slot is taken with one barrier, and in another lap part by part with others, completes the parts' phases
all the same. Such a phase is no fault where those who arrive in it hear back from those whom they told, by way of other
barriers, before they arrive in the next, and where the next wait at its barrier asks for a later phase.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ptxlint.execution.layout import OFFSET_MASK
from ptxlint.execution.trace import Event, Kind
from ptxlint.execution.ways import RELEASES, target, warps_of

_ACQUIRES = frozenset({Kind.WAIT, Kind.CLUSTER_WAIT, Kind.SYNC})


def is_acknowledged(events: Sequence[Event], address: int, phase: int) -> bool:
    """Whether the warps that arrived in a phase of an mbarrier have since waited for somebody whom they had told.

    Not if they were let go by a phase that they had seen before: their waits are out of step.
    """
    arrivals = [
        event
        for event in events
        if event.object == address and event.phase == phase and event.kind in (Kind.ARRIVE, Kind.COPY) and event.agent
    ]
    if not arrivals:
        return False
    own = {warp for event in arrivals if event.agent for warp in warps_of(event.agent)}
    if _is_out_of_step(events, own, arrivals[0].order):
        return False
    told, informed, back = set[object](), set[tuple[int, int]](), set[object]()
    for event in events[arrivals[0].order :]:
        place = target(event)
        if event.agent is None or place is None:
            continue
        warps = warps_of(event.agent)
        if event.kind in _ACQUIRES:
            if not own.isdisjoint(warps):
                if place in back:
                    return True
            elif place in told or place in back:
                informed |= warps
        if event.kind in RELEASES or event.kind is Kind.COPY:
            if not own.isdisjoint(warps):
                told.add(place)
            elif not informed.isdisjoint(warps):
                back.add(place)
    return False


def _is_out_of_step(events: Sequence[Event], own: set[tuple[int, int]], since: int) -> bool:
    """Whether a wait of some warps, from an event on, returned for a phase that it had returned for before."""
    seen: set[tuple[object, ...]] = set()
    for event in events:
        if event.kind is Kind.WAIT and event.agent and not own.isdisjoint(warps_of(event.agent)):
            key = (event.object, event.phase, event.agent)
            if key in seen and event.order >= since:
                return True
            seen.add(key)
    return False


def is_passed_over(
    events: Sequence[Event], blocked: Collection[tuple[int, int, int]], address: int, phase: int
) -> bool:
    """Whether the next wait at an mbarrier asks for another phase than the one given; `blocked` as agents want it.

    Events are those after the phase, `blocked` are point, address and parity of the waits that never returned.
    """
    asked = [e.amount for e in events if e.object == address and e.kind in (Kind.WAIT, Kind.POLL)]
    asked += [parity for _, wanted, parity in blocked if wanted == address]
    return bool(asked) and (asked[0] ^ phase) & 1 == 1


def is_twin(address: int, other: int) -> bool:
    """Whether two mbarriers are one variable, in the same CTA or in two of a cluster.

    An arrival that goes to all CTAs, such as a multicast commit, is often waited for in one of them alone.
    """
    return (address ^ other) & OFFSET_MASK == 0
