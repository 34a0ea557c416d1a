"""The machine that runs a program: agents, their barriers, copies in flight, and one schedule that hardware may choose.

An agent runs until it blocks, ends or parts. When none can run, copies land one by one, polls are refused, and lanes
that wait for lanes of their own warp go on alone; when that helps nobody either, the run is over.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ptxlint.execution.barriers import ClusterBarrier, Copy, Mbarrier
from ptxlint.execution.boxes import misfits
from ptxlint.execution.flights import land, next_to_settle
from ptxlint.execution.layout import OFFSET_MASK, PARAMETER_WINDOW, RANK_SHIFT
from ptxlint.execution.leftovers import early_uses, needed, parted, surplus, unwaited
from ptxlint.execution.meetings import Cta, complete_if_full, turn_cluster
from ptxlint.execution.memory import Bytes
from ptxlint.execution.order import Order
from ptxlint.execution.phases import Phases
from ptxlint.execution.schedule import NO_REPAIR, THREADS_PER_STEP, OutOfBudgetError, Repair, Schedule, Turn
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
        self.program = program
        self.binding = binding
        self.schedule = schedule
        self.budget = budget if not binding.cut else binding.cut if order is None else ORDERED_FACTOR * binding.cut
        self.is_cut = False
        self.steps = 0
        self.events: list[Event] = []
        self.incidents: list[Incident] = []
        self.mbarriers: dict[int, Mbarrier] = {}
        self.phases = Phases(self)
        self.cluster = ClusterBarrier()
        self.cluster_waiting: list[Strand] = []
        self.in_flight: deque[Copy] = deque()
        self.global_memory = Bytes(binding.inputs.load)
        self.shared_memory = Bytes()
        self.released_joins = 0
        self.clock = 0
        self.trapped = False
        self.left_cluster = False
        self.woken = False
        self.cancel_requests = 0
        self._reported: set[tuple[Fault, int, int | None]] = set()
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
        if self.blocked:
            self.phases.note_all_overtaken()
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
            self.phases.check(barrier)
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
