"""What a run that is not clean shows, and what its repairs show: all that a search for the fault may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.execution.barriers import Mbarrier, NamedBarrier
from ptxlint.execution.machine import Machine
from ptxlint.execution.schedule import Repair
from ptxlint.execution.strand import WARP, Strand
from ptxlint.execution.trace import Event, Fault, Incident, Kind
from ptxlint.execution.waits import history, wait_groups

Try = Callable[[Repair], bool]
"""Runs every schedule under a repair: whether all of them are clean."""

Rerun = Callable[[Repair], Machine]
"""Runs the schedule of the symptoms again under a repair."""

MOST_TRIALS = 24
MOST_RELEASES = 4


class Observation:
    """A run with symptoms, the agents that are stuck in it, and runs under repairs, of which only so many are tried."""

    def __init__(self, machine: Machine, cfg: Cfg, try_: Try, rerun: Rerun) -> None:
        self.machine = machine
        self.cfg = cfg
        self.rerun = rerun
        self.stuck = sorted(machine.blocked, key=lambda s: s.order)
        self.groups = wait_groups(machine)
        self._try = try_
        self._trials = 0

    def under(self, repair: Repair) -> Observation:
        """What the schedule of the symptoms shows under a repair."""
        return Observation(self.rerun(repair), self.cfg, self._try, self.rerun)

    def mends(self, repair: Repair) -> bool:
        """Whether all schedules are clean under a repair; false too when enough repairs have been tried."""
        self._trials += 1
        return self._trials <= MOST_TRIALS and self._try(repair)

    @cached_property
    def unhindered(self) -> Sequence[Machine]:
        """Runs in which no mbarrier holds anybody up, and in the later ones no barrier that somebody was stuck at."""
        program = self.machine.program
        held = frozenset(point for point in program.events if "done" in isa.roles(self.cfg.body[point]))
        machines: list[Machine] = []
        for _ in range(MOST_RELEASES):
            machines.append(self.rerun(Repair(skipped=held)))
            stuck = {program.segments[strand.at].point for strand in machines[-1].blocked}
            if stuck <= held:
                break
            held |= stuck
        return machines

    def unreached_arrivals(self, machines: Iterable[Machine]) -> bool:
        """Whether some place that could arrive somewhere was not reached in any of these runs."""
        reached = {event.point for machine in machines for event in machine.events}
        return any(
            point not in reached
            and "mbarrier" in isa.roles(self.cfg.body[point])
            and "done" not in isa.roles(self.cfg.body[point])
            for point in self.machine.program.events
        )

    def waits(self) -> Iterator[tuple[Strand, int, Mbarrier]]:
        """The stuck agents at mbarriers, with the place and the barrier."""
        for strand in self.stuck:
            if strand.state in ("stuck", "polling", "refused"):
                point, address, _ = strand.wanted
                barrier = self.machine.mbarriers.get(address)
                if barrier is not None:
                    yield strand, point, barrier

    def at_barriers(self) -> Iterator[tuple[Strand, int, NamedBarrier]]:
        """The agents stuck at CTA barriers, with the place and the barrier."""
        for strand in self.stuck:
            if strand.state == "at barrier" and strand.pending is not None:
                barrier = strand.pending[0]
                point = barrier.points.get(strand.threads[0] // WARP, -1)
                if point >= 0:
                    yield strand, point, barrier

    def turns(self, event: Event) -> list[Event]:
        """The waits of an agent on the barrier of one of its waits, the one that it is stuck at included."""
        return history([*self.machine.events, *self._stuck_events()], event)

    def wait_events(self) -> list[Event]:
        """The waits that returned true, and then those that agents are stuck at."""
        return [*(event for event in self.machine.events if event.kind is Kind.WAIT), *self._stuck_events()]

    def _stuck_events(self) -> list[Event]:
        end = len(self.machine.events)
        return [
            Event(end, Kind.WAIT, strand.agent, point, barrier.address, barrier.phase, strand.wanted[2])
            for strand, point, barrier in self.waits()
        ]

    def is_same_line(self, first: int, second: int) -> bool:
        """Whether two places are one, or come from one line of the source."""
        a, b = self.cfg.body[first].loc, self.cfg.body[second].loc
        return first == second or (a is not None and a == b)

    def incident(
        self,
        fault: Fault,
        point: int,
        strand: Strand,
        barrier: Mbarrier,
        others: Sequence[tuple[int, str]],
        **details: int,
    ) -> Incident:
        """A fault that shows at an mbarrier which an agent is stuck at."""
        order = len(self.machine.events)
        details.setdefault("phase", barrier.phase)
        return Incident(fault, point, strand.agent, barrier.address, order, details, tuple(others))

    def wait_incident(self, fault: Fault, event: Event) -> Incident:
        """A fault that shows in the parity of a wait; `visit` counts the agent's waits at the barrier up to it."""
        barrier = self.machine.mbarriers.get(-1 if event.object is None else event.object)
        turns = [e for e in self.turns(event) if e.order <= event.order]
        details = {"parity": event.amount, "visit": len(turns), "phase": barrier.phase if barrier else 0}
        others = ((barrier.init_point, "initialized here"),) if barrier else ()
        return Incident(fault, event.point, event.agent, event.object, event.order, details, others)

    def stuck_incident(self, fault: Fault, strand: Strand, point: int, target: int | None, **details: int) -> Incident:
        """A fault that shows at a CTA or cluster barrier which an agent is stuck at."""
        others = [(p, f"{s.agent} never gets past this wait") for s, p, _ in self.waits()][:3]
        return Incident(fault, point, strand.agent, target, len(self.machine.events), details, tuple(others))
