"""Slots that are filled again: what a writer has heard of those who read the slot before.

A filling is what one writer puts into a slot before it hands the slot over: the copies of one phase of an mbarrier, the
`cp.async` of one group, the stores between two releases. A read meets the filling after its own when the way back from
reader to writer is missing, or leads back from an earlier filling or from another reader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum

from ptxlint.classes import dataclass
from ptxlint.execution.clock import MBARRIER, TENSOR_CORE, WARP_LINE, WGMMA, Moment
from ptxlint.execution.conflict import Access, Conflict, Failure, Space
from ptxlint.execution.engine import Execution
from ptxlint.execution.strand import WARP, WARPS_PER_GROUP
from ptxlint.execution.trace import Agent, Event, Kind
from ptxlint.execution.ways import between, completion, origin, place, warps_of


class Return(StrEnum):
    """Why a slot comes back to its writer too early."""

    BEFORE_READ = "the reader hands the slot back before it reads"
    NOTHING = "nothing leads from the readers to the writer"
    OTHER_READER = "the writer waits for another reader alone"
    OTHER_FILLING = "the writer waits for the reads of an earlier filling"
    MORE_BARRIERS = "the barriers go round a longer ring than the slots"
    OVERLAP = "the slots have bytes in common"


@dataclass(frozen=True, slots=True)
class Reuse:
    """A slot that is filled again before its readers are through.

    `slots` is after how many fillings the same bytes come round, `heard` how many fillings ago the newest one is whose
    reads the writer waits for, or after how many the barriers come round; 0 where it is not known. `handed` is the
    event by which the reader learned of what it reads; `release` its first arrival at an mbarrier after the read, or
    the one that comes too early.
    `unheard` are the readers that the writer does not wait for, where it waits for others (`awaited`). Slots with bytes
    (columns) in common lie `stride` of them apart and have `extent` of them.
    """

    conflict: Conflict
    why: Return
    slots: int = 0
    heard: int = 0
    handed: Event | None = None
    release: Event | None = None
    unheard: Agent | None = None
    awaited: Agent | None = None
    stride: int = 0
    extent: int = 0

    @property
    def is_single(self) -> bool:
        """Whether it is a single slot, and nothing leads from its readers to the writer."""
        return self.why is Return.NOTHING and self.slots <= 1


def reuse(conflicts: Iterable[Conflict], execution: Execution) -> Reuse | None:
    """How a slot comes back too early, if that is what conflicts show."""
    conflicts = tuple(conflicts)
    found = (look(conflict, execution) for look in (_overlap, _reuse) for conflict in conflicts)
    return next((each for each in found if each is not None), None)


def _overlap(conflict: Conflict, execution: Execution) -> Reuse | None:
    """Slots that run into each other; only asynchronous writes are as long as a slot."""
    if conflict.failure is not Failure.UNORDERED:
        return None
    for access in (conflict.second, conflict.first):
        if not access.is_write or access.moment.line[0] not in (MBARRIER, TENSOR_CORE):
            continue
        start, stop = access.interval
        others = {
            other.interval[0]
            for other in execution.conflict_accesses
            if other.is_write and other.interval[1] - other.interval[0] == stop - start
            if other.warp == access.warp and _is_of_ring(other, access, execution)
        }
        strides = [abs(other - start) for other in others if 0 < abs(other - start) < stop - start]
        if strides:
            return Reuse(conflict, Return.OVERLAP, stride=min(strides), extent=stop - start)
    return None


def _reuse(conflict: Conflict, execution: Execution) -> Reuse | None:
    first, second, filled = conflict.first, conflict.second, conflict.filled
    is_refill = conflict.failure is Failure.UNORDERED and filled is not None and first.space is Space.SHARED
    if not is_refill or filled is None or conflict.is_own or not _is_same_writer(filled, second, execution):
        return None
    events = execution.conflict_events
    forward = between(events, completion(filled), origin(first), filled.when, first.when)
    if not forward:
        return None
    handed = next((event for event in reversed(forward) if event.kind is Kind.WAIT), None)
    fillings = _fillings(filled, second, execution)
    slots = _distance(fillings, filled, second)
    places = {a.moment.line for a in fillings if a.interval == second.interval and a.moment.line[0] == MBARRIER}
    release = _release(first, events)
    if len(places) > 1:
        return Reuse(conflict, Return.MORE_BARRIERS, slots, len(places), handed, release)
    goal = frozenset({(second.agent.rank, second.warp)})
    back = between(events, origin(first), goal, handed.order if handed else first.when, second.when)
    if back:
        is_premature = back[0].kind is Kind.ARRIVE and back[0].order < first.when
        return Reuse(conflict, Return.BEFORE_READ, slots, 0, handed, back[0]) if is_premature else None
    unheard, awaited = _readers(conflict, filled, execution)
    if awaited:
        late, known = (Agent(first.agent.rank, tuple(sorted(threads))) for threads in (unheard, awaited))
        return Reuse(conflict, Return.OTHER_READER, slots, 0, handed, release, late, known)
    last = max((access.when for access in fillings), default=second.when)
    if not between(events, origin(first), goal, filled.when, last):
        return Reuse(conflict, Return.NOTHING, slots, 0, handed, release)
    if slots > 1 or handed is not None:
        return Reuse(conflict, Return.OTHER_FILLING, slots, _heard(fillings, conflict, execution), handed, release)
    return None


def _is_same_writer(filled: Access, second: Access, execution: Execution) -> bool:
    """Whether two writes are one instruction's, or two that one agent uses for the same."""
    body = execution.body
    if place(body, filled) == place(body, second):
        return True
    return filled.agent == second.agent and _is_alike(filled, second, execution)


