"""Happens-before on a run: vector clocks of warps, one clock per asynchronous engine, and the accesses they order.

A time line is a warp, an mbarrier (its time is the number of completed phases) or a warp's groups of one kind (its
time is the number of completed groups). What a bulk copy or an MMA does happens at a time of the line that tracks its
completion, so that whoever waits for that time knows it to be done. Sources: PTX ISA, *Memory Consistency Model*
(Causality order), *Async Proxy*, *Completion Mechanisms*.

A clock holds for each line the last time that is known to be over; `fenced` the same for what a proxy fence has made
visible to the async proxy since, by whichever thread on the way; `strict` only where the writer itself fenced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from ptxlint.execution.layout import RANK_SHIFT
from ptxlint.execution.trace import Agent
from ptxlint.isa import Proxy

Line: TypeAlias = tuple[str, int, int]
"""A time line: its kind, the CTA's rank or 0, the warp or the address."""

Interval: TypeAlias = tuple[int, int]
"""Bytes of a memory, start included, stop excluded."""


class Space(StrEnum):
    """Which memory an access is to."""

    SHARED = "shared memory"
    TENSOR = "tensor memory"


class Failure(StrEnum):
    """What is missing between two conflicting accesses."""

    UNORDERED = "nothing orders them"
    UNFENCED = "no proxy fence between them"
    FENCED_LATE = "the proxy fence is not the writer's"


@dataclass(slots=True)
class Clock:
    """What one warp, or one phase of a barrier, knows to be over."""

    known: dict[Line, int] = field(default_factory=dict)
    fenced: dict[Line, int] = field(default_factory=dict)
    strict: dict[Line, int] = field(default_factory=dict)

    def join(self, other: Clock) -> None:
        """Learn all that another knows."""
        _raise(self.known, other.known)
        _raise(self.fenced, other.fenced)
        _raise(self.strict, other.strict)

    def copy(self) -> Clock:
        """A clock of its own with the same knowledge."""
        return Clock(self.known.copy(), self.fenced.copy(), self.strict.copy())


def _raise(mine: dict[Line, int], theirs: dict[Line, int]) -> None:
    for line, time in theirs.items():
        if mine.get(line, -1) < time:
            mine[line] = time


