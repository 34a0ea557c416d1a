"""The ordered run: a clean kernel once more, with its data accesses and the clocks that order them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ptxlint.execution import diagnosis
from ptxlint.execution.machine import Machine
from ptxlint.execution.order import Conflict, Failure, Order
from ptxlint.execution.program import Binding, Program
from ptxlint.execution.schedule import LEAST_BOX, SCHEDULES, OutOfBudgetError
from ptxlint.execution.trace import Event, Kind

ORDERED_STEPS = 120_000
"""Steps of one run that reports data accesses."""


FEW_TRIPS = (0, 1)
"""Assumed integers under which loops are skipped or run once."""


ORDERED_SCHEDULES = (SCHEDULES[0], SCHEDULES[3])
"""The schedules under which accesses are ordered; a conflict must show in each."""


def run_ordered(program: Program, binding: Binding) -> tuple[tuple[Conflict, ...], tuple[Event, ...]]:
    """The conflicts that show in each ordered schedule, and the events of the first; nothing unless it goes well."""
    found: dict[tuple[Failure, int, int], Conflict] | None = None
    happened: tuple[Event, ...] = ()
    for schedule in ORDERED_SCHEDULES:
        order = Order()
        machine = Machine(program, binding, schedule, ORDERED_STEPS, order=order)
        try:
            machine.run()
        except OutOfBudgetError:
            return (), happened
        if not diagnosis.is_clean(machine):
            return (), happened
        if found is None:
            found, happened = order.conflicts, tuple(machine.events)
        else:
            again = {_pair(conflict) for conflict in order.conflicts.values()}
            found = {key: conflict for key, conflict in found.items() if _pair(conflict) in again}
        if not found:
            break
    return tuple((found or {}).values()), happened


def _pair(conflict: Conflict) -> tuple[Failure, frozenset[int]]:
    """What makes a conflict the same in another schedule, where the accesses may come the other way round."""
    return conflict.failure, frozenset({conflict.first.point, conflict.second.point})


def box_extents(happened: Sequence[Event]) -> dict[int, int]:
    """Bytes of each copy's tensor box: the room up to the next place that is filled, no more than its share."""
    filled: dict[int, set[int]] = {}
    expected: dict[tuple[int, int], int] = {}
    sharing: dict[tuple[int, int], int] = {}
    used: dict[int, set[tuple[int, int]]] = {}
    for event in happened:
        use = (event.object or 0, event.phase)
        if event.kind is Kind.COPY and event.source >= 0:
            filled.setdefault(event.point, set()).add(event.source)
            used.setdefault(event.point, set()).add(use)
            sharing[use] = sharing.get(use, 0) + 1
        elif event.kind is Kind.EXPECT:
            expected[use] = expected.get(use, 0) + event.amount
    places = sorted({place for places in filled.values() for place in places})
    following = dict(itertools.pairwise(places))
    extents = {}
    for point, own in filled.items():
        room = [following[place] - place for place in own if place in following]
        share = [expected[use] // sharing[use] for use in used[point] if expected.get(use)]
        if room and share:
            extents[point] = max(LEAST_BOX, min(*room, *share))
    return extents
