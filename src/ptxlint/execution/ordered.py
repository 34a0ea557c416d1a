"""The ordered run: a clean kernel once more, with its data accesses and the clocks that order them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ptxlint.classes import dataclass
from ptxlint.execution import diagnosis
from ptxlint.execution.accesses import name_of
from ptxlint.execution.clock import WARP_LINE
from ptxlint.execution.conflict import Access, Conflict, Failure
from ptxlint.execution.layout import RANK_SHIFT
from ptxlint.execution.machine import Machine
from ptxlint.execution.order import Order
from ptxlint.execution.program import Binding, Program
from ptxlint.execution.schedule import LEAST_BOX, SCHEDULES, OutOfBudgetError, Schedule, Turn
from ptxlint.execution.store_boxes import COPY, Record, tensor_stores
from ptxlint.execution.store_boxes import store_extents as boxes_of_stores
from ptxlint.execution.trace import Event, Fault, Kind
from ptxlint.ir import Instruction

ORDERED_STEPS = 120_000
"""Steps of one run that reports data accesses."""

Real: TypeAlias = Callable[[Sequence[Conflict], Sequence[Event]], tuple[Conflict, ...]]
"""Which of some conflicts of a run with these events are real."""

FEW_TRIPS = (0, 1)
"""Assumed integers under which loops are skipped or run once."""


ORDERED_SCHEDULES = (
    Schedule(Turn.FIFO, refuses=True),
    Schedule(Turn.DOWN, late_copies=True, refuses=True),
)
"""The schedules under which accesses are ordered; a conflict must show in each. Waits refuse once, so that the
wait behind a peek is what orders."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """What ordered runs showed: conflicts, the events of the first run, and all accesses that these are about.

    contested: what the first run lacks by a reading of the ISA that not everybody shares. is_clean: that run had no
    fault. is_whole: nor was it cut, so its events are all there are.
    """

    conflicts: tuple[Conflict, ...] = ()
    events: tuple[Event, ...] = ()
    accesses: tuple[Access, ...] = ()
    contested: tuple[Conflict, ...] = ()
    is_clean: bool = True
    is_whole: bool = True


NOT_ORDERED = Ordered()
"""What a kernel shows that is not run with its data accesses."""


def run_ordered(program: Program, binding: Binding, real: Real) -> Ordered:
    """The real conflicts that show in each ordered schedule, as far as all goes well."""
    found: tuple[Conflict, ...] | None = None
    shows = NOT_ORDERED
    for schedule in ORDERED_SCHEDULES:
        machine, order = _run(program, binding, schedule)
        if machine is None:
            return replace(shows, is_clean=False, is_whole=False)
        shown, is_clean = _before_faults(machine, order.conflicts.values()), diagnosis.is_clean(machine)
        if found is None:
            found = real(shown, machine.events)
            contested = real(order.doubtful(), machine.events) if is_clean else ()
            is_whole = is_clean and not machine.is_cut
            shows = Ordered((), tuple(machine.events), (), contested, is_clean, is_whole)
        found = tuple(conflict for conflict in found if is_alike(conflict, shown))
        if not found:
            return shows
    ordered = _with_accesses(program, binding, ORDERED_SCHEDULES[0], found or (), shows.events)
    return replace(shows, conflicts=ordered.conflicts, accesses=ordered.accesses)


def _before_faults(machine: Machine, conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """The conflicts of a run, those before its first fault where it is not clean."""
    if diagnosis.is_clean(machine):
        return tuple(conflicts)
    first = min((incident.order for incident in machine.incidents), default=0)
    return tuple(conflict for conflict in conflicts if conflict.second.when < first)


def is_alike(conflict: Conflict, others: Iterable[Conflict]) -> bool:
    """Whether another run shows a conflict as well: the same failure at one of its places.

    Which of several accesses an unordered one meets first, in an unrolled loop, is up to the schedule.
    """
    places = {conflict.first.point, conflict.second.point}
    return any(
        other.failure is conflict.failure and not places.isdisjoint((other.first.point, other.second.point))
        for other in others
    )


def absent(program: Program, binding: Binding, conflicts: Sequence[Conflict]) -> frozenset[Conflict]:
    """Those of some conflicts that a run without faults does not show although it comes to both of their places."""
    watched = frozenset[int | str](point for c in conflicts for point in (c.first.point, c.second.point))
    machine, order = _run(program, binding, ORDERED_SCHEDULES[0], watched)
    if machine is None or not diagnosis.is_clean(machine):
        return frozenset()
    seen = {access.point for access in order.history}
    shown = tuple(order.conflicts.values())
    return frozenset(c for c in conflicts if {c.first.point, c.second.point} <= seen and not is_alike(c, shown))


def run_overtaken(program: Program, binding: Binding, real: Real) -> Ordered:
    """The real conflicts of a kernel of which one side runs ahead: in the first schedule in which it happens not to.

    Who runs ahead is not seen in the order of accesses that he has overtaken; a schedule in which the others are just
    in time shows that nothing holds him back.
    """
    for schedule in SCHEDULES:
        machine, order = _run(program, binding, schedule)
        is_stuck = machine is None or (machine.blocked and not machine.is_cut)
        if machine is None or is_stuck or any(i.fault is not Fault.OVERTAKE for i in machine.incidents):
            continue
        filled = [conflict for conflict in order.conflicts.values() if conflict.filled is not None]
        conflicts = real(filled, machine.events)
        if conflicts:
            found = _with_accesses(program, binding, schedule, conflicts, tuple(machine.events))
            return replace(found, is_whole=False)
    return NOT_ORDERED


def store_extents(program: Program, binding: Binding, body: Sequence[Instruction]) -> Mapping[int, int]:
    """Bytes of the boxes of tensor stores, by what the beginning of a run writes for them."""
    stores = tensor_stores(body)
    if not stores:
        return {}
    watched = frozenset[int | str](stores) | {name_of(instruction) for instruction in body} | {COPY}
    record = Record(watched, stores)
    machine = Machine(program, binding, SCHEDULES[0], ORDERED_STEPS, order=record)
    is_whole = _ended(machine) is not None
    return boxes_of_stores(record.history, stores, body, machine.events, is_whole=is_whole)


def _run(
    program: Program,
    binding: Binding,
    schedule: Schedule,
    watched: frozenset[int | str] = frozenset(),
) -> tuple[Machine | None, Order]:
    """A run with clocks; no machine where it exceeds the budget."""
    order = Order(watched)
    return _ended(Machine(program, binding, schedule, ORDERED_STEPS, order=order)), order


def _ended(machine: Machine) -> Machine | None:
    """The machine at the end of its run; None where the run was cut."""
    try:
        machine.run()
    except OutOfBudgetError:
        return None
    return machine


def _with_accesses(
    program: Program, binding: Binding, schedule: Schedule, conflicts: Iterable[Conflict], happened: tuple[Event, ...]
) -> Ordered:
    """The same run again, which keeps the accesses of all instructions that take part in unordered conflicts.

    Of asynchronous writes also those of instructions of the same name, as in unrolled code and prologues.
    """
    conflicts = tuple(conflicts)
    unordered = [(c.first, c.second, c.filled) for c in conflicts if c.failure is Failure.UNORDERED]
    involved = [access for accesses in unordered for access in accesses if access is not None]
    names = {access.what for access in involved if access.is_write and access.moment.line[0] != WARP_LINE}
    watched = frozenset[int | str](access.point for access in involved) | names
    accesses = _run(program, binding, schedule, watched)[1].history if watched else ()
    return Ordered(conflicts, happened, tuple(accesses))


def box_extents(happened: Sequence[Event]) -> dict[int, int]:
    """Bytes of each copy's tensor box: all that its phase expects where it is the only copy.

    Else what its phase expects beyond the room of all other copies, room being the bytes up to the next place that is
    filled. Where that is nothing, its own room, but no more than its share.
    """
    filled: dict[int, set[int]] = {}
    expected: dict[tuple[int, int], int] = {}
    sharing: dict[tuple[int, int], list[int]] = {}
    for event in happened:
        use = (event.object or 0, event.phase)
        if event.kind is Kind.COPY and event.source >= 0:
            filled.setdefault(event.point, set()).add(event.source)
            sharing.setdefault(use, []).append(event.point)
        elif event.kind is Kind.EXPECT:
            expected[use] = expected.get(use, 0) + event.amount
    places = sorted({place for places in filled.values() for place in places})
    following = {a: b for a, b in itertools.pairwise(places) if a >> RANK_SHIFT == b >> RANK_SHIFT}
    rooms = {point: [following[place] - place for place in own if place in following] for point, own in filled.items()}
    room = {point: min(found) for point, found in rooms.items() if found}
    phases = [(expected[use], copies) for use, copies in sharing.items() if expected.get(use)]
    extents = {}
    for point in filled:
        own = [(size, copies) for size, copies in phases if point in copies]
        alone = [size for size, copies in own if len(copies) == 1]
        if alone:
            extents[point] = max(LEAST_BOX, min(alone))
        elif own and point in room:
            least = min(_beyond(size, copies, point, room) for size, copies in own)
            share = min(size // len(copies) for size, copies in own)
            extents[point] = max(LEAST_BOX, min(room[point], least if least > 0 else share))
    return extents


def _beyond(size: int, copies: Sequence[int], point: int, room: Mapping[int, int]) -> int:
    """What is left of the bytes of a phase for one of its copies when all others take their room; 0 where one has no
    bound."""
    others = list(copies)
    others.remove(point)
    return size - sum(room[other] for other in others) if all(other in room for other in others) else 0
