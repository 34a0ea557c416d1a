"""Which mistake a conflict shows. Conflicts that share a place of the source come from one mistake.

What stands between the two accesses decides: the synchronization that leads from the first to the second, the commit of
the operation that makes the first, and the proxy fences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.execution.clock import (
    BULK,
    CP_ASYNC,
    MBARRIER,
    TENSOR_CORE,
    TENSOR_LOAD,
    TENSOR_STORE,
    WARP_LINE,
    WGMMA,
)
from ptxlint.execution.conflict import Access, Conflict, Failure, Space
from ptxlint.execution.engine import Execution
from ptxlint.execution.trace import Event, Kind
from ptxlint.execution.ways import RELEASES, Warps, is_by, place, warps_of
from ptxlint.ir import Instruction
from ptxlint.isa import Proxy


class Mistake(StrEnum):
    """What is wrong between two accesses; each belongs to one rule."""

    UNFENCED = "generic writes read by the async proxy without a fence"
    FENCED_ELSEWHERE = "the proxy fence is for another state space"
    FENCED_LATE = "the proxy fence comes after the barrier"
    WGMMA_UNCOMMITTED = "a wgmma in no group"
    WGMMA_RELEASED = "operands of a wgmma handed back before the wait"
    WGMMA_WAIT_LATE = "the wait for a wgmma comes after the barrier"
    MMA_UNCOMMITTED = "a tcgen05.mma that no commit announces to those who use its result"
    COPY_UNCOMMITTED = "a tcgen05.cp that no commit announces to those who use its result"
    COMMIT_UNWAITED = "a tensor-core operation whose commits nobody waits for"
    LOAD_RELEASED = "tensor memory handed back before wait::ld"
    STORE_RELEASED = "tensor memory handed over before wait::st"
    ADDRESS_UNPUBLISHED = "the address of tensor memory read before it is there"
    FREED_EARLY = "tensor memory freed while it is in use"
    GROUP = "a copy whose group is not waited for"
    UNDRAINED = "memory written while a copy into it is in flight"
    OVERLAP = "copies with different places that run into each other"
    RELAXED = "data handed over by a relaxed arrive or wait"
    LANES = "a lane releases for lanes that may not have come that far"
    UNACKNOWLEDGED = "a slot written again with no word from those who read it"
    SLICES = "slots that have bytes or columns in common"
    REUSED_EARLY = "a slot of a ring filled again before its readers are through"
    TENSOR_RELEASE_UNFENCED = "tensor memory handed over without a tcgen05 fence before the release"
    TENSOR_ACQUIRE_UNFENCED = "tensor memory taken over without a tcgen05 fence after the acquire"
    OVERWRITTEN = "generic reads overwritten by the async proxy without a fence"
    INIT_UNPUBLISHED = "an initialization that no release publishes"
    INVALIDATED = "an mbarrier invalidated while others may still use it"
    OVERLAID = "a copy over an mbarrier that nobody has invalidated"
    LAPPED = "an arrival that speaks for warps that may not have seen the phase"
    IDLE_LAPPED = "an arrival that speaks for warps that only wait and may not have seen the phase"
    MAP_UNRELEASED = "a tensor map changed without a release for its users"
    MAP_UNACQUIRED = "a changed tensor map used without an acquire"
    MAP_UNORDERED = "a tensor map used while it is changed"
    SHARED_RACE = "unordered accesses to shared memory"
    TENSOR_RACE = "unordered accesses to tensor memory"


_FENCES = frozenset({Failure.UNFENCED, Failure.FENCED_LATE})

_BY_FAILURE = {
    Failure.NOT_SENT: Mistake.TENSOR_RELEASE_UNFENCED,
    Failure.NOT_TAKEN: Mistake.TENSOR_ACQUIRE_UNFENCED,
    Failure.OVERWRITTEN: Mistake.OVERWRITTEN,
    Failure.UNPUBLISHED: Mistake.INIT_UNPUBLISHED,
    Failure.OVERLAID: Mistake.OVERLAID,
    Failure.INVALIDATED: Mistake.INVALIDATED,
    Failure.LAPPED: Mistake.LAPPED,
    Failure.IDLE_LAPPED: Mistake.IDLE_LAPPED,
    Failure.UNRELEASED: Mistake.MAP_UNRELEASED,
    Failure.UNACQUIRED: Mistake.MAP_UNACQUIRED,
}
"""The mistake where the failure alone tells it, and conflicts of other failures are no part of it."""

CONTESTED = frozenset({Mistake.TENSOR_RELEASE_UNFENCED, Mistake.TENSOR_ACQUIRE_UNFENCED, Mistake.OVERWRITTEN})
"""Mistakes by a reading of the ISA that not everybody shares."""


def connected(body: Sequence[Instruction], conflicts: Iterable[Conflict]) -> list[tuple[Conflict, ...]]:
    """Conflicts of one kind that share a place, directly or through others; the first of each came first in the run."""
    groups: list[tuple[set[object], list[Conflict]]] = []
    for conflict in conflicts:
        kind = (conflict.failure in _FENCES, _BY_FAILURE.get(conflict.failure), conflict.first.moment.line[0])
        marks: set[object] = {
            (*kind, "first", place(body, conflict.first)),
            (*kind, "second", place(body, conflict.second)),
        }
        members: list[Conflict] = []
        apart = []
        for group in groups:
            if group[0] & marks:
                marks |= group[0]
                members += group[1]
            else:
                apart.append(group)
        groups = [*apart, (marks, [*members, conflict])]
    return [tuple(members) for _, members in groups]


def mistake(conflicts: Sequence[Conflict], path: Sequence[Event], execution: Execution) -> Mistake:
    """The mistake that connected conflicts come from; `path` is that of the first of them."""
    first, second = conflicts[0].first, conflicts[0].second
    if conflicts[0].failure in _FENCES:
        if all(conflict.failure is Failure.FENCED_LATE for conflict in conflicts):
            return Mistake.FENCED_LATE
        ends = {conflict.second.point for conflict in conflicts} | {event.point for event in path if event.point >= 0}
        elsewhere = any(_fences_elsewhere(execution.cfg, conflict.first.point, ends) for conflict in conflicts)
        return Mistake.FENCED_ELSEWHERE if elsewhere else Mistake.UNFENCED
    if conflicts[0].failure in _BY_FAILURE:
        return _BY_FAILURE[conflicts[0].failure]
    if conflicts[0].failure is Failure.LANES:
        return Mistake.LANES
    line = first.moment.line[0]
    is_unannounced = line == TENSOR_CORE and not _waited_commits(first, execution)
    is_handed_back = line in (TENSOR_LOAD, TENSOR_STORE) and bool(path)
    for access in (first, second):
        row = isa.row(execution.body[access.point])
        if row is not None and row in _ALLOCATION and not is_unannounced and not is_handed_back:
            return _ALLOCATION[row]
    return _unordered(first, second, path, execution)


def _unordered(first: Access, second: Access, path: Sequence[Event], execution: Execution) -> Mistake:
    line = first.moment.line[0]
    if first.space is Space.GLOBAL:
        return Mistake.MAP_UNORDERED
    if line == WGMMA:
        return _wgmma(first, second, path, execution.conflict_events)
    if line == TENSOR_CORE:
        return _tensor_core(first, second, path, execution)
    if line == CP_ASYNC and first.is_write and second.is_write and second.moment.line[0] == WARP_LINE:
        return Mistake.UNDRAINED
    is_led = bool(path) or (first.agent.rank, first.warp) == (second.agent.rank, second.warp)
    if line in _OWN_WAITS and (is_led or first.space is not Space.TENSOR):
        return _OWN_WAITS[line]
    if line == WARP_LINE and any(is_relaxed(event, execution.body) for event in path):
        return Mistake.RELAXED
    is_both_copied = line == second.moment.line[0] == MBARRIER and first.is_write and second.is_write
    if is_both_copied and first.interval[0] != second.interval[0]:
        return Mistake.OVERLAP
    return Mistake.TENSOR_RACE if first.space is Space.TENSOR else Mistake.SHARED_RACE


_OWN_WAITS = {
    CP_ASYNC: Mistake.GROUP,
    BULK: Mistake.GROUP,
    TENSOR_LOAD: Mistake.LOAD_RELEASED,
    TENSOR_STORE: Mistake.STORE_RELEASED,
}
"""The mistake by the time line of the first access, where only the thread that made it can wait for it."""

_ALLOCATION = {
    next(row for row in isa.ROWS if row.name == "tcgen05.alloc"): Mistake.ADDRESS_UNPUBLISHED,
    next(row for row in isa.ROWS if row.name == "tcgen05.dealloc"): Mistake.FREED_EARLY,
}


def _wgmma(first: Access, second: Access, path: Sequence[Event], events: Sequence[Event]) -> Mistake:
    """Operands are still being read: by which way did the others, or the warp itself, come to touch them?"""
    own = warps_of(first.agent)
    if not any(e.kind is Kind.COMMIT and is_by(e, own) for e in events[first.when :]):
        return Mistake.WGMMA_UNCOMMITTED
    if not path and _waits_first(own, events[first.when :]):
        return Mistake.SHARED_RACE
    between = path or [e for e in events[first.when : second.when] if e.kind in RELEASES and is_by(e, own)]
    release = next((event for event in between if event.kind in RELEASES), None)
    return Mistake.WGMMA_RELEASED if release is None or release.kind is Kind.ARRIVE else Mistake.WGMMA_WAIT_LATE


def _waits_first(warps: Warps, events: Sequence[Event]) -> bool:
    """Whether warps wait for the groups that they commit before they release anything."""
    commits = 0
    for event in events:
        if is_by(event, warps):
            commits += event.kind is Kind.COMMIT
            if event.kind in RELEASES:
                return False
            if event.kind is Kind.WAIT_GROUP and event.amount < commits:
                return True
    return False


def _commits(first: Access, execution: Execution) -> list[Event]:
    """The tcgen05.commit of the thread that made an access, after it."""
    own = first.agent.threads[0]
    return [
        event
        for event in execution.conflict_events[first.when :]
        if event.kind is Kind.COPY and event.agent is not None and event.amount == 0
        if event.agent.rank == first.agent.rank and own in event.agent.threads
    ]


def _waited_commits(first: Access, execution: Execution, by: Warps | None = None) -> list[Event]:
    """Those of them to barriers that somebody, or one of these warps, waits on or looks at."""
    looks = (event for event in execution.conflict_events if event.kind in (Kind.WAIT, Kind.POLL))
    asked = {event.object for event in looks if by is None or is_by(event, by)}
    return [event for event in _commits(first, execution) if event.object in asked]


def _tensor_core(first: Access, second: Access, path: Sequence[Event], execution: Execution) -> Mistake:
    instruction = execution.body[first.point]
    commits = _commits(first, execution)
    if commits and not _waited_commits(first, execution):
        return Mistake.COMMIT_UNWAITED
    announced = _waited_commits(first, execution, warps_of(second.agent))
    if (path and commits) or any(commit.order < second.when for commit in announced):
        return Mistake.SHARED_RACE if first.space is Space.SHARED else Mistake.TENSOR_RACE
    return Mistake.COPY_UNCOMMITTED if instruction.modifiers[:1] == ("cp",) else Mistake.MMA_UNCOMMITTED


def is_relaxed(event: Event, body: Sequence[Instruction]) -> bool:
    """Whether an event is an arrive or a wait at an mbarrier that orders nothing."""
    at_mbarrier = event.kind in (Kind.ARRIVE, Kind.WAIT) and event.agent is not None
    return at_mbarrier and isa.semantics(body[event.point]) == "relaxed"


def _fences_elsewhere(cfg: Cfg, first: int, ends: Collection[int]) -> bool:
    """Whether an async proxy fence that does not cover shared memory stands on a way from an access to an end."""
    for point, instruction in enumerate(cfg.body):
        coverage = isa.covers(instruction)
        if coverage is None or coverage.after is not Proxy.ASYNC or "shared::cta" in coverage.spaces:
            continue
        if reaches(cfg, first, point) and any(reaches(cfg, point, end) for end in ends):
            return True
    return False


def reaches(cfg: Cfg, start: int, goal: int) -> bool:
    """Whether control can come from behind one instruction to another."""
    block, target = cfg.block_of[start], cfg.block_of[goal]
    if block == target and start < goal:
        return True
    seen: set[int] = set()
    waiting = [block]
    while waiting:
        for edge in cfg.blocks[waiting.pop()].successors:
            if edge.target == target:
                return True
            if edge.target not in seen:
                seen.add(edge.target)
                waiting.append(edge.target)
    return False
