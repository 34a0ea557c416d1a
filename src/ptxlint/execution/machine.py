"""The machine that runs a program: agents, their barriers, copies in flight, and one schedule that hardware may choose.

An agent runs until it blocks, ends or parts. When none can run, copies land one by one, polls are refused, and lanes
that wait for lanes of their own warp go on alone; when that helps nobody either, the run is over.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ptxlint.execution.acknowledged import is_acknowledged, is_twin
from ptxlint.execution.barriers import MOST_ARRIVALS, Arrival, ClusterBarrier, Copy, Mbarrier
from ptxlint.execution.boxes import misfits
from ptxlint.execution.flights import land, next_to_settle
from ptxlint.execution.layout import OFFSET_MASK, PARAMETER_WINDOW, RANK_SHIFT
from ptxlint.execution.leftovers import EarlyUse, early_uses, needed, parted, surplus, unwaited
from ptxlint.execution.meetings import Cta, complete_if_full, turn_cluster
from ptxlint.execution.memory import Bytes
from ptxlint.execution.order import Order
from ptxlint.execution.schedule import NO_REPAIR, THREADS_PER_STEP, OutOfBudgetError, Repair, Schedule, Turn, Visit
from ptxlint.execution.strand import WARP, Region, Strand
from ptxlint.execution.trace import Agent, Event, Fault, Incident, Kind

if TYPE_CHECKING:
    from ptxlint.execution.program import Binding, Program

BLOCKED = -1
ENDED = -2
PARTED = -3


ENDS = frozenset({Kind.EXIT, Kind.TRAP})
"""What ends a thread."""

ORDERED_FACTOR = 2
"""A run that reports data accesses takes about so many times the steps of one that does not."""


class Machine:
    """One run. Results stand in `events`, `incidents` and `strands` afterwards."""

    def __init__(
        self,
        program: Program,
        binding: Binding,
        schedule: Schedule,
        budget: int,
        repair: Repair = NO_REPAIR,
        order: Order | None = None,
    ) -> None:
        self.repair = repair
        self.order = order
        self.visits: dict[tuple[int, int], Visit] = {}
        self.program = program
        self.binding = binding
        self.schedule = schedule
        self.budget = budget if not binding.cut else binding.cut if order is None else ORDERED_FACTOR * binding.cut
        self.is_cut = False
        self.left = dict(binding.enough)
        self.steps = 0
        self.events: list[Event] = []
        self.incidents: list[Incident] = []
        self.mbarriers: dict[int, Mbarrier] = {}
        self.waiting: dict[int, list[Strand]] = {}
        self.cluster = ClusterBarrier()
        self.cluster_waiting: list[Strand] = []
        self.in_flight: deque[Copy] = deque()
        self.early: dict[tuple[int, int], EarlyUse] = {}
        self.unneeded: list[tuple[Incident, bool]] = []
        self.global_memory = Bytes(binding.inputs.load)
        self.shared_memory = Bytes()
        self.released_joins = 0
        self.clock = 0
        self.trapped = False
        self.left_cluster = False
        self.woken = False
        self.cancel_requests = 0
        self._reported: set[tuple[Fault, int, int | None]] = set()
        self._early: dict[int, Incident] = {}
        self.ready: deque[Strand] = deque()
        self.blocked: dict[Strand, None] = {}
        self.ctas = [Cta(rank, binding.threads) for rank in range(binding.cluster_size)]
        self.registers_covered: set[int] = set()
        for cta in self.ctas:
            strand = Strand(self, cta, tuple(range(binding.threads)), program.registers(binding, cta.rank), 0)
            self.ready.append(strand)

    def next_order(self, rank: int, thread: int) -> int:
        """The rank of a new agent under the strict orders."""
        key = rank * 4096 + thread
        if self.schedule.order is Turn.DOWN:
            return -key
        if self.schedule.order is Turn.INITIALIZER_LAST:
            initializers = self.program.initializers
            return key + (1 << 30 if initializers and thread in initializers else 0)
        return key

    def run(self) -> None:
        """Run to the end, or to where the binding cuts it. Raises OutOfBudgetError."""
        try:
            while (strand := self._pick()) is not None or self._settle():
                if strand is not None:
                    self._advance(strand)
        except OutOfBudgetError:
            self.is_cut = bool(self.binding.cut)
            if not self.is_cut:
                raise
            return
        for address in [*self._early] if self.blocked else ():
            self._note_overtaken(self.mbarriers[address])
        for incident in (*needed(self), *parted(self)):
            self.admit(incident)
        self.incidents += early_uses(self)
        for incident in (*unwaited(self), *surplus(self)):
            self.admit(incident)
        if not self.blocked and not self.incidents and self.order is None:
            self.incidents += misfits(self.events, self.program.maps, self.mbarriers, self.program.layout)

    def parameter_memory(self, address: int, width: int) -> int:
        """Bytes of a parameter that is read through its address."""
        index, offset = divmod(address - PARAMETER_WINDOW, 1 << 16)
        names = self.program.parameters
        return self.binding.inputs.parameter(names[index], offset, width) if index < len(names) else 0

    def _pick(self) -> Strand | None:
        if not self.ready:
            return None
        if self.schedule.order is Turn.FIFO:
            return self.ready.popleft()
        best = min(self.ready, key=lambda strand: strand.order)
        self.ready.remove(best)
        return best

    def _advance(self, strand: Strand) -> None:
        segments = self.program.segments
        is_strict = self.schedule.order is not Turn.FIFO
        self.woken = False
        at = strand.at
        while True:
            segment = segments[at]
            self.steps += segment.weight
            if self.steps > self.budget:
                raise OutOfBudgetError
            for step in segment.steps:
                step(strand)
            following = segment.end(strand)
            if following < 0:
                if following == BLOCKED:
                    strand.at = at
                    self.blocked[strand] = None
                return
            at = strand.at = following
            if strand.joins and strand.joins[-1].segment == at:
                self._resume(strand)
                return
            if is_strict and self.woken:
                self.ready.append(strand)
                return

    def _settle(self) -> bool:
        """Nobody can run: let hardware move on. False when nothing is left to move."""
        if self.in_flight:
            land(self, self.in_flight.popleft())
            return True
        barrier = next_to_settle(self)
        if barrier is not None:
            barrier.settle()
            self._check(barrier)
            return True
        polls = [s for s in self.blocked if s.state == "polling"]
        if polls:
            for strand in sorted(polls, key=lambda s: s.order):
                strand.state = "refused"
                self.wake(strand)
            return True
        return self._release_joins()

    def _release_joins(self) -> bool:
        """Let parked lanes go on without the lanes of their warp that they were to meet."""
        parked = list({join: None for strand in self.blocked for join in strand.joins if join.parked})
        if not parked:
            return False
        join = min(parked, key=lambda join: min(s.order for s in join.parked))
        self.released_joins += 1
        self._resume(join.release())
        return True

    def wake(self, strand: Strand) -> None:
        """Let a strand run again, if something had blocked it."""
        if strand in self.blocked:
            del self.blocked[strand]
            self.ready.append(strand)
            self.woken = True

    # Paths

    def part(self, strand: Strand, groups: list[tuple[list[int], int]], meet: int | None, region: Region | None) -> int:
        """Part a strand: each group of positions goes on at its own segment; mixed warps meet again at `meet`."""
        self.steps += len(strand.threads) // THREADS_PER_STEP
        for piece in strand.parts(groups, meet, region):
            self._resume(piece)
        return PARTED

    def _resume(self, strand: Strand) -> None:
        """Let a strand go on where it stands, through the joins that end there."""
        while strand.joins and strand.joins[-1].segment == strand.at:
            join = strand.joins[-1]
            join.parked.append(strand)
            merged = join.ready()
            if merged is None:
                return
            strand = merged
        self.ready.append(strand)
        self.woken = True

    def end(self, strand: Strand, point: int, *, trap: bool = False) -> int:
        """The strand's threads are done."""
        self.record(Kind.TRAP if trap else Kind.EXIT, strand.agent, point)
        strand.done = True
        self.trapped = self.trapped or trap
        cta = strand.cta
        gone = set(strand.threads)
        for thread in strand.threads:
            cta.live[thread // WARP].discard(thread)
        cta.live_threads -= len(strand.threads)
        self.cluster.leave(cta.rank, strand.threads)
        for join in strand.joins:
            join.expected -= gone
            merged = join.ready()
            if merged is not None:
                self._resume(merged)
        cta.exited = cta.live_threads == 0
        for barrier in cta.named.values():
            complete_if_full(self, cta, barrier)
        turn_cluster(self)
        return ENDED

    # Events

    def record(
        self,
        kind: Kind,
        agent: Agent | None,
        point: int,
        barrier: Mbarrier | None = None,
        amount: int = 0,
        number: int | None = None,
        phase: int | None = None,
        source: int = -1,
    ) -> None:
        """Add an event."""
        if barrier is None:
            event = Event(len(self.events), kind, agent, point, number, phase or 0, amount, source=source)
        else:
            event = Event(
                len(self.events),
                kind,
                agent,
                point,
                barrier.address,
                barrier.phase if phase is None else phase,
                amount,
                barrier.pending,
                barrier.tx,
                source,
            )
        self.events.append(event)

    def blame(
        self,
        fault: Fault,
        point: int,
        agent: Agent | None,
        target: int | None,
        others: tuple[tuple[int, str], ...] = (),
        **details: int,
    ) -> None:
        """Add an incident, once for each fault, place and object."""
        self.admit(Incident(fault, point, agent, target, len(self.events), details, others))

    def admit(self, incident: Incident) -> None:
        """Add an incident, unless its fault has been noted at its place and object."""
        key = (incident.fault, incident.point, incident.object)
        if key not in self._reported:
            self._reported.add(key)
            self.incidents.append(incident)

    # Mbarriers

    def mbarrier(self, address: int, point: int, agent: Agent | None) -> Mbarrier | None:
        """The live object at an address; a use before or after its life is noted."""
        barrier = self.mbarriers.get(address)
        if barrier is None and address >> RANK_SHIFT >= len(self.ctas):
            self.left_cluster = True
            return None
        if barrier is None:
            self.early.setdefault((point, address), EarlyUse(len(self.events), point, agent, address))
            return None
        if not barrier.live:
            places = ((barrier.init_point, "initialized here"), (barrier.inval_point, "invalidated here"))
            self.blame(Fault.AFTER_INVAL, point, agent, address, places)
            return None
        if self.order is not None and agent is not None:
            self.order.when = len(self.events)
            self.order.lifetimes.use(agent, address, point)
        return barrier

    def initialize(self, strand: Strand, point: int, address: int, count: int, who: Agent) -> None:
        """mbarrier.init by those threads of a strand."""
        old = self.mbarriers.get(address)
        if address % 8:
            self.blame(Fault.MISALIGNED, point, strand.agent, address, remainder=address % 8)
        if not 1 <= count <= MOST_ARRIVALS:
            self.blame(Fault.BAD_COUNT, point, strand.agent, address, count=count)
        if old is not None and old.live:
            where = "also initialized here" if old.init_point != point else "initialized here before"
            self.blame(Fault.REINIT, point, strand.agent, address, ((old.init_point, where),), phase=old.phase)
        count = self.repair.counts.get(address, count)
        fresh = Mbarrier(address, point, len(self.events), strand.agent, count)
        self.mbarriers[address] = fresh
        self.record(Kind.INIT, strand.agent, point, fresh, count)
        if self.order is not None:
            self.order.when = len(self.events)
            self.order.lifetimes.initialize(who, address, point)
        self._wake_waiters(address)

    def invalidate(self, point: int, address: int, who: Agent) -> None:
        """mbarrier.inval."""
        barrier = self.mbarrier(address, point, who)
        if barrier is not None:
            barrier.live = False
            barrier.inval_point = point
            self.record(Kind.INVAL, who, point, barrier)
            if self.order is not None:
                self.order.lifetimes.invalidate(who, address, point)

    def arrive(
        self,
        agent: Agent | None,
        point: int,
        address: int,
        count: int,
        *,
        expect: int = 0,
        drop: bool = False,
        relaxed: bool = False,
    ) -> int:
        """Arrive-on, after an expect-tx when one belongs to it. The phase that it counted in."""
        barrier = self.mbarrier(address, point, agent)
        if barrier is None:
            return 0
        if expect:
            self._expect(barrier, agent, point, expect)
        if barrier.is_unseen and address not in self._early:
            details = {"phase": barrier.phase, "observed": barrier.observed}
            self._early[address] = Incident(Fault.OVERTAKE, point, agent, address, len(self.events), details)
        if count > barrier.pending and barrier.expected:
            earlier = tuple((a.point, f"{a.count} arrived here") for a in barrier.arrivals[-3:] if a.point != point)
            self.blame(
                Fault.OVER_ARRIVAL,
                point,
                agent,
                address,
                (*earlier, (barrier.init_point, "initialized here")),
                phase=barrier.phase,
                expected=barrier.expected,
                left=max(barrier.pending, 0),
                arrived=count,
            )
        phase = barrier.phase
        barrier.pending -= count
        if drop:
            barrier.expected -= count
        barrier.arrivals.append(Arrival(point, agent, count, len(self.events)))
        self.record(Kind.ARRIVE, agent, point, barrier, count)
        if self.order is not None:
            self.order.arrive(agent, address, phase, relaxed=relaxed)
        self._check(barrier)
        return phase

    def expect(self, agent: Agent | None, point: int, address: int, size: int) -> None:
        """mbarrier.expect_tx."""
        barrier = self.mbarrier(address, point, agent)
        if barrier is not None:
            self._expect(barrier, agent, point, size)

    def _expect(self, barrier: Mbarrier, agent: Agent | None, point: int, size: int) -> None:
        barrier.tx += size
        barrier.expects.append(Arrival(point, agent, size, len(self.events)))
        self.record(Kind.EXPECT, agent, point, barrier, size)

    def complete(self, agent: Agent | None, point: int, address: int, size: int) -> None:
        """Complete-tx of known bytes."""
        barrier = self.mbarrier(address, point, agent)
        if barrier is None:
            return
        barrier.tx -= size
        self.record(Kind.COMPLETE, agent, point, barrier, size)
        self._check(barrier)

    def _check(self, barrier: Mbarrier) -> None:
        if barrier.pending <= 0 and barrier.unsized and not barrier.expects and not barrier.tx:
            copy = barrier.unsized[0]
            who = copy.agent if isinstance(copy.agent, Agent) else None
            here = ((barrier.init_point, "initialized here"),)
            self.blame(Fault.UNEXPECTED_COPY, copy.point, who, barrier.address, here, phase=barrier.phase)
            barrier.settle()
        while barrier.is_due and barrier.expected:
            self._note_overtaken(barrier)
            barrier.turn()
            self.record(Kind.PHASE, None, -1, barrier, phase=barrier.phase - 1)
            self._wake_waiters(barrier.address)
            if self.left:
                self._count(barrier)

    def _count(self, barrier: Mbarrier) -> None:
        """Raises OutOfBudgetError where all mbarriers have gone through as many phases as are enough."""
        if self.left.get(barrier.address, barrier.phase + 1) <= barrier.phase:
            del self.left[barrier.address]
            if not self.left:
                raise OutOfBudgetError

    def _note_overtaken(self, barrier: Mbarrier) -> None:
        """The first arrival of a phase, if it came before anyone saw the last phase complete, and nobody has yet.

        Waiters who come to see it while the phase goes on have lost nothing: in a cluster the arrivals of a peer may
        run ahead of the wait of a CTA whose own arrivals the phase still needs. So have those whom another barrier
        tells.
        """
        early = self._early.pop(barrier.address, None)
        if early is None or not barrier.is_unseen:
            return
        is_told = is_acknowledged(self.events[: early.order], barrier.address, early.details["phase"] - 1)
        if is_told or any(other != barrier.address and is_twin(other, barrier.address) for other in self.mbarriers):
            self.unneeded.append((early, is_told))
        else:
            self.admit(early)

    def _wake_waiters(self, address: int) -> None:
        for strand in self.waiting.pop(address, ()):
            if strand.wanted[1] != address:
                strand.refused = frozenset()
            self.wake(strand)

    def wait(self, strand: Strand, point: int, address: int, parity: int, *, relaxed: bool = False) -> bool | None:
        """Try to wait: whether the wait returns true or false; None when the strand blocks."""
        if point in self.repair.skipped:
            return True
        barrier = self.mbarrier(address, point, strand.agent)
        own = parity
        if point in self.repair.flipped:
            parity ^= 1
        elif point in self.repair.alternating:
            parity = self._alternate(strand, address, parity)
        if barrier is not None and barrier.passes(parity):
            self._visit(strand, point, address, parity)
            barrier.observed = max(barrier.observed, barrier.phase - 1)
            self.record(Kind.WAIT, strand.agent, point, barrier, own, phase=barrier.phase - 1)
            if self.order is not None:
                self.order.wait(strand.agent, address, barrier.phase - 1, relaxed=relaxed)
            strand.refused = frozenset()
            strand.state = "ready"
            return True
        key = (point, address, parity)
        is_refused = self.schedule.refuses or strand.state == "refused"
        if is_refused and key not in strand.refused:
            strand.refused |= {key}
            strand.state = "ready"
            self.record(Kind.POLL, strand.agent, point, barrier, parity, number=address)
            return False
        strand.state = "stuck" if key in strand.refused else "polling"
        strand.wanted = key
        for _, watched, _ in strand.refused | {key}:
            self.waiting.setdefault(watched, []).append(strand)
        return None

    def _alternate(self, strand: Strand, address: int, parity: int) -> int:
        last = self.visits.get((address, strand.threads[0]))
        if last is None:
            return parity if self.repair.start is None else self.repair.start
        return last.parity ^ 1 if last.is_over and last.tally != strand.tally else last.parity

    def _visit(self, strand: Strand, point: int, address: int, parity: int) -> None:
        if point in self.repair.alternating:
            visit = Visit(parity, True, strand.tally)
            self.visits.update(((address, thread), visit) for thread in strand.threads)

    # Other CTAs

    def remote(self, strand: Strand, point: int, address: int) -> None:
        """Note an access to another CTA that may not have begun, or has ended."""
        rank = address >> RANK_SHIFT
        if rank >= len(self.ctas):
            self.left_cluster = True
        if rank == strand.cta.rank or rank >= len(self.ctas):
            return
        if self.cluster.generation == 0:
            self.blame(Fault.REMOTE_EARLY, point, strand.agent, address & OFFSET_MASK, rank=rank)
        elif self.ctas[rank].exited:
            last = next(e for e in reversed(self.events) if e.kind in ENDS and e.agent and e.agent.rank == rank)
            others = ((last.point, f"CTA {rank} ends here"),)
            self.blame(Fault.REMOTE_LATE, point, strand.agent, address & OFFSET_MASK, others, rank=rank)
