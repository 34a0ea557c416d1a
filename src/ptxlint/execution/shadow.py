"""Shadow memory: what was done to each byte last, kept once for all bytes that every access so far has treated alike.

Most instructions touch the same bytes in each trip of a loop, and most bytes are touched by few instructions. So bytes
are gathered in cells, and an access that touches a part of a cell divides it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence, Set
from typing import Generic, TypeVar

from ptxlint.classes import dataclass
from ptxlint.execution.conflict import Interval

T = TypeVar("T")

PAGE_SHIFT = 9
"""An access takes the place of another where it covers all of it in a page; pages are so many address bits."""


class Cell(Generic[T]):
    """Bytes with a common past. `held` is what is remembered of it; `starts` where its runs of bytes begin.

    A cell that has been divided holds nothing; its `parts` do.
    """

    __slots__ = ("held", "parts", "starts")

    def __init__(self, held: list[Touch[T]], starts: set[int]) -> None:
        self.held = held
        self.starts = starts
        self.parts: tuple[Cell[T], ...] = ()


class Place(Generic[T]):
    """Bytes that one access touches: its intervals, in order and apart from each other, and the cells that they are."""

    __slots__ = ("_starts", "cells", "covered", "divisions", "intervals")

    def __init__(self, intervals: tuple[Interval, ...], cells: list[Cell[T]], divisions: int) -> None:
        self.intervals = intervals
        self.cells = cells
        self.divisions = divisions
        self.covered: dict[tuple[Place[T], Cell[T]], bool] = {}
        self._starts = [start for start, _ in intervals]

    def at(self, address: int) -> Interval:
        """The interval that an address lies in."""
        return self.intervals[bisect_right(self._starts, address) - 1]


@dataclass(frozen=True, slots=True, eq=False)
class Touch(Generic[T]):
    """An access with the bytes that it touches. `number` counts those to one shadow memory."""

    access: T
    place: Place[T]
    number: int


class Shadow(Generic[T]):
    """The cells of one address space.

    `_starts` are the places where runs of bytes of one cell begin, in order, each up to the next one; `_owner` has the
    cell of each, if the bytes have been touched at all.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._owner: dict[int, Cell[T]] = {}
        self._places: dict[tuple[Interval, ...], Place[T]] = {}
        self._divisions = 0
        self._touches = 0

    def place(self, intervals: tuple[Interval, ...]) -> Place[T]:
        """The place that these intervals are; they are in order and apart from each other, and some may be empty."""
        found = self._places.get(intervals)
        if found is None:
            filled = tuple(interval for interval in intervals if interval[0] < interval[1])
            cells = self._gathered(filled)
            found = self._places[intervals] = Place(filled, cells, self._divisions)
        elif found.divisions != self._divisions:
            found.cells, found.divisions = _undivided(found.cells), self._divisions
        return found

    def before(self, place: Place[T]) -> set[Touch[T]]:
        """The touches that bytes of a place remember."""
        return {touch for cell in place.cells for touch in cell.held}

    def between(self, start: int, stop: int) -> list[Touch[T]]:
        """The touches that bytes of an interval remember, in order."""
        starts = self._starts[max(0, bisect_right(self._starts, start) - 1) : bisect_left(self._starts, stop)]
        cells = {self._owner[start] for start in starts if start in self._owner}
        return sorted({touch for cell in cells for touch in cell.held}, key=lambda touch: touch.number)

    def add(self, access: T, place: Place[T], replaced: Set[Touch[T]]) -> None:
        """Remember an access; it takes the place of some touches, in the cells where it covers them."""
        self._touches += 1
        touch = Touch(access, place, self._touches)
        for cell in place.cells:
            cell.held = [o for o in cell.held if o not in replaced or not self._covers(place, o.place, cell)]
            cell.held.append(touch)

    def _covers(self, place: Place[T], other: Place[T], cell: Cell[T]) -> bool:
        """Whether an interval of a place covers what another has around each byte of a cell that both have."""
        if place is other:
            return True
        known = place.covered.get((other, cell))
        if known is None:
            known = place.covered[other, cell] = all(self._covers_run(place, other, start) for start in cell.starts)
        return known

    def _covers_run(self, place: Place[T], other: Place[T], start: int) -> bool:
        """The same for a run of bytes, by its first and last one."""
        interval, covered = place.at(start), other.at(start)
        if interval[0] <= covered[0] and covered[1] <= interval[1]:
            return True
        last = self._starts[bisect_right(self._starts, start)] - 1
        return all(_covers(interval, covered, edge >> PAGE_SHIFT) for edge in (start, last))

    def _gathered(self, intervals: Sequence[Interval]) -> list[Cell[T]]:
        """The cells that together are these bytes, of which some may be new."""
        touched: dict[Cell[T] | None, set[int]] = {}
        for start, stop in intervals:
            self._cut(start)
            self._cut(stop)
            for at in self._starts[bisect_left(self._starts, start) : bisect_left(self._starts, stop)]:
                touched.setdefault(self._owner.get(at), set()).add(at)
        return [self._part(cell, starts) for cell, starts in touched.items()]

    def _cut(self, address: int) -> None:
        """Let a run of bytes begin at an address."""
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and self._starts[at] == address:
            return
        owner = self._owner.get(self._starts[at]) if at >= 0 else None
        insort(self._starts, address)
        if owner is not None:
            self._owner[address] = owner
            owner.starts.add(address)

    def _part(self, cell: Cell[T] | None, starts: set[int]) -> Cell[T]:
        """The cell of those bytes of a cell whose runs begin there; None: of bytes that nothing has touched."""
        if cell is not None and len(cell.starts) == len(starts):
            return cell
        part = Cell(list(cell.held) if cell else [], starts)
        self._owner.update(dict.fromkeys(starts, part))
        if cell is not None:
            rest = Cell(cell.held, cell.starts - starts)
            self._owner.update(dict.fromkeys(rest.starts, rest))
            cell.parts, cell.held = (part, rest), []
            self._divisions += 1
        return part


def _undivided(cells: Iterable[Cell[T]]) -> list[Cell[T]]:
    """Cells with those that have been divided replaced by their parts."""
    found = []
    stack = list(cells)
    while stack:
        cell = stack.pop()
        if cell.parts:
            stack.extend(cell.parts)
        else:
            found.append(cell)
    return found


def _covers(interval: Interval, other: Interval, page: int) -> bool:
    """Whether an interval covers what a page has of another."""
    first, last = page << PAGE_SHIFT, page + 1 << PAGE_SHIFT
    return interval[0] <= max(other[0], first) and min(other[1], last) <= interval[1]
