"""Searches for a CTA or cluster barrier that only some of those whom it waits for come to."""

from __future__ import annotations

from ptxlint.execution.barriers import NamedBarrier
from ptxlint.execution.observation import Observation
from ptxlint.execution.schedule import Repair
from ptxlint.execution.strand import Strand
from ptxlint.execution.trace import Fault, Incident, Kind


def role_cluster_barrier(seen: Observation) -> Incident | None:
    """A barrier of the cluster that some come to while others stand at one of the CTA."""
    for strand in seen.stuck:
        if strand.state != "at cluster barrier" or not any(seen.at_barriers()):
            continue
        point = _cluster_point(seen, strand)
        line = frozenset(p for p in seen.machine.program.events if seen.is_same_line(p, point))
        if seen.mends(Repair(skipped=line)):
            return seen.stuck_incident(Fault.STUCK_CLUSTER, strand, point, None)
    return None


def role_barrier(seen: Observation) -> Incident | None:
    """Tried last: a barrier on whose line others have stood too, which is none of this role alone."""
    for strand, point, barrier in sorted(seen.at_barriers(), key=lambda stuck: _is_shared(seen, stuck)):
        if not barrier.count and seen.mends(Repair(skipped=_uses_of_role(seen, point, barrier))):
            return seen.stuck_incident(Fault.ROLE_BARRIER, strand, point, barrier.number, arrived=barrier.arrived)
    return None


def unreached_barrier(seen: Observation) -> Incident:
    """Agents that are stuck at barriers alone, of the CTA or of the cluster."""
    at_barriers = list(seen.at_barriers())
    if not at_barriers:
        strand = seen.stuck[0]
        return seen.stuck_incident(Fault.STUCK_CLUSTER, strand, _cluster_point(seen, strand), None)
    strand, point, barrier = at_barriers[0]
    if len({other.number for _, _, other in at_barriers}) > 1:
        others = [(p, f"{s.agent} never gets past this barrier") for s, p, _ in at_barriers[1:3]]
        order = len(seen.machine.events)
        return Incident(Fault.CYCLE, point, strand.agent, barrier.number, order, {}, tuple(others))
    return seen.stuck_incident(
        Fault.STUCK_BARRIER,
        strand,
        point,
        barrier.number,
        arrived=barrier.arrived,
        count=barrier.count or strand.cta.threads,
    )


def _uses_of_role(seen: Observation, point: int, barrier: NamedBarrier) -> frozenset[int]:
    """The uses of a barrier on one line, and those like it that only those who are stuck there have come to."""
    stuck = {(s.cta.rank, thread) for s, _, other in seen.at_barriers() if other is barrier for thread in s.threads}
    come = {
        event.point
        for event in seen.machine.events
        if event.kind is Kind.SYNC and event.agent is not None
        if not stuck.issuperset((event.agent.rank, thread) for thread in event.agent.threads)
    }
    here, body = seen.cfg.body[point], seen.cfg.body
    alike = (p for p in seen.machine.program.events if body[p].opcode == here.opcode)
    return frozenset(
        p for p in alike if seen.is_same_line(p, point) or (p not in come and body[p].operands == here.operands)
    )


def _is_shared(seen: Observation, stuck: tuple[Strand, int, NamedBarrier]) -> bool:
    strand, point, _ = stuck
    own = frozenset(strand.threads)
    return any(
        event.kind is Kind.SYNC
        and event.agent is not None
        and event.agent.rank == strand.cta.rank
        and not own.issuperset(event.agent.threads)
        and seen.is_same_line(event.point, point)
        for event in seen.machine.events
    )


def _cluster_point(seen: Observation, strand: Strand) -> int:
    return seen.machine.cluster.points.get(strand.cta.rank, {}).get(strand.threads[0], 0)
