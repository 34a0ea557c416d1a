"""CTA and cluster barriers in a run: who comes there, and who goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlint.execution.barriers import NamedBarrier
from ptxlint.execution.strand import WARP, Strand
from ptxlint.execution.trace import Agent, Fault, Incident, Kind

if TYPE_CHECKING:
    from ptxlint.execution.machine import Machine


class Cta:
    """One CTA of the cluster: its live threads, named barriers and shared memory."""

    def __init__(self, rank: int, threads: int) -> None:
        self.rank = rank
        self.live: dict[int, set[int]] = {
            warp: set(range(warp * WARP, min(threads, (warp + 1) * WARP))) for warp in range(-(-threads // WARP))
        }
        self.threads = threads
        self.live_threads = threads
        self.named: dict[int, NamedBarrier] = {}
        self.exited = False


def bar(
    strand: Strand,
    point: int,
    number: int,
    count: int,
    *,
    waits: bool,
    aligned: bool,
    predicate: tuple[int, ...] = (),
) -> NamedBarrier:
    """Arrive at a named barrier; `count` 0 means all threads of the CTA."""
    machine, cta = strand.machine, strand.cta
    barrier = cta.named.setdefault(number, NamedBarrier(number))
    everyone = -(-cta.threads // WARP) * WARP
    if barrier.count is not None and barrier.arrived and (barrier.count or everyone) != (count or everyone):
        other = next(iter(barrier.points.values()))
        machine.blame(
            Fault.BARRIER_COUNT,
            point,
            strand.agent,
            number,
            ((other, "the other count"),),
            count=count or everyone,
            other=barrier.count or everyone,
        )
    barrier.count = count
    kind = Kind.SYNC if waits else Kind.BAR_ARRIVE
    machine.record(kind, strand.agent, point, number=number, amount=count or everyone, phase=barrier.generation)
    if machine.order is not None:
        machine.order.bar_arrive(strand.agent, number, barrier.generation)
    for warp, arriving in strand.lanes().items():
        if not waits and warp in barrier.arrivers:
            earlier = ((barrier.arrivers[warp], "arrived here before"),)
            machine.blame(Fault.RUN_AHEAD, point, strand.agent, number, earlier, warp=warp)
        lanes = barrier.lanes.setdefault(warp, set())
        lanes |= arriving
        barrier.points[warp] = point
        if not waits:
            barrier.arrivers[warp] = point
        if predicate:
            barrier.values.update((strand.threads[i], predicate[i]) for i in strand.warps()[warp])
        parted = barrier.parted.get(warp)
        if parted is not None and parted.point != point:
            machine.admit(barrier.parted.pop(warp))
        if lanes >= cta.live[warp]:
            barrier.admit(warp)
        elif aligned and not machine.released_joins:
            details = {"lanes": len(lanes), "live": len(cta.live[warp])}
            here = Incident(Fault.DIVERGENT, point, strand.agent, number, len(machine.events), details)
            barrier.parted.setdefault(warp, here)
    complete_if_full(machine, cta, barrier)
    return barrier


def complete_if_full(machine: Machine, cta: Cta, barrier: NamedBarrier) -> None:
    """Let those at a named barrier go on once all have come whom it waits for."""
    if not barrier.points:
        return
    for warp in [warp for warp, lanes in barrier.lanes.items() if lanes and lanes >= cta.live[warp]]:
        barrier.admit(warp)
    if barrier.count:
        if barrier.arrived < barrier.count:
            return
        if barrier.arrived > barrier.count:
            point = next(iter(barrier.points.values()))
            machine.blame(Fault.BARRIER_COUNT, point, None, barrier.number, count=barrier.count, other=barrier.arrived)
    elif not all(warp in barrier.warps for warp, lanes in cta.live.items() if lanes):
        return
    waiting, barrier.waiting = barrier.waiting, []
    barrier.reset()
    for strand in waiting:
        if isinstance(strand, Strand):
            machine.wake(strand)


def cluster_arrive(machine: Machine, agent: Agent, point: int, *, relaxed: bool = False) -> None:
    """barrier.cluster.arrive."""
    if machine.order is not None:
        machine.order.cluster_arrive(agent, machine.cluster.generation, relaxed=relaxed)
    machine.record(Kind.CLUSTER_ARRIVE, agent, point, amount=int(relaxed), phase=machine.cluster.generation)
    twice = machine.cluster.arrive(agent.rank, agent.threads, point)
    if twice is not None:
        machine.blame(Fault.CLUSTER_TWICE, point, agent, None, ((twice, "arrived here before"),))
    turn_cluster(machine)


def cluster_wait(strand: Strand, point: int) -> bool:
    """barrier.cluster.wait: whether it returns; False when the strand blocks."""
    machine = strand.machine
    owed = machine.cluster.owed.get(strand.cta.rank, {})
    if any(thread not in owed for thread in strand.threads):
        machine.blame(Fault.CLUSTER_UNARRIVED, point, strand.agent, None)
        return True
    if owed[strand.threads[0]] < machine.cluster.generation:
        for thread in strand.threads:
            del owed[thread]
        machine.record(Kind.CLUSTER_WAIT, strand.agent, point, phase=machine.cluster.generation - 1)
        if machine.order is not None:
            machine.order.cluster_leave(strand.agent, machine.cluster.generation - 1)
        strand.progress()
        return True
    strand.state = "at cluster barrier"
    machine.cluster_waiting.append(strand)
    return False


def turn_cluster(machine: Machine) -> None:
    """Let those at the barrier of the cluster go on once every live thread of it has arrived."""
    arrived = machine.cluster.arrived
    if not arrived or any(len(arrived.get(cta.rank, ())) < cta.live_threads for cta in machine.ctas):
        return
    machine.cluster.turn()
    waiting, machine.cluster_waiting = machine.cluster_waiting, []
    for strand in waiting:
        machine.wake(strand)
