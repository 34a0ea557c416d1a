"""From symptoms to the fault: which single change would mend the kernel?

A run shows symptoms (an agent never gets past a wait, a phase is overtaken); the fault lies elsewhere as often as not.
So changes are tried: another parity at a wait, phases asked for in turn, another arrival count, a barrier left out. The
change under which every schedule runs clean names the fault and its place, and is the fix that the message proposes.
Where none does, the first symptom is reported as it is.
"""

from __future__ import annotations

from ptxlint.cfg import Cfg
from ptxlint.execution.counts import expect_only, extra_arrivals, missing_arrivals, nobody_arrives, wrong_bytes
from ptxlint.execution.machine import Machine
from ptxlint.execution.observation import Observation, Rerun, Try
from ptxlint.execution.parities import any_parity, initial_parity, repeated_parity, revisited, stale_address
from ptxlint.execution.role_barriers import role_barrier, role_cluster_barrier, unreached_barrier
from ptxlint.execution.trace import Agent, Fault, Incident

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

SEARCHES = (
    wrong_bytes,
    expect_only,
    missing_arrivals,
    nobody_arrives,
    repeated_parity,
    extra_arrivals,
    role_cluster_barrier,
    role_barrier,
    initial_parity,
    any_parity,
    stale_address,
)
"""In their order: the first that finds something names the fault."""


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
    seen = Observation(machine, cfg, mends, rerun)
    found = _find(seen)
    if found.fault in (Fault.CYCLE, Fault.STUCK) and _trip_counts_differ(seen):
        found = found._replace(fault=Fault.STUCK, details={**found.details, "trips": 1})
    if found.fault in (Fault.CYCLE, Fault.STUCK) and _depends_on_inputs(seen):
        return None
    return [found]


def _find(seen: Observation) -> Incident:
    for search in SEARCHES:
        found = search(seen)
        if found is not None:
            return found
    return _symptom(seen)


def _trip_counts_differ(seen: Observation) -> bool:
    """Whether everyone who ever served the mbarriers that agents are stuck at has ended or is past its work."""
    waits = list(seen.waits())
    served: list[object] = []
    for _, _, barrier in waits:
        for arrivals, expects, copies in barrier.history:
            served += [done.agent for done in (*arrivals, *expects)] + [copy.agent for copy in copies]
    alive = {(s.cta.rank, thread) for s, _, _ in waits for thread in s.threads}
    agents = [agent for agent in served if isinstance(agent, Agent)]
    ended = all((agent.rank, agent.threads[0]) not in alive for agent in agents)
    return bool(waits) and bool(agents) and ended and all(barrier.history for _, _, barrier in waits)


def _depends_on_inputs(seen: Observation) -> bool:
    """Whether places that may arrive stay unreached even when no wait holds anybody up."""
    return seen.unreached_arrivals([seen.machine, *seen.unhindered])


def _symptom(seen: Observation) -> Incident:
    if seen.machine.incidents:
        return min(seen.machine.incidents, key=lambda incident: incident.order)
    waits = list(seen.waits())
    if not waits:
        return unreached_barrier(seen)
    strand, point, barrier = waits[0]
    revisit = revisited(seen, waits)
    if revisit is not None:
        return seen.wait_incident(Fault.PARITY_OF_OTHER_SLOT, revisit)
    others = [(p, f"{s.agent} never gets past this wait") for s, p, _ in waits[1:4]]
    others += [(p, f"{s.agent} never gets past this barrier") for s, p, _ in seen.at_barriers()][:2]
    fault = Fault.CYCLE if others else Fault.STUCK
    return seen.incident(
        fault, point, strand, barrier, others, phase=barrier.phase, pending=barrier.pending, tx=barrier.tx
    )
