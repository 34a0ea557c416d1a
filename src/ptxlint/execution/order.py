"""Happens-before on a run: a clock for each warp and each phase of a barrier, and the accesses that they order.

Sources: PTX ISA, *Memory Consistency Model* (Causality order, Release and Acquire Patterns), *Async Proxy*, *Completion
Mechanisms*, *membar/fence*, *Memory Consistency Model for 5th generation of TensorCore operations*.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from ptxlint.execution.clock import (
    CP_ASYNC,
    TENSOR_CORE,
    TENSOR_LOAD,
    TENSOR_STORE,
    WARP_LINE,
    WGMMA,
    Clock,
    Line,
    Moment,
    advance,
    warp_of,
)
from ptxlint.execution.conflict import (
    CONTESTED,
    TENSOR_FENCES,
    Access,
    Conflict,
    Failure,
    Interval,
    Space,
    meet,
)
from ptxlint.execution.demands import missing
from ptxlint.execution.groups import Groups
from ptxlint.execution.lifetimes import Lifetimes
from ptxlint.execution.shadow import PAGE_SHIFT, Place, Shadow, Touch
from ptxlint.execution.strand import WARP, WARPS_PER_GROUP
from ptxlint.execution.trace import Agent
from ptxlint.isa import Proxy


class Order:
    """The clocks of a run and its shadow memory. The machine reports to it; conflicts are in `conflicts`.

    `history` keeps the accesses that are watched: by the place of the instruction, writes also by what makes them.
    """

    def __init__(self, watched: frozenset[int | str] = frozenset()) -> None:
        self.watched = watched
        self.history: list[Access] = []
        self.clocks: dict[tuple[int, int], Clock] = {}
        self.phases: dict[tuple[int, int], Clock] = {}
        self.bars: dict[tuple[int, int, int], Clock] = {}
        self.clusters: dict[int, Clock] = {}
        self.groups = Groups()
        self.epochs: dict[Line, int] = {}
        self.shadow: dict[Space, Shadow[Access]] = {space: Shadow() for space in Space}
        self.conflicts: dict[tuple[Failure, int, int], Conflict] = {}
        self.contested: dict[tuple[Failure, int, int], Conflict] = {}
        self.has_tensor_fences = False
        self.begun: dict[Line, int] = {}
        self.ready: dict[tuple[int, int], Clock] = {}
        self.waiting: dict[tuple[int, int], Clock] = {}
        self.multiplying: set[tuple[int, int]] = set()
        self.lifetimes = Lifetimes(self)
        self.touched: dict[tuple[int, int], int] = {}
        self.is_relaxed = False
        self.turns: dict[tuple[int, int, int], int] = {}
        self.lanes: dict[tuple[int, int], dict[frozenset[int], int]] = {}
        self.when = 0
        self._members: dict[Agent, dict[int, frozenset[int]]] = {}

    def clock(self, rank: int, warp: int) -> Clock:
        """The clock of a warp."""
        found = self.clocks.get((rank, warp))
        if found is None:
            line = ("warp", rank, warp)
            found = self.clocks[rank, warp] = Clock({line: 1}, {}, {}, {line: 1})
        return found

    def warps(self, agent: Agent) -> dict[int, frozenset[int]]:
        """The warps of an agent, each with the lanes that belong to it."""
        found = self._members.get(agent)
        if found is None:
            lanes: dict[int, list[int]] = {}
            for thread in agent.threads:
                lanes.setdefault(thread // 32, []).append(thread)
            found = self._members[agent] = {warp: frozenset(members) for warp, members in lanes.items()}
        return found

    def group_of(self, rank: int, warp: int) -> tuple[int, int]:
        """The warpgroup of a warp."""
        return rank, warp // WARPS_PER_GROUP

    def multiplies(self, rank: int, warp: int) -> bool:
        """Whether the warp's warpgroup has issued wgmma."""
        return self.group_of(rank, warp) in self.multiplying

    def _tick(self, rank: int, warp: int, clock: Clock) -> None:
        line = ("warp", rank, warp)
        clock.known[line] = clock.whole[line] = clock.known.get(line, 0) + 1

    # Synchronization

    def release(self, agent: Agent, target: Clock, *, relaxed: bool = False) -> None:
        """The warps of an agent make what they know known to a barrier."""
        self.is_relaxed |= relaxed
        for warp, lanes in self.warps(agent).items():
            clock = self.clock(agent.rank, warp)
            line = ("warp", agent.rank, warp)
            begun = [time for others, time in self.lanes.get((agent.rank, warp), {}).items() if not others <= lanes]
            if begun:
                clock.whole[line] = min(begun) - 1
            target.join(clock, relaxed=relaxed)
            if relaxed:
                target.join(self.ready.get((agent.rank, warp), NOTHING))
                advance(target.known, self.lifetimes.declared.get((agent.rank, warp), {}))
            self._tick(agent.rank, warp, clock)

    def converge(self, agent: Agent) -> None:
        """The lanes of an agent's warps have come together: each knows what the others did."""
        if not self.lanes:
            return
        for warp in self.warps(agent):
            self.lanes.pop((agent.rank, warp), None)

    def acquire(self, agent: Agent, source: Clock, *, relaxed: bool = False) -> None:
        """The warps of an agent learn what a barrier knows."""
        self.is_relaxed |= relaxed
        for warp in self.warps(agent):
            self.clock(agent.rank, warp).join(source, relaxed=relaxed)
            if relaxed:
                self.waiting.setdefault((agent.rank, warp), Clock()).join(source)

    def fence_memory(self, agent: Agent, *, releases: bool, acquires: bool) -> None:
        """fence and membar: with a relaxed arrive after it a release pattern, after a relaxed wait an acquire pattern.

        Source: PTX ISA, *Release and Acquire Patterns*.
        """
        for warp in self.warps(agent):
            clock = self.clock(agent.rank, warp)
            if acquires:
                clock.join(self.waiting.pop((agent.rank, warp), NOTHING))
            if releases:
                self.ready[agent.rank, warp] = Clock()
                self.ready[agent.rank, warp].join(clock)
                self._tick(agent.rank, warp, clock)

    def arrive(self, agent: Agent | None, address: int, phase: int, *, relaxed: bool = False) -> None:
        """An arrive-on of an mbarrier."""
        if agent is not None:
            self.release(agent, self.phases.setdefault((address, phase), Clock()), relaxed=relaxed)

    def wait(self, agent: Agent, address: int, phase: int, *, relaxed: bool = False) -> None:
        """A wait has seen a phase complete."""
        if phase < 0:
            return
        source = self.phases.setdefault((address, phase), Clock())
        line = ("mbarrier", 0, address)
        for known in (source.known, source.fenced, source.strict, source.whole):
            known[line] = max(known.get(line, 0), phase + 1)
        self.lifetimes.complete(agent, address, phase, source)
        self.acquire(agent, source, relaxed=relaxed)

    def bar_arrive(self, agent: Agent, number: int, generation: int) -> None:
        """An arrival at a CTA barrier."""
        self.release(agent, self.bars.setdefault((agent.rank, number, generation), Clock()))

    def bar_leave(self, agent: Agent, number: int, generation: int) -> None:
        """The barrier has let an agent go. Nothing has happened to a warp of which all lanes waited."""
        self.converge(agent)
        source = self.bars.setdefault((agent.rank, number, generation), Clock())
        for warp, lanes in self.warps(agent).items():
            if len(lanes) == WARP:
                self.clock(agent.rank, warp).adopt(source, (WARP_LINE, agent.rank, warp))
            else:
                self.clock(agent.rank, warp).join(source)

    def cluster_arrive(self, agent: Agent, generation: int, *, relaxed: bool) -> None:
        """An arrival at the cluster barrier."""
        self.release(agent, self.clusters.setdefault(generation, Clock()), relaxed=relaxed)

    def cluster_leave(self, agent: Agent, generation: int) -> None:
        """The cluster barrier has let an agent go."""
        self.converge(agent)
        self.acquire(agent, self.clusters.setdefault(generation, Clock()))

    def fence(self, agent: Agent) -> None:
        """fence.proxy.async for shared memory: what the warp knows is visible to the async proxy from here on."""
        for warp in self.warps(agent):
            clock = self.clock(agent.rank, warp)
            advance(clock.fenced, clock.known)
            for line, time in clock.known.items():
                if line[1] == agent.rank and warp_of(line) == warp and line[0] != "mbarrier":
                    clock.strict[line] = time
            self._tick(agent.rank, warp, clock)

    def release_maps(self, agent: Agent) -> None:
        """fence.proxy.tensormap release: changes of tensor maps so far can be acquired."""
        for warp in self.warps(agent):
            clock = self.clock(agent.rank, warp)
            advance(clock.mapped, {line: time for line, time in clock.known.items() if line[0] == WARP_LINE})
            self._tick(agent.rank, warp, clock)

    def acquire_map(self, agent: Agent, address: int) -> None:
        """fence.proxy.tensormap acquire: released changes of the map there are visible to its uses from here on."""
        for warp in self.warps(agent):
            clock = self.clock(agent.rank, warp)
            clock.acquired.update({(line, address): time for line, time in clock.mapped.items()})

    def fence_tensor_memory(self, agent: Agent, *, before: bool) -> None:
        """tcgen05.fence::before_thread_sync or ::after_thread_sync."""
        self.has_tensor_fences = True
        for warp, lanes in self.warps(agent).items():
            if before:
                self._hand_over(agent.rank, warp, lanes)
            else:
                self.clock(agent.rank, warp).take_over()

    def _hand_over(self, rank: int, warp: int, threads: frozenset[int]) -> None:
        """What a warp, or these of its threads, have done to tensor memory so far may be handed over."""
        sent = self.clock(rank, warp).sent
        for line in ((TENSOR_LOAD, rank, warp), (TENSOR_STORE, rank, warp)):
            if line in self.begun:
                sent[line] = self.begun[line]
        for thread in threads:
            line = (TENSOR_CORE, rank, thread)
            if line in self.begun:
                sent[line] = self.close(line)

    def doubtful(self) -> tuple[Conflict, ...]:
        """The contested conflicts; a kernel that fences tensor memory nowhere does not mean to."""
        found = self.contested.values()
        return tuple(c for c in found if self.has_tensor_fences or c.failure not in TENSOR_FENCES)

    # Groups

    def commit(self, agent: Agent, kind: str) -> None:
        """The operations issued since the last commit are a group."""
        for warp, lanes in self.warps(agent).items():
            self.groups.commit(kind, agent.rank, warp, lanes)

    def close(self, line: Line) -> int:
        """End the epoch in which operations are gathered; its number."""
        epoch = self.epochs[line] = self.epochs.get(line, 0) + 1
        return epoch

    def wait_group(self, agent: Agent, kind: str, pending: int) -> None:
        """All but the newest `pending` groups are done, for the threads that wait."""
        for warp, lanes in self.warps(agent).items():
            clock = self.clock(agent.rank, warp)
            for line, done in self.groups.wait(kind, agent.rank, warp, lanes, pending):
                if done > clock.known.get(line, 0):
                    clock.known[line] = clock.whole[line] = done
                    if kind != CP_ASYNC:
                        clock.fenced[line] = clock.strict[line] = done

    def in_group(self, agent: Agent, warp: int, kind: str) -> Moment:
        """When an operation that threads of a warp issue now will be over: when the group that they fill is."""
        return self.groups.moment(kind, agent.rank, warp, self.warps(agent)[warp])

    def copies_arrive(self, agent: Agent, address: int, phase: int) -> None:
        """cp.async.mbarrier.arrive: the phase completes after the cp.async that the warps have issued so far."""
        clock = self.phases.setdefault((address, phase), Clock())
        for warp, lanes in self.warps(agent).items():
            for line, done in self.groups.arrive(CP_ASYNC, agent.rank, warp, lanes):
                clock.known[line] = clock.whole[line] = done
        self.arrive(agent, address, phase)

    def issue(self, agent: Agent, address: int, phase: int) -> None:
        """A copy that the phase of an mbarrier tracks is issued by the first warp of an agent."""
        clock = self.clock(agent.rank, agent.threads[0] // 32)
        target = self.phases.setdefault((address, phase), Clock())
        advance(target.issued, clock.known)
        advance(target.issued, clock.issued)

    def on_mbarrier(self, address: int, phase: int) -> Moment:
        """When an operation that an mbarrier tracks will be over: at the completion of the phase."""
        return Moment(("mbarrier", 0, address), phase + 1)

    def until_commit(self, agent: Agent) -> Moment:
        """When an MMA that is issued now will be over: with whatever its thread's next commits complete."""
        line = (TENSOR_CORE, agent.rank, agent.threads[0])
        return Moment(line, self.epochs.get(line, 0) + 1)

    def tensor_commit(self, agent: Agent, address: int, phase: int) -> None:
        """tcgen05.commit: the phase completes after all MMAs of the thread so far, and what they were ordered after."""
        line = (TENSOR_CORE, agent.rank, agent.threads[0])
        clock = self.phases.setdefault((address, phase), Clock())
        epoch = self.close(line)
        for known in (clock.known, clock.fenced, clock.strict, clock.whole, clock.sent):
            known[line] = max(known.get(line, 0), epoch)
        for warp, lanes in self.warps(agent).items():
            self._hand_over(agent.rank, warp, lanes)
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
        otherwise: Moment | None = None,
    ) -> None:
        """An access by a warp, or by an engine on its behalf; `moment` None: it is over when the warp goes on."""
        clock = self.clock(agent.rank, warp)
        line = ("warp", agent.rank, warp)
        self.touched[agent.rank, warp] = self.when
        turn = self.turns[point, agent.rank, warp] = self.turns.get((point, agent.rank, warp), 0) + 1
        if moment is None:
            self._note_lanes(agent, warp, clock)
        if moment is not None and moment.line[0] == WGMMA:
            self.multiplying.add(self.group_of(agent.rank, warp))
        over = moment or Moment(line, clock.known[line])
        if space is Space.TENSOR:
            self.begun[over.line] = over.time
        place = self.shadow[space].place(tuple(intervals))
        if not place.intervals:
            return
        made = Access(
            space,
            place.intervals[0],
            is_write,
            proxy,
            over,
            point,
            agent,
            warp,
            turn,
            self.when,
            is_atomic,
            what,
            otherwise,
        )
        if point in self.watched or (is_write and what in self.watched):
            self.history.append(made)
            self.history.extend(made._replace(interval=interval) for interval in place.intervals[1:])
        if is_write and proxy is Proxy.ASYNC and space is Space.SHARED:
            self.lifetimes.overlay(made, place.intervals)
        self._compare(made, place, clock)

    def _note_lanes(self, agent: Agent, warp: int, clock: Clock) -> None:
        """Remember which lanes have accessed memory since their warp last converged; other lanes begin a new time."""
        lanes = self.warps(agent)[warp]
        since = self.lanes.setdefault((agent.rank, warp), {})
        if lanes not in since:
            if since:
                self._tick(agent.rank, warp, clock)
            since[lanes] = clock.known["warp", agent.rank, warp]

    def _compare(self, made: Access, place: Place[Access], clock: Clock) -> None:
        """Compare an access with those before it, and let it take the place of those that it covers."""
        shadow = self.shadow[made.space]
        earlier = shadow.before(place)
        if made.is_write:
            compared, replaced = earlier, earlier
        else:
            line = made.moment.line
            compared = {touch for touch in earlier if touch.access.is_write}
            replaced = {touch for touch in earlier - compared if touch.access.moment.line == line}
        news = frozenset([touch for touch in compared if self._is_news(touch.access, made, clock)])
        if news:
            self._note_all(made, place, news, clock)
        shadow.add(made, place, replaced)

    def _is_news(self, first: Access, second: Access, clock: Clock) -> bool:
        """Whether accesses to common bytes conflict, for the first time at that pair of places, or between warps."""
        failure = missing(first, second, clock)
        if failure is None:
            return False
        kept = self.contested if failure in CONTESTED else self.conflicts
        known = kept.get((failure, first.point, second.point))
        return known is None or (known.is_own and not Conflict(failure, first, second).is_own)

    def _note_all(self, made: Access, place: Place[Access], news: Set[Touch[Access]], clock: Clock) -> None:
        """Note the conflicts of an access with some before it: for each of its intervals from the lowest page on, and
        with earlier ones first."""
        left = set(news)
        for start, stop in place.intervals:
            for page in range(start >> PAGE_SHIFT, (stop - 1 >> PAGE_SHIFT) + 1) if left else ():
                touches = self.shadow[made.space].between(*_bounds(page))
                for touch in [touch for touch in touches if touch in left]:
                    meeting = [i for i in _in_page(touch, page) if i[0] < stop and start < i[1]]
                    for interval in meeting if self._is_news(touch.access, made, clock) else ():
                        first = touch.access._replace(interval=interval)
                        self._note(first, made._replace(interval=(start, stop)), touches, page, clock)
                    if meeting and not self._is_news(touch.access, made, clock):
                        left.discard(touch)

    def _note(self, first: Access, second: Access, touches: Sequence[Touch[Access]], page: int, clock: Clock) -> None:
        """Keep a conflict: one for each failure and pair of places, rather one between warps than one within a warp.

        touches: what the shadow memory holds in a page, in order.
        """
        failure = missing(first, second, clock)
        if failure is None or not self._is_news(first, second, clock):
            return
        kept = self.contested if failure in CONTESTED else self.conflicts
        conflict = Conflict(failure, first, second)
        if second.is_write and not first.is_write and failure not in CONTESTED:
            held = [touch.access._replace(interval=i) for touch in touches for i in _in_page(touch, page)]
            before = held[: held.index(first)]
            filled = next((a for a in reversed(before) if a.is_write and meet(a, first)), None)
            reads = [a for a in held if filled and not a.is_write and meet(a, second) and meet(a, filled)]
            both = {(access.agent.rank, access.warp) for access in (first, second)}
            others = [access for access in reads if (access.agent.rank, access.warp) not in both]
            heard = next((a for a in others if missing(a, second, clock) is None), None)
            conflict = Conflict(failure, first, second, filled, heard)
        kept[failure, first.point, second.point] = conflict


def _bounds(page: int) -> Interval:
    return page << PAGE_SHIFT, page + 1 << PAGE_SHIFT


def _in_page(touch: Touch[Access], page: int) -> list[Interval]:
    """The intervals of a touch that have bytes in a page."""
    first, last = _bounds(page)
    return [interval for interval in touch.place.intervals if interval[0] < last and first < interval[1]]


NOTHING = Clock()
"""What a warp knows that has not heard of anything."""
