"""Asynchronous operations that signal an mbarrier: copies and commits, from their issue to their landing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlint.execution.barriers import Copy, Mbarrier
from ptxlint.execution.order import Order
from ptxlint.execution.schedule import LEAST_BOX
from ptxlint.execution.strand import WARP
from ptxlint.execution.trace import Agent, Kind
from ptxlint.isa import Proxy

if TYPE_CHECKING:
    from ptxlint.execution.machine import Machine


def launch(machine: Machine, copy: Copy) -> None:
    """Start an operation that signals an mbarrier when it is done."""
    agent = copy.agent if isinstance(copy.agent, Agent) else None
    barrier = machine.phases.mbarrier(copy.barrier, copy.point, agent)
    if barrier is None:
        return
    copy.order = len(machine.events)
    if copy.size != 0:
        barrier.copies.append(copy)
    size = copy.size if copy.size is not None else -1
    machine.record(Kind.COPY, agent, copy.point, barrier, size, source=copy.destination)
    if machine.order is not None and agent is not None:
        _order(machine, machine.order, agent, copy, barrier)
    if copy.size is None:
        barrier.unsized.append(copy)
    elif machine.schedule.late_copies:
        machine.in_flight.append(copy)
    else:
        land(machine, copy)


def _order(machine: Machine, order: Order, agent: Agent, copy: Copy, barrier: Mbarrier) -> None:
    order.when = len(machine.events)
    if copy.is_commit:
        order.tensor_commit(agent, copy.barrier, barrier.phase)
    elif copy.is_arrival:
        order.copies_arrive(agent, copy.barrier, barrier.phase)
    else:
        over = order.on_mbarrier(copy.barrier, barrier.phase)
        order.issue(agent, copy.barrier, barrier.phase)
        warp = agent.threads[0] // WARP
        proxy = Proxy.GENERIC if copy.is_generic else Proxy.ASYNC
        extent = copy.size or machine.program.extents.get(copy.point, LEAST_BOX)
        for place, is_write in ((copy.source, False), (copy.destination, True)):
            if place >= 0:
                reach = [(place, place + extent)]
                what = "st.async" if copy.is_generic else "bulk copy"
                order.access(agent, warp, reach, copy.point, is_write=is_write, proxy=proxy, moment=over, what=what)


def land(machine: Machine, copy: Copy) -> None:
    """An operation is done: its bytes and arrivals count."""
    if copy.size:
        machine.phases.complete(None, copy.point, copy.barrier, copy.size)
    if copy.arrivals:
        machine.phases.arrive(None, copy.point, copy.barrier, copy.arrivals)


def next_to_settle(machine: Machine) -> Mbarrier | None:
    """The mbarrier whose tensor copies land next, of those that lack nothing but bytes; None when there is none.

    One for which fewer copies were sent than in the phase before may have to wait for the rest of them.
    """
    unsettled = [b for b in machine.mbarriers.values() if b.unsized and b.pending <= 0 and b.tx > 0]
    return min(unsettled, key=lambda barrier: (_is_short(barrier), _turn(machine, barrier)), default=None)


def _is_short(barrier: Mbarrier) -> bool:
    return bool(barrier.history) and len(barrier.copies) < len(barrier.history[-1][2])


def _turn(machine: Machine, barrier: Mbarrier) -> int:
    """When the tensor copies that signal an mbarrier land: in a cluster in the order in which they were sent.

    A CTA whose copies landed before those of another would run ahead of what the other has yet to send to it.
    Within one CTA the barriers take turns.
    """
    return barrier.unsized[0].order if len(machine.ctas) > 1 else barrier.init_order
