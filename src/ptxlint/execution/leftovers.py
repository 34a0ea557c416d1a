"""What shows only when a run is over: what nobody came back for, never expected, or used too early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlint.classes import dataclass
from ptxlint.execution.acknowledged import is_passed_over, is_twin
from ptxlint.execution.trace import Agent, Fault, Incident, Kind

if TYPE_CHECKING:
    from ptxlint.execution.machine import Machine


@dataclass(frozen=True, slots=True)
class EarlyUse:
    """A use of shared memory as an mbarrier before it was one."""

    order: int
    point: int
    agent: Agent | None
    address: int


def needed(machine: Machine) -> Iterator[Incident]:
    """Overtaken phases that somebody waited for after all, or for which nobody speaks in another CTA either."""
    blocked = [strand.wanted for strand in machine.blocked]
    asked = {event.object for event in machine.events if event.kind in (Kind.WAIT, Kind.POLL)}
    asked.update(address for _, address, _ in blocked)
    for early, is_told in machine.phases.unneeded:
        address = early.object
        assert address is not None
        later = machine.events[early.order :]
        is_over = is_told and is_passed_over(later, blocked, address, early.details["phase"] - 1)
        if not is_over and (address in asked or not any(is_twin(address, other) for other in asked if other)):
            yield early


def parted(machine: Machine) -> Iterator[Incident]:
    """Lanes that came to an aligned barrier, and whose warp never all came there."""
    for cta in machine.ctas:
        for barrier in cta.named.values():
            yield from barrier.parted.values()


def early_uses(machine: Machine) -> Iterator[Incident]:
    """Uses of an mbarrier that nothing orders after its initialization, and of memory that never became one."""
    for use in machine.phases.early.values():
        barrier = machine.mbarriers.get(use.address)
        if barrier is not None and barrier.init_order >= use.order:
            here = ((use.point, "used here, and nothing orders the initialization before it"),)
            yield Incident(Fault.UNPUBLISHED, barrier.init_point, use.agent, use.address, use.order, {}, here)
        elif barrier is None:
            yield Incident(Fault.BEFORE_INIT, use.point, use.agent, use.address, use.order, {})


def unwaited(machine: Machine) -> Iterator[Incident]:
    """A releasing arrival at the cluster barrier orders nothing when no thread of the cluster ever waits."""
    if machine.blocked or machine.trapped or any(event.kind is Kind.CLUSTER_WAIT for event in machine.events):
        return
    first = next((e for e in machine.events if e.kind is Kind.CLUSTER_ARRIVE and not e.amount), None)
    if first is not None:
        yield Incident(Fault.CLUSTER_UNWAITED, first.point, first.agent, None, len(machine.events), {})


def surplus(machine: Machine) -> Iterator[Incident]:
    """Bytes that have come to an mbarrier and that nobody ever expected."""
    for barrier in machine.mbarriers.values() if not machine.blocked else ():
        sized = [copy for copy in barrier.copies if copy.size]
        if barrier.live and barrier.tx < 0 and sized:
            who = sized[-1].agent if isinstance(sized[-1].agent, Agent) else None
            here = ((barrier.init_point, "initialized here"),)
            order, details = len(machine.events), {"phase": barrier.phase}
            yield Incident(Fault.UNEXPECTED_COPY, sized[-1].point, who, barrier.address, order, details, here)
