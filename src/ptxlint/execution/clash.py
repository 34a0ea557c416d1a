"""Conflicts that one mistake causes, told for people: who touches which bytes, what stands between, what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ptxlint.classes import dataclass
from ptxlint.execution.clock import BULK, CP_ASYNC, MBARRIER, TENSOR_CORE, WARP_LINE, warp_of
from ptxlint.execution.conflict import Access, Conflict, Failure, Interval, Space, merged
from ptxlint.execution.conflict_kinds import (
    Mistake,
    connected,
    is_relaxed,
    mistake,
)
from ptxlint.execution.engine import Execution
from ptxlint.execution.reuse import Return, Reuse, causes
from ptxlint.execution.story import Names, counted, in_words
from ptxlint.execution.strand import WARP
from ptxlint.execution.trace import Event, Kind
from ptxlint.execution.ways import RELEASES, Place, between, origin, path, place, warps_of
from ptxlint.ir import Instruction
from ptxlint.rule import Finding, Related, Severity, Step

COLUMN_BITS = 16

_COMPLETIONS = {
    MBARRIER: "wait at the mbarrier of the copy before",
    TENSOR_CORE: "commit to an mbarrier after the operation, and wait there before",
    CP_ASYNC: "let the copying threads wait for the group and then meet the others at a barrier",
    BULK: "let the copying thread wait for the group and then meet the others at a barrier",
}
"""What orders others after an asynchronous access, by its time line."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Conflicts that one mistake causes.

    `path` is the synchronization from the first access to the second; `reuse` says how a slot comes back too early,
    where that is the mistake.
    """

    mistake: Mistake
    conflicts: tuple[Conflict, ...]
    execution: Execution
    names: Names
    path: tuple[Event, ...]
    is_guessed: bool
    reuse: Reuse | None = None

    @property
    def first(self) -> Access:
        """The access that came first in the run."""
        return self.conflicts[0].first

    @property
    def second(self) -> Access:
        """The access that came too early for it."""
        return self.conflicts[0].second

    @property
    def early(self) -> str:
        """What the second access does, for the subject of a sentence: `thread 0 reads tile+128`."""
        return f"{self.second.agent} {self.verb} {self.memory} (`{self.text(self.second)}`)"

    @property
    def unfinished(self) -> str:
        """The first access: `the write by warps 0-3 (`st.shared`)`."""
        return f"the {'write' if self.first.is_write else 'read'} by {self.first.agent} (`{self.text(self.first)}`)"

    @property
    def memory(self) -> str:
        """Where both touch memory, from the lowest place on: `tile+128`, `columns 0-15 of tensor memory`."""
        if self.first.space is Space.GLOBAL:
            return "the tensor map"
        common = merged(_common(conflict) for conflict in self.conflicts)
        return self._memory(common) if self.first.space is Space.TENSOR else self.names.memory(common[0][0])

    def text(self, access: Access) -> str:
        """The opcode of an access with its modifiers in short: `st.shared`, `cp.async.bulk`."""
        return _name(self.execution.body[access.point])

    @property
    def release(self) -> Event | None:
        """The synchronization after the first access by which others learn of it."""
        return next((event for event in self.path if event.kind in RELEASES), None)

    @property
    def premature(self) -> Event | None:
        """The arrival just before a write by which another write follows, where nothing after it leads there."""
        first, second = self.first, self.second
        if self.path or not (first.is_write and second.is_write):
            return None
        own, events = origin(first), self.execution.conflict_events
        for event in reversed(events[: first.when]):
            if event.agent is None or own.isdisjoint(warps_of(event.agent)):
                continue
            if event.kind is Kind.WAIT:
                return None
            if event.kind is Kind.ARRIVE:
                way = between(events, own, warps_of(second.agent), event.order, second.when)
                return event if way and way[0] is event else None
        return None

    @property
    def hasty(self) -> Event | None:
        """The first arrival after the first access by one of the warps that wait where it was made."""
        events = self.execution.conflict_events
        waits = (e.agent for e in events if e.kind is Kind.WAIT and e.point == self.first.point)
        beside = frozenset(warp for agent in waits if agent is not None for warp in warps_of(agent))
        return next(
            (e for e in events[self.first.when :] if e.kind is Kind.ARRIVE and e.agent and warps_of(e.agent) <= beside),
            None,
        )

    @property
    def is_copied(self) -> bool:
        """Whether cp.async makes all the first accesses."""
        return all(conflict.first.moment.line[0] == CP_ASYNC for conflict in self.conflicts)

    @property
    def verb(self) -> str:
        """What the second access does: `writes`, or `write` where several warps or threads do."""
        return _agreeing("writes" if self.second.is_write else "reads", self.later)

    @property
    def later(self) -> str:
        """Who makes the second access: `warps 0-3`."""
        return str(self.second.agent)

    @property
    def late_wait(self) -> int | None:
        """The wait that covers the group of the first access and comes right after the release, if there is one."""
        release = self.release
        if release is None:
            return None
        commits = 0
        for event in self.execution.conflict_events[self.first.when :]:
            if not _is_by_warp(event, self.first):
                continue
            commits += event.kind is Kind.COMMIT
            if event.kind in RELEASES and event.order > release.order and event.kind is release.kind:
                return None
            if event.kind is Kind.WAIT_GROUP and event.order > release.order and commits > event.amount:
                return event.point
        return None

    @property
    def remedy(self) -> str:
        """How the two come to be ordered, by what completes the first."""
        line = self.first.moment.line[0]
        if line in _COMPLETIONS:
            return _COMPLETIONS[line]
        if self.path:
            return "let the first access be over before that release"
        return f"let {self.first.agent} arrive at a barrier after it, and {self.second.agent} wait there before"

    @property
    def weak(self) -> int | None:
        """The arrive or wait on the way that hands nothing over."""
        return next((event.point for event in self.path if is_relaxed(event, self.execution.body)), None)

    @property
    def way(self) -> str:
        """How the second access comes to follow the first: the release in words."""
        release = self.release
        if release is None:
            return ""
        verb, space, rest = in_words(release, self.execution.body, self.names).partition(" ")
        return f"{release.agent} {_agreeing(verb, str(release.agent))}{space}{rest}"

    @property
    def is_shared(self) -> bool:
        """Whether it is about shared memory, and not about tensor memory."""
        return self.first.space is Space.SHARED

    @property
    def handed(self) -> str:
        """The mbarrier by which the first access learned of what it reads; empty where it was none."""
        return self._barrier(self.reuse.handed if self.reuse else None)

    @property
    def returned(self) -> str:
        """The mbarrier at which the warp of the first access arrives after it; empty where it does not."""
        return self._barrier(self.reuse.release if self.reuse else None)

    def _barrier(self, event: Event | None) -> str:
        return "" if event is None else self.names.target(self.execution.body[event.point], event.object)

    def finding(self, message: str, fix: str, at: int | None = None, *, is_contested: bool = False) -> Finding:
        """The finding that says so, at a point of the body or else at the second access.

        A warning where it is contested, and for unordered accesses where the launch shape is guessed.
        """
        is_weak = is_contested or (self.is_guessed and self.conflicts[0].failure is Failure.UNORDERED)
        body = self.execution.body
        span = body[self.second.point if at is None else at].span
        return Finding(
            span,
            message,
            fix,
            tuple(dict.fromkeys(related for related in self._related() if related.span != span)),
            tuple(self._witness()),
            self.execution.assumptions,
            Severity.WARNING if is_weak else None,
        )

    def _related(self) -> Iterator[Related]:
        body = self.execution.body
        for accesses in _by_place(body, (conflict.first for conflict in self.conflicts)):
            yield Related(body[accesses[0].point].span, f"first {_done(accesses)}, by {accesses[0].agent}")
        release = self.release
        if release is not None:
            yield Related(body[release.point].span, f"then {self.way}")
        for accesses in _by_place(body, (conflict.second for conflict in self.conflicts)):
            yield Related(body[accesses[0].point].span, f"then {_done(accesses)}, by {accesses[0].agent}")

    def _witness(self) -> Iterator[Step]:
        body = self.execution.body
        yield self._step(self.first)
        for event in self.path:
            if event.point >= 0:
                yield Step(str(event.agent or "hardware"), body[event.point].span, in_words(event, body, self.names))
        yield self._step(self.second)

    def _step(self, access: Access) -> Step:
        instruction = self.execution.body[access.point]
        verb = "writes" if access.is_write else "reads"
        return Step(
            str(access.agent), instruction.span, f"{_name(instruction)} {verb} {self._memory([access.interval])}"
        )

    def _memory(self, intervals: Sequence[Interval]) -> str:
        if self.first.space is Space.GLOBAL:
            return "the tensor map"
        if self.first.space is Space.TENSOR:
            columns = sorted({c & (1 << COLUMN_BITS) - 1 for start, stop in intervals for c in (start, stop - 1)})
            named = f"{columns[0]}-{columns[-1]}" if len(columns) > 1 else f"{columns[0]}"
            return f"{'columns' if len(columns) > 1 else 'column'} {named} of tensor memory"
        total = sum(stop - start for start, stop in intervals)
        return f"{counted(total, 'byte')} of {self.names.memory(intervals[0][0])}"


def contested(execution: Execution, *, is_guessed: bool) -> tuple[Clash, ...]:
    """The contested conflicts of a kernel by mistake."""
    if not execution.contested or execution.defects:
        return ()
    names = Names.of(execution)
    found = []
    for conflicts in connected(execution.body, execution.contested):
        way = path(conflicts[0], execution.conflict_events)
        kind = mistake(conflicts, way, execution)
        found.append(Clash(kind, conflicts, execution, names, way, is_guessed))
    return tuple(found)


def clashes(execution: Execution, *, is_guessed: bool) -> tuple[Clash, ...]:
    """The other conflicts of a kernel by mistake; is_guessed: nobody states the launch."""
    names = Names.of(execution)
    found = []
    if not execution.conflicts:
        return ()
    hinges = bool(execution.defects) and not any(defect.is_certain for defect in execution.defects)
    told = tuple(_without_mirrored(execution.conflicts))
    for conflicts, again in causes(connected(execution.body, told), execution):
        if again is not None:
            conflicts = (again.conflict, *(c for c in conflicts if c is not again.conflict))
        elif execution.defects:
            continue
        way = path(conflicts[0], execution.conflict_events)
        kind = mistake(conflicts, way, execution) if again is None else _by_reuse(again)
        found.append(Clash(kind, conflicts, execution, names, way, is_guessed or hinges, again))
    return tuple(found)


def _without_mirrored(conflicts: Sequence[Conflict]) -> Iterator[Conflict]:
    """Conflicts without those of a write with a read after it that show the other way round as well.

    Where the write of the next lap of a loop waits for no read of this one, it may also overtake one.
    """
    overwritten = {(c.first.point, c.second.point) for c in conflicts if c.second.is_write and not c.first.is_write}
    for conflict in conflicts:
        first, second = conflict.first, conflict.second
        is_by_warp = first.is_write and not second.is_write and first.moment.line[0] == WARP_LINE
        if not is_by_warp or (second.point, first.point) not in overwritten:
            yield conflict


def _by_reuse(again: Reuse) -> Mistake:
    if again.why is Return.OVERLAP:
        return Mistake.SLICES
    return Mistake.UNACKNOWLEDGED if again.is_single else Mistake.REUSED_EARLY


def _agreeing(verb: str, subject: str) -> str:
    """A verb of the third person, as several warps or threads take it where the subject is such."""
    return verb.removesuffix("s") if re.match(r"\d|\w+s ", subject) else verb


def _is_by_warp(event: Event, access: Access) -> bool:
    """Whether the warp that made an access took part in an event."""
    who = event.agent
    warp = warp_of(access.moment.line)
    return who is not None and who.rank == access.agent.rank and any(t // WARP == warp for t in who.threads)


def _common(conflict: Conflict) -> Interval:
    (start, stop), (other_start, other_stop) = conflict.first.interval, conflict.second.interval
    return max(start, other_start), min(stop, other_stop)


def _by_place(body: Sequence[Instruction], accesses: Iterable[Access]) -> list[list[Access]]:
    places: dict[Place, list[Access]] = {}
    for access in accesses:
        places.setdefault(place(body, access), []).append(access)
    return list(places.values())


def _done(accesses: Sequence[Access]) -> str:
    copies = len({access.point for access in accesses})
    verb = "written" if accesses[0].is_write else "read"
    return f"{verb} here{f' ({copies} copies of the line)' if copies > 1 else ''}"


def _name(instruction: Instruction) -> str:
    """`st.shared`, `cp.async.bulk`, `tcgen05.mma`: without types, sizes and mechanisms."""
    kept = []
    for modifier in instruction.modifiers:
        if "::" in modifier or modifier in ("sync", "global", "cta_group"):
            break
        kept.append(modifier)
    return ".".join((instruction.opcode, *kept[:3]))