def _is_of_ring(one: Access, other: Access, execution: Execution) -> bool:
    """Whether two writes fill slots of one ring: one place of the source does, or two products do."""
    if one.space is Space.TENSOR and other.space is Space.TENSOR:
        return _is_alike(one, other, execution)
    return place(execution.body, one) == place(execution.body, other)


def _is_alike(one: Access, other: Access, execution: Execution) -> bool:
    """Whether two accesses are made by instructions of one name, as in unrolled code."""
    first, second = execution.body[one.point], execution.body[other.point]
    return (first.opcode, first.modifiers) == (second.opcode, second.modifiers)


def _readers(conflict: Conflict, filled: Access, execution: Execution) -> tuple[set[int], set[int]]:
    """The threads that read the filling and that the writer has not, and has, heard of; only the first one's CTA."""
    first, second = conflict.first, conflict.second
    last: dict[int, Access] = {}
    for access in execution.conflict_accesses:
        is_reader = not access.is_write and access.agent.rank == first.agent.rank and _meet(access, filled)
        if is_reader and filled.when <= access.when <= second.when and access.warp != second.warp:
            last[access.warp] = access
    if conflict.heard is not None:
        last.setdefault(conflict.heard.warp, conflict.heard)
    goal = frozenset({(second.agent.rank, second.warp)})
    unheard, heard = _lanes(first), set[int]()
    for read in last.values():
        is_heard = between(execution.conflict_events, origin(read), goal, read.when, second.when)
        (heard if is_heard else unheard).update(_lanes(read))
    return unheard, heard - unheard