@dataclass(slots=True)
class Moment:
    """When an access is over: a time of a line; no line while nothing tracks it yet (an MMA before its commit)."""

    line: Line | None
    time: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """One access of one warp or engine to an interval."""

    space: Space
    interval: Interval
    is_write: bool
    proxy: Proxy
    moment: Moment
    point: int
    agent: Agent
    order: int
    is_atomic: bool = False
    what: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses to common bytes, at least one a write, without the order that they need; `first` came first."""

    failure: Failure
    first: Access
    second: Access


class Order:
    """The clocks of a run and its shadow memory. The machine reports to it; conflicts are in `conflicts`."""

    def __init__(self) -> None:
        self.clocks: dict[tuple[int, int], Clock] = {}
        self.phases: dict[tuple[int, int], Clock] = {}
        self.bars: dict[tuple[int, int, int], Clock] = {}
        self.clusters: dict[int, Clock] = {}
        self.groups: dict[Line, int] = {}
        self.uncommitted: dict[tuple[int, int], list[Moment]] = {}
        self.shadow: dict[Space, dict[int, list[Access]]] = {Space.SHARED: {}, Space.TENSOR: {}}
        self.conflicts: dict[tuple[Failure, int, int], Conflict] = {}
        self.count = 0

    def clock(self, rank: int, warp: int) -> Clock:
        """The clock of a warp."""
        found = self.clocks.get((rank, warp))
        if found is None:
            line = ("warp", rank, warp)
            found = self.clocks[rank, warp] = Clock({line: 1}, {}, {})
        return found

    def _warps(self, agent: Agent) -> Iterable[int]:
        return dict.fromkeys(thread // 32 for thread in agent.threads)

    def _tick(self, rank: int, warp: int, clock: Clock) -> None:
        clock.known["warp", rank, warp] = clock.known.get(("warp", rank, warp), 0) + 1

    # Synchronization

    def release(self, agent: Agent, target: Clock) -> None:
        """The warps of an agent make what they know known to a barrier."""
        for warp in self._warps(agent):
            clock = self.clock(agent.rank, warp)
            target.join(clock)
            self._tick(agent.rank, warp, clock)

    def acquire(self, agent: Agent, source: Clock) -> None:
        """The warps of an agent learn what a barrier knows."""
        for warp in self._warps(agent):
            self.clock(agent.rank, warp).join(source)

    def arrive(self, agent: Agent | None, address: int, phase: int) -> None:
        """An arrive-on of an mbarrier with release semantics."""
        if agent is not None:
            self.release(agent, self.phases.setdefault((address, phase), Clock()))

    def wait(self, agent: Agent, address: int, phase: int) -> None:
        """A wait has seen a phase complete."""
        if phase < 0:
            return
        source = self.phases.setdefault((address, phase), Clock())
        line = ("mbarrier", 0, address)
        for known in (source.known, source.fenced, source.strict):
            known[line] = max(known.get(line, 0), phase + 1)
        self.acquire(agent, source)

    def bar_arrive(self, agent: Agent, number: int, generation: int) -> None:
        """An arrival at a CTA barrier."""
        self.release(agent, self.bars.setdefault((agent.rank, number, generation), Clock()))

    def bar_leave(self, agent: Agent, number: int, generation: int) -> None:
        """The barrier has let an agent go."""
        self.acquire(agent, self.bars.setdefault((agent.rank, number, generation), Clock()))

    def cluster_arrive(self, agent: Agent, generation: int) -> None:
        """A releasing arrival at the cluster barrier."""
        self.release(agent, self.clusters.setdefault(generation, Clock()))

    def cluster_leave(self, agent: Agent, generation: int) -> None:
        """The cluster barrier has let an agent go."""
        self.acquire(agent, self.clusters.setdefault(generation, Clock()))

    def fence(self, agent: Agent) -> None:
        """fence.proxy.async for shared memory: what the warp knows is visible to the async proxy from here on."""
        for warp in self._warps(agent):
            clock = self.clock(agent.rank, warp)
            _raise(clock.fenced, clock.known)
            for line, time in clock.known.items():
                if line[1] == agent.rank and line[2] == warp and line[0] != "mbarrier":
                    clock.strict[line] = time
            self._tick(agent.rank, warp, clock)

    # Groups

    def commit(self, agent: Agent, kind: str) -> None:
        """The operations issued since the last commit are a group."""
        for warp in self._warps(agent):
            line = (kind, agent.rank, warp)
            self.groups[line] = self.groups.get(line, 0) + 1

    def wait_group(self, agent: Agent, kind: str, pending: int) -> None:
        """All but the newest `pending` groups are done, for the warps that wait."""
        for warp in self._warps(agent):
            line = (kind, agent.rank, warp)
            done = self.groups.get(line, 0) - pending
            clock = self.clock(agent.rank, warp)
            if done > clock.known.get(line, 0):
                clock.known[line] = done
                if kind != CP_ASYNC:
                    clock.fenced[line] = clock.strict[line] = done

    def in_group(self, rank: int, warp: int, kind: str) -> Moment:
        """When an operation that is issued now will be over: at the completion of the group that is being filled."""
        line = (kind, rank, warp)
        return Moment(line, self.groups.get(line, 0) + 1)

    def on_mbarrier(self, address: int, phase: int) -> Moment:
        """When an operation that an mbarrier tracks will be over: at the completion of the phase."""
        return Moment(("mbarrier", 0, address), phase + 1)

    def until_commit(self, agent: Agent) -> Moment:
        """When an MMA that is issued now will be over: nothing says so until its thread commits."""
        moment = Moment(None)
        self.uncommitted.setdefault((agent.rank, agent.threads[0]), []).append(moment)
        return moment

    def tensor_commit(self, agent: Agent, address: int, phase: int) -> None:
        """tcgen05.commit: the MMAs of the thread before it complete with this phase, and what they were ordered after."""
        for moment in self.uncommitted.pop((agent.rank, agent.threads[0]), ()):
            moment.line, moment.time = ("mbarrier", 0, address), phase + 1
        self.arrive(agent, address, phase)

    # Accesses

    def access(
        self,
        agent: Agent,
        warp: int,
        intervals: Sequence[Interval],
        point: int,
        *,
        is_write: bool,
        proxy: Proxy = Proxy.GENERIC,
        space: Space = Space.SHARED,
        moment: Moment | None = None,
        is_atomic: bool = False,
        what: str = "",
    ) -> None:
        """An access by a warp, or by an engine on its behalf; `moment` None: it is over when the warp goes on."""
        self.count += 1
        clock = self.clock(agent.rank, warp)
        line = ("warp", agent.rank, warp)
        over = moment or Moment(line, clock.known[line])
        for interval in intervals:
            made = Access(space, interval, is_write, proxy, over, point, agent, self.count, is_atomic, what)
            self._check(made, clock, is_async=moment is not None)

    def _check(self, made: Access, clock: Clock, *, is_async: bool) -> None:
        start, stop = made.interval
        cells = self.shadow[made.space].setdefault(_bank(made), [])
        kept: list[Access] = []
        for other in cells:
            if other.interval[0] >= stop or start >= other.interval[1]:
                kept.append(other)
                continue
            is_same = other.moment.line == made.moment.line and other.point == made.point
            if made.is_write or other.is_write:
                failure = self._failure(other, made, clock)
                if failure is not None:
                    self.conflicts.setdefault((failure, other.point, made.point), Conflict(failure, other, made))
            covered = start <= other.interval[0] and other.interval[1] <= stop
            if not (covered and (made.is_write or (is_same and not other.is_write))):
                kept.append(other)
        kept.append(made)
        self.shadow[made.space][_bank(made)] = kept
        del is_async

    def _failure(self, first: Access, second: Access, clock: Clock) -> Failure | None:
        if first.is_atomic and second.is_atomic:
            return None
        line = first.moment.line
        if line is None or clock.known.get(line, 0) < first.moment.time:
            return Failure.UNORDERED
        crosses = first.is_write and first.proxy is Proxy.GENERIC and second.proxy is Proxy.ASYNC
        if crosses and not second.is_write:
            if clock.fenced.get(line, 0) < first.moment.time:
                return Failure.UNFENCED
            if clock.strict.get(line, 0) < first.moment.time:
                return Failure.FENCED_LATE
        return None


CP_ASYNC = "cp.async"
BULK = "bulk"
WGMMA = "wgmma"
TENSOR_LOAD = "tcgen05.ld"
TENSOR_STORE = "tcgen05.st"

BANK_SHIFT = 12


def _bank(access: Access) -> int:
    return access.interval[0] >> RANK_SHIFT if access.space is Space.SHARED else access.agent.rank


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals, in order, without gaps or overlaps between them."""
    found: list[Interval] = []
    for start, stop in sorted(intervals):
        if found and start <= found[-1][1]:
            if stop > found[-1][1]:
                found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return found
