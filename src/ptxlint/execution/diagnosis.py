"""From symptoms to the fault: which single change would mend the kernel?

A run shows symptoms (an agent never gets past a wait, a phase is overtaken); the fault lies elsewhere as often as not.
So changes are tried: another parity at a wait, phases asked for in turn, another arrival count, a barrier left out. The
change under which every schedule runs clean names the fault and its place, and is the fix that the message proposes.
Where none does, the first symptom is reported as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.execution.barriers import Mbarrier, NamedBarrier
from ptxlint.execution.layout import RANK_SHIFT
from ptxlint.execution.machine import Machine
from ptxlint.execution.recurrence import begins_anew
from ptxlint.execution.schedule import Repair
from ptxlint.execution.strand import WARP, Strand
from ptxlint.execution.trace import Agent, Event, Fault, Incident, Kind
from ptxlint.execution.waits import WaitGroup, begin_alike, history, is_touched, run_lengths, unflipped, wait_groups
from ptxlint.ir import Immediate, Register

Try = Callable[[Repair], bool]
"""Runs every schedule under a repair: whether all of them are clean."""

Rerun = Callable[[Repair], Machine]
"""Runs the schedule of the symptoms again under a repair."""

DIRECT = frozenset(
    {
        Fault.BEFORE_INIT,
        Fault.UNPUBLISHED,
        Fault.AFTER_INVAL,
        Fault.REINIT,
        Fault.BAD_COUNT,
        Fault.UNEXPECTED_COPY,
        Fault.BOXES,
        Fault.MISALIGNED,
        Fault.BARRIER_COUNT,
        Fault.RUN_AHEAD,
        Fault.DIVERGENT,
        Fault.CLUSTER_TWICE,
        Fault.CLUSTER_UNARRIVED,
        Fault.CLUSTER_UNWAITED,
        Fault.REMOTE_EARLY,
        Fault.REMOTE_LATE,
    }
)
"""Faults that are what they seem: their place is where they were seen."""

MOST_TRIALS = 24
MOST_RELEASES = 4


def is_clean(machine: Machine) -> bool:
    """Whether a run has neither symptom nor fault; where it was cut, agents may be waiting."""
    return not machine.incidents and (machine.is_cut or not machine.blocked)


def diagnose(machine: Machine, cfg: Cfg, mends: Try, rerun: Rerun) -> list[Incident] | None:
    """The faults behind a run that is not clean.

    None when agents wait for what a part of the kernel may do that the inputs do not reach, however long they waited.
    """
    direct = [incident for incident in machine.incidents if incident.fault in DIRECT]
    if direct:
        ahead = {incident.object for incident in direct if incident.fault is Fault.RUN_AHEAD}
        return [i for i in direct if i.fault is not Fault.BARRIER_COUNT or i.object not in ahead]
    diagnosis = _Diagnosis(machine, cfg, mends, rerun)
    found = diagnosis.find()
    if found.fault in (Fault.CYCLE, Fault.STUCK) and diagnosis.trip_counts_differ():
        found = found._replace(fault=Fault.STUCK, details={**found.details, "trips": 1})
    if found.fault in (Fault.CYCLE, Fault.STUCK) and diagnosis.depends_on_inputs():
        return None
    return [found]


class _Diagnosis:
    def __init__(self, machine: Machine, cfg: Cfg, mends: Try, rerun: Rerun) -> None:
        self.machine = machine
        self.cfg = cfg
        self.try_ = mends
        self.rerun = rerun
        self.trials = 0
        self.stuck = sorted(machine.blocked, key=lambda s: s.order)
        self.groups = wait_groups(machine)

    def find(self) -> Incident:
        for search in (
            self._bytes,
            self._expect_only,
            self._missing_arrivals,
            self._nobody_arrives,
            self._repeated_parity,
            self._extra_arrivals,
            self._role_cluster_barrier,
            self._role_barrier,
            self._initial_parity,
            self._any_parity,
            self._stale_address,
        ):
            found = search()
            if found is not None:
                return found
        return self._symptom()

    def trip_counts_differ(self) -> bool:
        """Whether everyone who ever served the mbarriers that agents are stuck at has ended or is past its work."""
        waits = list(self._waits())
        served: list[object] = []
        for _, _, barrier in waits:
            for arrivals, expects, copies in barrier.history:
                served += [done.agent for done in (*arrivals, *expects)] + [copy.agent for copy in copies]
        alive = {(s.cta.rank, thread) for s, _, _ in waits for thread in s.threads}
        agents = [agent for agent in served if isinstance(agent, Agent)]
        ended = all((agent.rank, agent.threads[0]) not in alive for agent in agents)
        return bool(waits) and bool(agents) and ended and all(barrier.history for _, _, barrier in waits)

    def depends_on_inputs(self) -> bool:
        """Whether places that may arrive stay unreached even when no wait holds anybody up."""
        return self._unreached_arrivals([self.machine, *self._unhindered])

    @cached_property
    def _unhindered(self) -> Sequence[Machine]:
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

    def _mends(self, repair: Repair) -> bool:
        self.trials += 1
        return self.trials <= MOST_TRIALS and self.try_(repair)

    def _waits(self) -> Iterator[tuple[Strand, int, Mbarrier]]:
        """The stuck agents at mbarriers, with the place and the barrier."""
        for strand in self.stuck:
            if strand.state in ("stuck", "polling", "refused"):
                point, address, _ = strand.wanted
                barrier = self.machine.mbarriers.get(address)
                if barrier is not None:
                    yield strand, point, barrier

    # Faults that the stuck barrier itself shows

    def _bytes(self) -> Incident | None:
        for strand, point, barrier in self._waits():
            if barrier.pending <= 0 and barrier.tx != 0 and not barrier.unsized and barrier.expects:
                expected = sum(e.count for e in barrier.expects)
                if barrier.tx > 0 and any(sum(e.count for e in h[1]) == expected for h in barrier.history):
                    continue
                copied = expected - barrier.tx
                blamed = barrier.expects[-1].point
                others = [(copy.point, "copied here") for copy in barrier.copies[:2]]
                return self._incident(
                    Fault.BYTES,
                    blamed,
                    strand,
                    barrier,
                    [*others, (point, "never gets past this wait")],
                    expected=expected,
                    copied=copied,
                )
        return None

    def _expect_only(self) -> Incident | None:
        for strand, point, barrier in self._waits():
            if barrier.expects and not barrier.arrivals and barrier.pending == barrier.expected:
                arrived = any(history[0] for history in barrier.history)
                if not arrived and self._adds_arrival(barrier, len({e.agent for e in barrier.expects})):
                    return self._incident(
                        Fault.EXPECT_WITHOUT_ARRIVAL,
                        barrier.expects[0].point,
                        strand,
                        barrier,
                        [(point, "never gets past this wait")],
                        expected=barrier.expected,
                    )
        return None

    def _adds_arrival(self, barrier: Mbarrier, agents: int) -> bool:
        """Whether the expect_tx operations alone are as many as the arrivals that the barrier lacks."""
        return agents >= 1 and len(barrier.expects) >= barrier.pending

    def _missing_arrivals(self) -> Incident | None:
        """A smaller count at the initialization: as many arrivals as came in the phase."""
        for _, point, barrier in self._waits():
            arrived = sum(a.count for a in barrier.arrivals)
            if barrier.raised and arrived == barrier.raised and barrier.pending == barrier.expected:
                return self._count_incident(barrier, 0, point)
            if 0 < arrived < barrier.expected and self._mends(self._with_counts(barrier, arrived)):
                return self._count_incident(barrier, arrived, point)
        return None

    def _extra_arrivals(self) -> Incident | None:
        """A larger count at the initialization: as many arrivals as the places that arrive add up to."""
        surplus = [i for i in self.machine.incidents if i.fault in (Fault.OVER_ARRIVAL, Fault.OVERTAKE)]
        for incident in surplus[:2]:
            barrier = self.machine.mbarriers.get(-1 if incident.object is None else incident.object)
            for total in self._totals(barrier) if barrier else ():
                if barrier and self._mends(self._with_counts(barrier, total)):
                    came = next((e for e in self.machine.events[incident.order :] if e.point == incident.point), None)
                    counted = {"expected": barrier.expected, "left": 0, "arrived": came.amount if came else 0}
                    details = {**counted, **incident.details, "arrivals": total}
                    others = dict.fromkeys((*incident.others, (barrier.init_point, "initialized here")))
                    return incident._replace(fault=Fault.OVER_ARRIVAL, details=details, others=tuple(others))
        return None

    def _totals(self, barrier: Mbarrier) -> list[int]:
        """Arrivals per phase that the places which arrive would add up to, most likely first."""
        whole: dict[int, int] = {}
        for arrivals in [*(h[0] for h in barrier.history), barrier.arrivals]:
            seen: dict[int, int] = {}
            for arrival in arrivals:
                seen[arrival.point] = seen.get(arrival.point, 0) + arrival.count
            for place, count in seen.items():
                whole[place] = max(whole.get(place, 0), count)
        first = sum(a.count for a in barrier.history[0][0]) if barrier.history else 0
        everything = sum(a.count for h in [*barrier.history[:1], (barrier.arrivals, (), ())] for a in h[0])
        threads = sum(_by_thread(barrier).values())
        totals = [max(whole.values(), default=0), sum(whole.values()), first, everything, threads, 2 * barrier.expected]
        return [t for t in dict.fromkeys(totals) if t > barrier.expected]

    def _count_incident(self, barrier: Mbarrier, arrivals: int, point: int) -> Incident:
        places = [(a.point, f"{a.count} arrived here") for a in barrier.arrivals[:3]]
        strand = next(strand for strand, _, stuck in self._waits() if stuck is barrier)
        return self._incident(
            Fault.ARRIVALS_MISSING,
            barrier.init_point,
            strand,
            barrier,
            [*places, (point, "never gets past this wait")],
            expected=barrier.expected,
            arrivals=arrivals,
        )

    def _with_counts(self, barrier: Mbarrier, count: int) -> Repair:
        family = next((g.barriers for g in self.groups if barrier.address in g.barriers), {barrier.address})
        same = {a for a in family if a in self.machine.mbarriers}
        alike = {a for a in same if self.machine.mbarriers[a].expected == barrier.expected}
        peers = {
            address
            for address, other in self.machine.mbarriers.items()
            if other.expected == barrier.expected
            and self._same_line(other.init_point, barrier.init_point)
            and self._served_alike(other, barrier)
        }
        return Repair(counts=dict.fromkeys(alike | peers, count))

    def _served_alike(self, first: Mbarrier, second: Mbarrier) -> bool:
        """Whether arrivals at two barriers come from a common line of the source, or one of them has had none."""
        one, other = (
            {self.cfg.body[point].loc or point for point, _, _ in _by_thread(barrier)} for barrier in (first, second)
        )
        return not one or not other or not one.isdisjoint(other)

    def _same_line(self, first: int, second: int) -> bool:
        a, b = self.cfg.body[first].loc, self.cfg.body[second].loc
        return first == second or (a is not None and a == b)

    # Faults of waits

    def _suspects(self) -> list[WaitGroup]:
        """The groups on whose barriers something went wrong, and of the agents that it went wrong for."""
        objects = {incident.object for incident in self.machine.incidents} | {b.address for _, _, b in self._waits()}
        agents = {i.agent.threads[0] for i in self.machine.incidents if i.agent} | {s.threads[0] for s in self.stuck}
        first = [group for group in self.groups if group.barriers & objects]
        waits = {
            event.point
            for event in self.machine.events
            if event.kind is Kind.WAIT and event.agent and agents.intersection(event.agent.threads)
        }
        second = [group for group in self.groups if group not in first and group.points & waits]
        return [*first, *second]

    def _repeated_parity(self) -> Incident | None:
        """Waits that ask again for a parity they have had: each group by itself, then all of them together.

        A role that hangs at the fault of another comes to its own only when that one is mended.
        """
        repeats = self._repeats()
        for group, repeat in repeats:
            repair = Repair(alternating=group.points)
            if self._mends(repair):
                return self._parity_incident(group, repeat, repair)
        points = frozenset(point for group, _ in repeats for point in group.points)
        further = points
        if repeats:
            mended = _Diagnosis(self.rerun(Repair(alternating=points)), self.cfg, self.try_, self.rerun)
            further |= frozenset(point for group, _ in mended._repeats() for point in group.points)
        if len(repeats) > 1 or further > points:
            repair = Repair(alternating=further)
            if self._mends(repair):
                group, repeat = min(repeats, key=lambda item: item[1].order)
                return self._parity_incident(group, repeat, repair)
        return None

    def _repeats(self) -> list[tuple[WaitGroup, Event]]:
        """The suspects that ask again for a parity, with the first wait that does."""
        return [(g, repeat) for g in self._suspects() if (repeat := self._first_repeat(g)) is not None]

    def _any_parity(self) -> Incident | None:
        """Waits that would be right if they asked for the phases in turn, from the first or from the second."""
        for group in self._suspects():
            for start in (None, 0, 1):
                repair = Repair(alternating=group.points, start=start)
                is_new = start is not None or self._first_repeat(group) is None
                if is_new and self._mends(repair) and self._comes_back(group, repair):
                    wait = self._last_wait(group)
                    restarts = self._restarts(wait.point)
                    fault = Fault.PARITY_RESTARTED if restarts else Fault.PARITY_OF_OTHER_SLOT
                    return self._wait_incident(fault, wait)
        return None

    def _initial_parity(self) -> Incident | None:
        """The other parity throughout; only where the waits come back, else it is one wait too many.

        Both sides of a ring may seem to begin wrong. The side that waits for data must not begin with a free pass; when
        it does, it is to blame, else the other.
        """
        found: list[tuple[int, Event]] = []
        for group in self._suspects():
            repair = Repair(flipped=group.points)
            if self._mends(repair) and self._comes_back(group, repair):
                first = self._first_wait(group)
                if first is not None:
                    passed_freely = first.phase < 0 and first.order < len(self.machine.events)
                    blame = 1 if not self._carries_data(group, repair) else 0 if passed_freely else 2
                    found.append((blame, first))
        if not found:
            return None
        return self._wait_incident(Fault.PARITY_INITIAL, min(found, key=lambda item: item[0])[1])

    def _comes_back(self, group: WaitGroup, repair: Repair) -> bool:
        """Whether the waits of a group go through more than one phase of a barrier once it is mended."""
        events = self.rerun(repair).events
        return any(e.kind is Kind.WAIT and e.point in group.points and e.phase > 0 for e in events)

    def _carries_data(self, group: WaitGroup, repair: Repair) -> bool:
        """Whether copies complete on the barriers of a group."""
        events = self.rerun(repair).events
        return any(e.kind is Kind.COPY and e.object in group.barriers for e in events)

    def _nobody_arrives(self) -> Incident | None:
        for strand, point, barrier in self._waits():
            if barrier.arrivals or barrier.expects or barrier.history or barrier.unsized:
                continue
            group = next((g for g in self.groups if point in g.points), None)
            points = group.points if group else frozenset({point})
            reruns = [self.rerun(Repair(flipped=points)), self.rerun(Repair(skipped=points)), self.machine]
            ended = [again for again in reruns if not again.blocked]
            rank = barrier.address >> RANK_SHIFT
            family = [a for a in (group.barriers if group else ()) if a >> RANK_SHIFT == rank]
            served = (barrier.address,) if ended else (*family, barrier.address)
            if any(is_touched(again, served) for again in (*reruns, *self._unhindered)):
                continue
            if not self._unreached_arrivals([*reruns, *self._unhindered]):
                return self._incident(
                    Fault.NO_ARRIVAL,
                    point,
                    strand,
                    barrier,
                    [(barrier.init_point, "initialized here")],
                    expected=barrier.expected,
                )
        return None

    def _unreached_arrivals(self, machines: Iterable[Machine]) -> bool:
        """Whether some place that could arrive somewhere was not reached in any of these runs."""
        reached = {event.point for machine in machines for event in machine.events}
        return any(
            point not in reached
            and "mbarrier" in isa.roles(self.cfg.body[point])
            and "done" not in isa.roles(self.cfg.body[point])
            for point in self.machine.program.events
        )

    def _parity_incident(self, group: WaitGroup, event: Event, repair: Repair) -> Incident:
        found = self._wait_incident(self._kind(group, event, repair), event)
        before = unflipped(self._history(event), event) if found.fault is Fault.PARITY_CONSTANT else None
        if before is None:
            return found
        again = (event.point, "asks for the same parity")
        return found._replace(
            point=before.point, details={**found.details, "unflipped": 1}, others=(*found.others, again)
        )

    def _wait_incident(self, fault: Fault, event: Event) -> Incident:
        barrier = self.machine.mbarriers.get(-1 if event.object is None else event.object)
        turns = [e for e in self._history(event) if e.order <= event.order]
        details = {"parity": event.amount, "visit": len(turns), "phase": barrier.phase if barrier else 0}
        others = ((barrier.init_point, "initialized here"),) if barrier else ()
        return Incident(fault, event.point, event.agent, event.object, event.order, details, others)

    def _kind(self, group: WaitGroup, event: Event, repair: Repair) -> Fault:
        """Which mistake the parities of an agent at one barrier show, all of them, as the mended run has them."""
        if self._restarts(event.point):
            return Fault.PARITY_RESTARTED
        mended = self.rerun(repair)
        asked = [e.amount for e in history(mended.events, event)]
        if len(set(asked)) == 1:
            return Fault.PARITY_CONSTANT
        if begin_alike(asked) and self._begins_anew(event.point):
            return Fault.PARITY_RESTARTED
        runs = run_lengths(asked)
        if len(group.barriers) == 1 and len(runs) > 1 and all(length > 1 for length in runs[:-1]):
            return Fault.PARITY_OF_OTHER_SLOT
        return Fault.PARITY_CONSTANT

    def _history(self, event: Event) -> list[Event]:
        """The waits of an agent on the barrier of one of its waits, the one that it is stuck at included."""
        return history([*self.machine.events, *self._stuck_events()], event)

    def _stuck_events(self) -> list[Event]:
        end = len(self.machine.events)
        return [
            Event(end, Kind.WAIT, strand.agent, point, barrier.address, barrier.phase, strand.wanted[2])
            for strand, point, barrier in self._waits()
        ]

    def _first_repeat(self, group: WaitGroup) -> Event | None:
        """The first wait of a group that asks for the parity that its agent had asked the barrier for before."""
        seen: set[tuple[object, object]] = set()
        repeats: list[Event] = []
        for event in [*self.machine.events, *self._stuck_events()]:
            if event.kind is Kind.WAIT and event.point in group.points and event.agent:
                key = (event.object, event.agent.threads[0])
                if key not in seen:
                    seen.add(key)
                    asked = self._history(event)
                    repeats.extend(b for a, b in itertools.pairwise(asked) if a.amount == b.amount)
        return min(repeats, key=lambda event: event.order, default=None)

    def _first_wait(self, group: WaitGroup) -> Event | None:
        waits = [*self.machine.events, *self._stuck_events()]
        return next((e for e in waits if e.kind is Kind.WAIT and e.point in group.points), None)

    def _last_wait(self, group: WaitGroup) -> Event:
        waits = [*self.machine.events, *self._stuck_events()]
        return next(e for e in reversed(waits) if e.kind is Kind.WAIT and e.point in group.points)

    def _restarts(self, point: int) -> bool:
        """Whether the parity of a wait is set to a constant inside a loop around the loop of the wait."""
        loops = list(self.cfg.enclosing_loops(self.cfg.block_of[point]))
        if len(loops) < 2:
            return False
        inner = self.cfg.loop_blocks(loops[0])
        sources = self.machine.program.definitions
        names = [o.name for o in self.cfg.body[point].operands[2:3] if isinstance(o, Register)]
        seen = set(names)
        while names:
            for place in sources.get(names.pop(), ()):
                instruction = self.cfg.body[place]
                block = self.cfg.block_of[place]
                outside = any(block in self.cfg.loop_blocks(loop) for loop in loops[1:]) and block not in inner
                if instruction.opcode != "mov":
                    continue
                source = instruction.operands[1]
                if isinstance(source, Immediate) and outside:
                    return True
                if isinstance(source, Register) and source.name not in seen:
                    seen.add(source.name)
                    names.append(source.name)
        return False

    def _begins_anew(self, point: int) -> bool:
        parities = [operand for operand in self.cfg.body[point].operands[2:3] if isinstance(operand, Register)]
        return any(begins_anew(self.cfg, self.machine.program.definitions, point, parity) for parity in parities)

    def _stale_address(self) -> Incident | None:
        """A barrier that is overtaken and that nobody ever waits on, while its neighbour is waited on twice a lap."""
        waited: dict[int, set[int]] = {}
        for event in self.machine.events:
            if event.kind is Kind.WAIT and event.object is not None:
                waited.setdefault(event.point, set()).add(event.object)
        everything = {address for addresses in waited.values() for address in addresses}
        for incident in self.machine.incidents:
            if incident.fault is not Fault.OVERTAKE or incident.object in everything:
                continue
            arrived = {e.object for e in self.machine.events if e.kind is Kind.ARRIVE and e.point == incident.point}
            for point, addresses in waited.items():
                if len(addresses) == 1 and addresses & arrived:
                    event = next(e for e in self.machine.events if e.kind is Kind.WAIT and e.point == point)
                    found = self._wait_incident(Fault.PARITY_OF_OTHER_SLOT, event)
                    never = (incident.point, "this barrier's other slots are never waited on")
                    return found._replace(others=(*found.others, never))
        return None

    # CTA and cluster barriers

    def _at_barriers(self) -> Iterator[tuple[Strand, int, NamedBarrier]]:
        """The agents stuck at CTA barriers, with the place and the barrier."""
        for strand in self.stuck:
            if strand.state == "at barrier" and strand.pending is not None:
                barrier = strand.pending[0]
                point = barrier.points.get(strand.threads[0] // WARP, -1)
                if point >= 0:
                    yield strand, point, barrier

    def _role_cluster_barrier(self) -> Incident | None:
        """A barrier of the cluster that some come to while others stand at one of the CTA."""
        for strand in self.stuck:
            if strand.state != "at cluster barrier" or not any(self._at_barriers()):
                continue
            point = self._cluster_point(strand)
            line = frozenset(p for p in self.machine.program.events if self._same_line(p, point))
            if self._mends(Repair(skipped=line)):
                return self._stuck_incident(Fault.STUCK_CLUSTER, strand, point, None)
        return None

    def _role_barrier(self) -> Incident | None:
        """Tried last: a barrier on whose line others have stood too, which is none of this role alone."""
        for strand, point, barrier in sorted(self._at_barriers(), key=self._is_shared):
            if not barrier.count and self._mends(Repair(skipped=self._uses_of_role(point, barrier))):
                return self._stuck_incident(Fault.ROLE_BARRIER, strand, point, barrier.number, arrived=barrier.arrived)
        return None

    def _uses_of_role(self, point: int, barrier: NamedBarrier) -> frozenset[int]:
        """The uses of a barrier on one line, and those like it that only those who are stuck there have come to."""
        stuck = {
            (s.cta.rank, thread) for s, _, other in self._at_barriers() if other is barrier for thread in s.threads
        }
        come = {
            event.point
            for event in self.machine.events
            if event.kind is Kind.SYNC and event.agent is not None
            if not stuck.issuperset((event.agent.rank, thread) for thread in event.agent.threads)
        }
        here, body = self.cfg.body[point], self.cfg.body
        alike = (p for p in self.machine.program.events if body[p].opcode == here.opcode)
        return frozenset(
            p for p in alike if self._same_line(p, point) or (p not in come and body[p].operands == here.operands)
        )

    def _is_shared(self, stuck: tuple[Strand, int, NamedBarrier]) -> bool:
        strand, point, _ = stuck
        own = frozenset(strand.threads)
        return any(
            event.kind is Kind.SYNC
            and event.agent is not None
            and event.agent.rank == strand.cta.rank
            and not own.issuperset(event.agent.threads)
            and self._same_line(event.point, point)
            for event in self.machine.events
        )

    def _unreached_barrier(self) -> Incident:
        """Agents that are stuck at barriers alone, of the CTA or of the cluster."""
        at_barriers = list(self._at_barriers())
        if not at_barriers:
            strand = self.stuck[0]
            return self._stuck_incident(Fault.STUCK_CLUSTER, strand, self._cluster_point(strand), None)
        strand, point, barrier = at_barriers[0]
        if len({other.number for _, _, other in at_barriers}) > 1:
            others = [(p, f"{s.agent} never gets past this barrier") for s, p, _ in at_barriers[1:3]]
            order = len(self.machine.events)
            return Incident(Fault.CYCLE, point, strand.agent, barrier.number, order, {}, tuple(others))
        return self._stuck_incident(
            Fault.STUCK_BARRIER,
            strand,
            point,
            barrier.number,
            arrived=barrier.arrived,
            count=barrier.count or strand.cta.threads,
        )

    def _cluster_point(self, strand: Strand) -> int:
        return self.machine.cluster.points.get(strand.cta.rank, {}).get(strand.threads[0], 0)

    def _stuck_incident(self, fault: Fault, strand: Strand, point: int, target: int | None, **details: int) -> Incident:
        others = [(p, f"{s.agent} never gets past this wait") for s, p, _ in self._waits()][:3]
        return Incident(fault, point, strand.agent, target, len(self.machine.events), details, tuple(others))

    # Symptoms

    def _symptom(self) -> Incident:
        if self.machine.incidents:
            return min(self.machine.incidents, key=lambda incident: incident.order)
        waits = list(self._waits())
        if not waits:
            return self._unreached_barrier()
        strand, point, barrier = waits[0]
        revisit = self._revisited(waits)
        if revisit is not None:
            return self._wait_incident(Fault.PARITY_OF_OTHER_SLOT, revisit)
        others = [(p, f"{s.agent} never gets past this wait") for s, p, _ in waits[1:4]]
        others += [(p, f"{s.agent} never gets past this barrier") for s, p, _ in self._at_barriers()][:2]
        fault = Fault.CYCLE if others else Fault.STUCK
        return self._incident(
            fault, point, strand, barrier, others, phase=barrier.phase, pending=barrier.pending, tx=barrier.tx
        )

    def _revisited(self, waits: Iterable[tuple[Strand, int, Mbarrier]]) -> Event | None:
        """The wait of a stuck agent by which it came to one barrier twice running, in a ring of several."""
        for strand, point, _ in waits:
            group = next((g for g in self.groups if point in g.points), None)
            if group is None or len(group.barriers) < 2:
                continue
            turns = [
                e
                for e in [*self.machine.events, *self._stuck_events()]
                if e.kind is Kind.WAIT
                and e.point in group.points
                and e.agent
                and e.agent.rank == strand.cta.rank
                and strand.threads[0] in e.agent.threads
            ]
            for first, second in itertools.pairwise(turns):
                if first.object == second.object and first.amount != second.amount:
                    return second
        return None

    def _incident(
        self,
        fault: Fault,
        point: int,
        strand: Strand,
        barrier: Mbarrier,
        others: Sequence[tuple[int, str]],
        **details: int,
    ) -> Incident:
        order = len(self.machine.events)
        details.setdefault("phase", barrier.phase)
        return Incident(fault, point, strand.agent, barrier.address, order, details, tuple(others))


def _by_thread(barrier: Mbarrier) -> dict[tuple[int, int, int], int]:
    """How often each thread arrives at a barrier at a time, by place, rank and thread."""
    found: dict[tuple[int, int, int], int] = {}
    for arrivals in [*(phase[0] for phase in barrier.history), barrier.arrivals]:
        for arrival in arrivals:
            if isinstance(arrival.agent, Agent):
                threads = arrival.agent.threads
                for thread in threads:
                    found[arrival.point, arrival.agent.rank, thread] = arrival.count // len(threads)
    return found
