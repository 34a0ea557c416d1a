"""Named barriers over which agents dispute: who meets there depends on the schedule.

A CTA barrier with an explicit count completes when that many threads have come, whoever they are. Where the warps of a
use differ between schedules, either the count leaves some of them out, or two groups use one barrier at a time. The
count of the whole CTA leaves nobody out, unless a warp that arrives and then synchronizes is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxlint.execution.machine import Machine
from ptxlint.execution.strand import WARP
from ptxlint.execution.trace import Event, Fault, Incident, Kind


def disputes(machines: Sequence[Machine]) -> Iterator[Incident]:
    """One incident for each named barrier whose uses gather other warps in other schedules of the same inputs."""
    first = machines[0]
    for cta in first.ctas:
        for number, barrier in cta.named.items():
            others = [machine.ctas[cta.rank].named.get(number) for machine in machines[1:]]
            rivals = [other for other in others if other is not None and other.generations != barrier.generations]
            if rivals:
                is_twice = any(each.has_counted_twice for each in (barrier, *rivals))
                events = [e for e in first.events if _concerns(e, cta.rank, number)]
                if events and (is_twice or all(event.amount < cta.threads for event in events)):
                    yield _incident(events, number)


def _concerns(event: Event, rank: int, number: int) -> bool:
    is_use = event.kind in (Kind.SYNC, Kind.BAR_ARRIVE) and event.object == number
    return is_use and event.agent is not None and event.agent.rank == rank


def _incident(events: Sequence[Event], number: int) -> Incident:
    """The count is too small where some warps only arrive and the others only wait; else two groups share it."""
    arriving = {thread // WARP for e in events if e.kind is Kind.BAR_ARRIVE and e.agent for thread in e.agent.threads}
    waiting = {thread // WARP for e in events if e.kind is Kind.SYNC and e.agent for thread in e.agent.threads}
    users = WARP * len(arriving | waiting)
    last = max((e for e in events if e.kind is Kind.SYNC), key=lambda e: e.order, default=events[-1])
    places = tuple((point, "also used here") for point in dict.fromkeys(e.point for e in events) if point != last.point)
    fault = Fault.SHARED_BARRIER if arriving & waiting or not arriving else Fault.BARRIER_COUNT
    details = {"count": last.amount, "other": users, "users": users}
    return Incident(fault, last.point, last.agent, number, last.order, details, places)
