"""Searches for a fault in what comes to an mbarrier: too few or too many arrivals, none at all, other bytes."""

from __future__ import annotations

from ptxlint.execution.barriers import Mbarrier
from ptxlint.execution.layout import RANK_SHIFT
from ptxlint.execution.observation import Observation
from ptxlint.execution.schedule import Repair
from ptxlint.execution.trace import Agent, Fault, Incident
from ptxlint.execution.waits import is_touched


def wrong_bytes(seen: Observation) -> Incident | None:
    """A phase that has all its arrivals and lacks bytes, or has too many."""
    for strand, point, barrier in seen.waits():
        if barrier.pending <= 0 and barrier.tx != 0 and not barrier.unsized and barrier.expects:
            expected = sum(e.count for e in barrier.expects)
            if barrier.tx > 0 and any(sum(e.count for e in h[1]) == expected for h in barrier.history):
                continue
            copied = expected - barrier.tx
            blamed = barrier.expects[-1].point
            others = [(copy.point, "copied here") for copy in barrier.copies[:2]]
            return seen.incident(
                Fault.BYTES,
                blamed,
                strand,
                barrier,
                [*others, (point, "never gets past this wait")],
                expected=expected,
                copied=copied,
            )
    return None


def expect_only(seen: Observation) -> Incident | None:
    """Bytes expected without an arrival, by as many as should have arrived."""
    for strand, point, barrier in seen.waits():
        if barrier.expects and not barrier.arrivals and barrier.pending == barrier.expected:
            arrived = any(phase[0] for phase in barrier.history)
            if not arrived and _adds_arrival(barrier, len({e.agent for e in barrier.expects})):
                return seen.incident(
                    Fault.EXPECT_WITHOUT_ARRIVAL,
                    barrier.expects[0].point,
                    strand,
                    barrier,
                    [(point, "never gets past this wait")],
                    expected=barrier.expected,
                )
    return None


def _adds_arrival(barrier: Mbarrier, agents: int) -> bool:
    """Whether the expect_tx operations alone are as many as the arrivals that the barrier lacks."""
    return agents >= 1 and len(barrier.expects) >= barrier.pending


def missing_arrivals(seen: Observation) -> Incident | None:
    """A smaller count at the initialization: as many arrivals as came in the phase."""
    for _, point, barrier in seen.waits():
        arrived = sum(a.count for a in barrier.arrivals)
        if barrier.raised and arrived == barrier.raised and barrier.pending == barrier.expected:
            return _count_incident(seen, barrier, 0, point)
        if 0 < arrived < barrier.expected and seen.mends(_with_counts(seen, barrier, arrived)):
            return _count_incident(seen, barrier, arrived, point)
    return None


def nobody_arrives(seen: Observation) -> Incident | None:
    """A barrier that nothing comes to, not even when its waits hold nobody up."""
    for strand, point, barrier in seen.waits():
        if barrier.arrivals or barrier.expects or barrier.history or barrier.unsized:
            continue
        group = next((g for g in seen.groups if point in g.points), None)
        points = group.points if group else frozenset({point})
        reruns = [seen.rerun(Repair(flipped=points)), seen.rerun(Repair(skipped=points)), seen.machine]
        ended = [again for again in reruns if not again.blocked]
        rank = barrier.address >> RANK_SHIFT
        family = [a for a in (group.barriers if group else ()) if a >> RANK_SHIFT == rank]
        served = (barrier.address,) if ended else (*family, barrier.address)
        if any(is_touched(again, served) for again in (*reruns, *seen.unhindered)):
            continue
        if not seen.unreached_arrivals([*reruns, *seen.unhindered]):
            return seen.incident(
                Fault.NO_ARRIVAL,
                point,
                strand,
                barrier,
                [(barrier.init_point, "initialized here")],
                expected=barrier.expected,
            )
    return None


def extra_arrivals(seen: Observation) -> Incident | None:
    """A larger count at the initialization: as many arrivals as the places that arrive add up to."""
    surplus = [i for i in seen.machine.incidents if i.fault in (Fault.OVER_ARRIVAL, Fault.OVERTAKE)]
    for incident in surplus[:2]:
        barrier = seen.machine.mbarriers.get(-1 if incident.object is None else incident.object)
        for total in _totals(barrier) if barrier else ():
            if barrier and seen.mends(_with_counts(seen, barrier, total)):
                came = next((e for e in seen.machine.events[incident.order :] if e.point == incident.point), None)
                counted = {"expected": barrier.expected, "left": 0, "arrived": came.amount if came else 0}
                details = {**counted, **incident.details, "arrivals": total}
                others = dict.fromkeys((*incident.others, (barrier.init_point, "initialized here")))
                return incident._replace(fault=Fault.OVER_ARRIVAL, details=details, others=tuple(others))
    return None


def _totals(barrier: Mbarrier) -> list[int]:
    """Arrivals per phase that the places which arrive would add up to, most likely first."""
    whole: dict[int, int] = {}
    for arrivals in [*(h[0] for h in barrier.history), barrier.arrivals]:
        phase: dict[int, int] = {}
        for arrival in arrivals:
            phase[arrival.point] = phase.get(arrival.point, 0) + arrival.count
        for place, count in phase.items():
            whole[place] = max(whole.get(place, 0), count)
    first = sum(a.count for a in barrier.history[0][0]) if barrier.history else 0
    everything = sum(a.count for h in [*barrier.history[:1], (barrier.arrivals, (), ())] for a in h[0])
    threads = sum(_by_thread(barrier).values())
    totals = [max(whole.values(), default=0), sum(whole.values()), first, everything, threads, 2 * barrier.expected]
    return [t for t in dict.fromkeys(totals) if t > barrier.expected]


def _count_incident(seen: Observation, barrier: Mbarrier, arrivals: int, point: int) -> Incident:
    places = [(a.point, f"{a.count} arrived here") for a in barrier.arrivals[:3]]
    strand = next(strand for strand, _, stuck in seen.waits() if stuck is barrier)
    return seen.incident(
        Fault.ARRIVALS_MISSING,
        barrier.init_point,
        strand,
        barrier,
        [*places, (point, "never gets past this wait")],
        expected=barrier.expected,
        arrivals=arrivals,
    )


def _with_counts(seen: Observation, barrier: Mbarrier, count: int) -> Repair:
    family = next((g.barriers for g in seen.groups if barrier.address in g.barriers), {barrier.address})
    same = {a for a in family if a in seen.machine.mbarriers}
    alike = {a for a in same if seen.machine.mbarriers[a].expected == barrier.expected}
    peers = {
        address
        for address, other in seen.machine.mbarriers.items()
        if other.expected == barrier.expected
        and seen.is_same_line(other.init_point, barrier.init_point)
        and _served_alike(seen, other, barrier)
    }
    return Repair(counts=dict.fromkeys(alike | peers, count))


def _served_alike(seen: Observation, first: Mbarrier, second: Mbarrier) -> bool:
    """Whether arrivals at two barriers come from a common line of the source, or one of them has had none."""
    one, other = (
        {seen.cfg.body[point].loc or point for point, _, _ in _by_thread(barrier)} for barrier in (first, second)
    )
    return not one or not other or not one.isdisjoint(other)


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
