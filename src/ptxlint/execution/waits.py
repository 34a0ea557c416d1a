"""The waits of a run: which belong together, what an agent has waited for before, what led to an incident."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from ptxlint.classes import dataclass
from ptxlint.execution.machine import Machine
from ptxlint.execution.trace import Agent, Event, Incident, Kind


@dataclass(frozen=True, slots=True)
class WaitGroup:
    """Waits that belong together because they wait on common barriers, and those barriers."""

    points: frozenset[int]
    barriers: frozenset[int]


def wait_groups(machine: Machine) -> list[WaitGroup]:
    """The waits of a run, grouped by the barriers that they share."""
    touched: dict[int, set[int]] = {}
    for event in machine.events:
        if event.kind is Kind.WAIT and event.object is not None:
            touched.setdefault(event.point, set()).add(event.object)
    for strand in machine.blocked:
        if strand.state in ("stuck", "polling", "refused"):
            touched.setdefault(strand.wanted[0], set()).add(strand.wanted[1])
    groups: list[tuple[set[int], set[int]]] = []
    for point, barriers in touched.items():
        same = [group for group in groups if group[1] & barriers]
        merged = ({point}, set(barriers))
        for group in same:
            merged[0].update(group[0])
            merged[1].update(group[1])
            groups.remove(group)
        groups.append(merged)
    return [WaitGroup(frozenset(points), frozenset(barriers)) for points, barriers in groups]


def history(events: Sequence[Event], event: Event) -> list[Event]:
    """The waits of an agent on the barrier of one of its waits, polls and repeated looks at one phase left out."""
    thread = event.agent.threads[0] if event.agent else -1
    rank = event.agent.rank if event.agent else 0
    found: list[Event] = []
    worked = True
    for other in events:
        if other.agent is None or other.agent.rank != rank or thread not in other.agent.threads:
            continue
        if other.kind is not Kind.WAIT:
            worked = worked or other.kind is not Kind.POLL
        elif other.object == event.object:
            if worked or not found or found[-1].amount != other.amount:
                found.append(other)
            worked = False
    return found


def unflipped(asked: Sequence[Event], event: Event) -> Event | None:
    """The wait after which a parity is never flipped, of those of one agent on one barrier.

    `event` asks for the parity that the wait before it had asked for. That one is to blame where it stands elsewhere,
    what follows it is always wrong, and `event` is right when other waits come before it.
    """
    pairs = list(pairwise(asked))
    before = next((first for first, second in pairs if second == event), event)
    if before.point == event.point:
        return None
    leaves_right = any(a.amount != b.amount for a, b in pairs if a.point == before.point)
    comes_right = any(a.amount != b.amount for a, b in pairs if b.point == event.point)
    return before if comes_right and not leaves_right else None


def is_touched(machine: Machine, addresses: Iterable[int]) -> bool:
    """Whether anything but waits happened to one of these barriers."""
    barriers = [machine.mbarriers[address] for address in addresses if address in machine.mbarriers]
    return any(barrier.arrivals or barrier.history or barrier.expects or barrier.unsized for barrier in barriers)


def run_lengths(values: Sequence[int]) -> list[int]:
    """The lengths of the runs of equal values."""
    runs: list[int] = []
    for index, value in enumerate(values):
        if index and values[index - 1] == value:
            runs[-1] += 1
        else:
            runs.append(1)
    return runs


def begin_alike(parities: Sequence[int]) -> bool:
    """Whether the parities alternate for a while, and then begin again as they began, once or more often."""
    repeats = [second for first, second in pairwise(parities) if first == second]
    return bool(repeats) and parities[0] != parities[1] and set(repeats) == {parities[0]}


def involved(incident: Incident, machine: Machine, limit: int = 12) -> list[Event]:
    """The last events that led to an incident: those of its barrier and of its agent's waits."""
    chosen = [
        event
        for event in machine.events
        if event.order <= incident.order
        and (event.object == incident.object or _same_agent(event.agent, incident.agent))
    ]
    return chosen[-limit:]


def _same_agent(first: Agent | None, second: Agent | None) -> bool:
    return (
        first is not None and second is not None and first.rank == second.rank and first.threads[0] == second.threads[0]
    )
