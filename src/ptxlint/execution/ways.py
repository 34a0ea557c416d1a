"""Ways through a run: the synchronization that leads from one access to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ptxlint.execution.clock import MBARRIER, TENSOR_CORE, warp_of
from ptxlint.execution.conflict import Access, Conflict
from ptxlint.execution.strand import WARP
from ptxlint.execution.trace import Agent, Event, Kind
from ptxlint.ir import Instruction
from ptxlint.source import Loc, Span

Place: TypeAlias = Loc | Span
"""What unrolled and inlined copies of one piece of source have in common."""

RELEASES = frozenset({Kind.ARRIVE, Kind.BAR_ARRIVE, Kind.SYNC, Kind.CLUSTER_ARRIVE})

Warps: TypeAlias = frozenset[tuple[int, int]]
"""Ranks of CTAs with numbers of warps."""


def place(body: Sequence[Instruction], access: Access) -> Place:
    """Where in the user's source an access stands; in the PTX, where that has no source lines."""
    return body[access.point].loc or body[access.point].span


def path(conflict: Conflict, events: Sequence[Event]) -> tuple[Event, ...]:
    """The synchronization that leads from the first access to the second, in order; empty where there is none.

    Accesses of one warp are ordered without any. What the path orders is the issue of the first access, not its end.
    """
    first, second = conflict.first, conflict.second
    return between(events, origin(first), warps_of(second.agent), first.when, second.when)


def between(events: Sequence[Event], start: Iterable[object], goal: Warps, since: int, until: int) -> tuple[Event, ...]:
    """The synchronization that leads from warps, or phases of barriers, to other warps; empty where there is none.

    since, until: the numbers of events before the way begins, and at its end.
    """
    known: dict[object, tuple[Event, ...]] = dict.fromkeys(start, ())
    leaving = _inside(events[:since])
    for event in events[since:until]:
        if event.agent is None:
            continue
        warps = warps_of(event.agent)
        _leave(known, leaving, warps)
        met = target(event)
        if met is None:
            continue
        told = next((known[warp] for warp in warps if warp in known), None)
        if (event.kind in RELEASES or event.kind is Kind.COPY) and told is not None:
            known.setdefault(met, (*told, event))
        if event.kind is Kind.SYNC:
            leaving.update(dict.fromkeys(warps, met))
        elif event.kind in (Kind.WAIT, Kind.CLUSTER_WAIT) and met in known:
            for warp in warps:
                known.setdefault(warp, (*known[met], event))
    _leave(known, leaving, goal)
    return next((known[warp] for warp in goal if warp in known), ())


def origin(access: Access) -> Warps:
    """The warp whose access it is; all of the agent's where an mbarrier tracks it."""
    kind, rank, number = access.moment.line
    if kind == MBARRIER:
        return warps_of(access.agent)
    return frozenset({(rank, number // WARP if kind == TENSOR_CORE else warp_of(access.moment.line))})


def completion(access: Access) -> Iterable[object]:
    """From where others learn that an access is over: the phase that tracks it, else the warp that made it."""
    kind, _, address = access.moment.line
    return [(MBARRIER, address, access.moment.time - 1)] if kind == MBARRIER else origin(access)


def _inside(events: Sequence[Event]) -> dict[tuple[int, int], object]:
    """The warps that are at a CTA barrier after some events, with the barrier."""
    last = {warp: event for event in events if event.agent is not None for warp in warps_of(event.agent)}
    return {warp: target(event) for warp, event in last.items() if event.kind is Kind.SYNC}


def _leave(known: dict[object, tuple[Event, ...]], leaving: dict[tuple[int, int], object], warps: Warps) -> None:
    """Warps that do something after a CTA barrier have learned what it knows."""
    for warp in warps:
        met = leaving.pop(warp, None)
        if met in known:
            known.setdefault(warp, known[met])


def target(event: Event) -> object | None:
    """What an event synchronizes on: a barrier and the phase, or use, of it."""
    match event.kind:
        case Kind.ARRIVE | Kind.WAIT | Kind.COPY:
            return (MBARRIER, event.object, event.phase)
        case Kind.SYNC | Kind.BAR_ARRIVE:
            assert event.agent is not None
            return ("barrier", event.agent.rank, event.object, event.phase)
        case Kind.CLUSTER_ARRIVE | Kind.CLUSTER_WAIT:
            return ("cluster", event.phase)
    return None


def warps_of(agent: Agent) -> Warps:
    """The warps that threads belong to."""
    return frozenset((agent.rank, thread // WARP) for thread in agent.threads)


def is_by(event: Event, warps: Warps) -> bool:
    """Whether one of these warps took part in an event."""
    return event.agent is not None and not warps.isdisjoint(warps_of(event.agent))
