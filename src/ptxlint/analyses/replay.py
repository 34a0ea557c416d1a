"""What one thread's queue of groups does in chosen laps of a loop, where its predicates can be worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.analyses.assignment import Assignment, Unpredictable
from ptxlint.analyses.groups import allowed
from ptxlint.analyses.overlap import Overlaps, Touch
from ptxlint.analyses.value import Apply, Literal, Value, leaves
from ptxlint.classes import dataclass
from ptxlint.isa.row import Tracking

if TYPE_CHECKING:
    from ptxlint.facts import Facts


@dataclass(frozen=True, slots=True)
class _Flight:
    """A copy and a later access in laps of one loop, for the lowest thread that issues the copy."""

    early: Touch
    late: Touch
    header: int
    then: int
    now: int
    thread: int


class Replay:
    """Follows the commits and waits of one kind through the loop that a copy is in."""

    def __init__(self, facts: Facts, overlaps: Overlaps, kind: Tracking) -> None:
        self._facts = facts
        self._overlaps = overlaps
        self._loops = overlaps.loops
        self._kind = kind

    def lands(self, early: Touch, late: Touch, then: Mapping[int, int], now: Mapping[int, int]) -> bool:
        """Whether the copy has certainly landed by then.

        Commits and waits under predicates that cannot be worked out count as not run.
        """
        cfg = self._facts.cfg
        loop = next(cfg.enclosing_loops(cfg.block_of[early.index]), None)
        if loop is None or loop.header not in then:
            return False
        thread = (early.threads & -early.threads).bit_length() - 1
        flight = _Flight(early, late, loop.header, then[loop.header], now[loop.header], thread)
        ground = self._overlaps.ground(0, (thread,))
        laps = {lap: Assignment(ground, {**now, loop.header: lap}) for lap in range(flight.then, flight.now + 1)}
        commits = 0
        for lap in laps:
            for event in self._events(loop.header):
                is_before = lap == flight.then and event <= early.index
                is_after = lap == flight.now and event >= late.index
                if is_before or is_after or not self._runs(event, lap, flight, laps):
                    continue
                row = isa.row(cfg.body[event])
                assert row is not None
                commits += row.commits is self._kind
                if row.waits is self._kind and commits > allowed(cfg.body[event]):
                    return True
        return False

    def _events(self, header: int) -> Sequence[int]:
        """The commits and waits of a loop outside the loops in it, in the order of the body."""
        if header not in self._known_events:
            cfg = self._facts.cfg
            loop = cfg.loop_of[header]
            self._known_events[header] = [
                index
                for index, instruction in enumerate(cfg.body)
                if (row := isa.row(instruction)) is not None
                and self._kind in (row.commits, row.waits)
                and cfg.loop_of[cfg.block_of[index]] == loop
            ]
        return self._known_events[header]

    @cached_property
    def _known_events(self) -> dict[int, Sequence[int]]:
        return {}

    def _runs(self, event: int, lap: int, flight: _Flight, laps: Mapping[int, Assignment]) -> bool:
        """Whether an event certainly runs in a lap."""
        try:
            return all(self._holds(literal, lap, flight, laps) for literal in self._conditions(event, flight.header))
        except Unpredictable:
            return False

    def _holds(self, literal: Literal, lap: int, flight: _Flight, laps: Mapping[int, Assignment]) -> bool:
        """Whether a predicate certainly holds in a lap, given that the copy was issued and the access happens.

        What held for either in its own lap holds there; what lasts holds in all laps; a bound that a counter has not
        reached in the lap of the access it had not reached before.
        """
        if laps[lap].where(literal, 0):
            return True
        lasts = not any(self._loops.changes(leaf, flight.header) for leaf in leaves(literal[0]))
        if (lap == flight.then or lasts) and literal in self._conditions(flight.early.index, flight.header):
            return True
        if literal not in self._conditions(flight.late.index, flight.header):
            return False
        return lap == flight.now or self._held_before(literal, laps[lap], laps[flight.now], flight.header)

    def _held_before(self, literal: Literal, earlier: Assignment, later: Assignment, header: int) -> bool:
        """Whether a comparison that holds in a later lap held in the earlier one, by the way its sides move."""
        match literal:
            case Apply("lt", _, (first, second)), truth:
                low, high = (first, second) if truth else (second, first)
                return self._falls(low, later, earlier, header) and self._falls(high, earlier, later, header)
        return False

    def _falls(self, value: Value, first: Assignment, second: Assignment, header: int) -> bool:
        """Whether a value is at least as large under the first assignment as under the second."""
        if not any(self._loops.changes(leaf, header) for leaf in leaves(value)):
            return True
        before, after = first.number(value), second.number(value)
        return isinstance(before, int) and isinstance(after, int) and before >= after

    def _conditions(self, index: int, header: int) -> Sequence[Literal]:
        cfg = self._facts.cfg
        if not any(loop.header == header for loop in cfg.enclosing_loops(cfg.block_of[index])):
            return ()
        guard = self._facts.values.guard(index)
        conditions = self._loops.conditions(cfg.block_of[index], header)
        return [*conditions, *([] if guard is None else [guard])]