def _lanes(access: Access) -> set[int]:
    """The threads of the warp that made an access; for wgmma of its warpgroup, whose first warp stands for all."""
    if access.moment.line[0] == WGMMA:
        return set(range(access.warp * WARP, (access.warp + WARPS_PER_GROUP) * WARP))
    return {thread for thread in access.agent.threads if thread // WARP == access.warp}


def _release(first: Access, events: Sequence[Event]) -> Event | None:
    """The first arrival of the reader's warp at an mbarrier after its read."""
    own = origin(first)
    for event in events[first.when :]:
        is_arrival = event.kind in (Kind.ARRIVE, Kind.COPY) and event.agent is not None
        if is_arrival and event.agent is not None and not own.isdisjoint(warps_of(event.agent)):
            return event
    return None


def _fillings(filled: Access, second: Access, execution: Execution) -> list[Access]:
    """The writes of the second one's warp at the places of both, one for each moment and slot, in order.

    Asynchronous writes by instructions of the same name count as well.
    """
    body = execution.body
    here = {place(body, filled), place(body, second)}
    is_asynchronous = second.moment.line[0] != WARP_LINE
    found: dict[tuple[Moment, int], Access] = {}
    for access in execution.conflict_accesses:
        is_own = access.is_write and (access.agent.rank, access.warp) == (second.agent.rank, second.warp)
        is_alike = is_asynchronous and _is_alike(access, second, execution)
        if is_own and (is_alike or place(body, access) in here):
            found.setdefault((access.moment, access.interval[0]), access)
    return list(found.values())


def _distance(fillings: Sequence[Access], filled: Access, second: Access) -> int:
    """How many fillings after the one the bytes are filled again; 0 where that cannot be told."""
    moments = list(dict.fromkeys(access.moment for access in fillings if access.when <= second.when))
    if filled.moment not in moments or second.moment not in moments:
        return 0
    return moments.index(second.moment) - moments.index(filled.moment)


def _heard(fillings: Sequence[Access], conflict: Conflict, execution: Execution) -> int:
    """How many fillings ago the newest one is whose reads the writer has heard of, when the run has got far."""
    first, second = conflict.first, conflict.second
    here = place(execution.body, first)
    goal = frozenset({(second.agent.rank, second.warp)})
    moments = list(dict.fromkeys(access.moment for access in fillings))
    last = fillings[-1].when
    for read in reversed(execution.conflict_accesses):
        is_own = not read.is_write and (read.agent.rank, read.warp) == (first.agent.rank, first.warp)
        if not is_own or read.when >= last or place(execution.body, read) != here:
            continue
        of = [access.moment for access in fillings if access.when <= read.when and _meet(access, read)]
        if of and between(execution.conflict_events, origin(read), goal, read.when, last):
            return len(moments) - 1 - moments.index(of[-1])
    return 0


def _meet(one: Access, other: Access) -> bool:
    return one.interval[0] < other.interval[1] and other.interval[0] < one.interval[1]


def causes(
    groups: Sequence[tuple[Conflict, ...]], execution: Execution
) -> Iterator[tuple[tuple[Conflict, ...], Reuse | None]]:
    """Groups of conflicts with the reuse that each shows, without those that follow from another group.

    A slot that is filled too early is also overwritten before others have read it; a read that nobody holds back also
    comes before the writes that follow. Slots that run into each other are told once.
    """
    body = execution.body
    early = {(c.second.point, c.first.point) for conflicts in groups for c in conflicts if c.first.is_write}
    shown = [(conflicts, reuse(conflicts, execution)) for conflicts in groups]
    found = [(conflicts, None if _is_unready(again, early) else again) for conflicts, again in shown]
    written = {
        place(body, access)
        for conflicts, again in found
        for conflict in conflicts
        for access in (conflict.first, conflict.second)
        if again is not None and access.is_write
    }
    overlaps = [again for _, again in found if again is not None and again.why is Return.OVERLAP]
    for conflicts, again in found:
        if again in overlaps[1:]:
            continue
        is_unordered = again is None and all(conflict.failure is Failure.UNORDERED for conflict in conflicts)
        follows = is_unordered and all(
            any(access.is_write and place(body, access) in written for access in (conflict.first, conflict.second))
            or (not conflict.first.is_write and (conflict.first.point, conflict.second.point) in early)
            for conflict in conflicts
        )
        if not follows:
            yield conflicts, again


def _is_unready(again: Reuse | None, early: Collection[tuple[int, int]]) -> bool:
    """Whether what looks like a slot handed back before its read is a read that does not wait for the slot either.

    early: reads with the writes that they do not wait for.
    """
    if again is None or again.why is not Return.BEFORE_READ:
        return False
    return (again.conflict.first.point, again.conflict.second.point) in early
