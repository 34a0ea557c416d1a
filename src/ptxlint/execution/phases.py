"""What the operations on mbarriers do in a run: objects come and go, phases complete, waits pass or block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlint.execution.acknowledged import is_acknowledged, is_twin
from ptxlint.execution.barriers import MOST_ARRIVALS, Arrival, Mbarrier
from ptxlint.execution.layout import RANK_SHIFT
from ptxlint.execution.leftovers import EarlyUse
from ptxlint.execution.schedule import OutOfBudgetError, Visit
from ptxlint.execution.strand import Strand
from ptxlint.execution.trace import Agent, Fault, Incident, Kind

if TYPE_CHECKING:
    from ptxlint.execution.machine import Machine


class Phases:
    """The operations on the mbarriers of a machine; what they leave to judge at the end is in `early` and `unneeded`.

    `waiting` holds who waits at which address, `left` the phases after which the run is cut.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.waiting: dict[int, list[Strand]] = {}
        self.early: dict[tuple[int, int], EarlyUse] = {}
        self.unneeded: list[tuple[Incident, bool]] = []
        self.left = dict(machine.binding.enough)
        self._visits: dict[tuple[int, int], Visit] = {}
        self._early: dict[int, Incident] = {}

    def mbarrier(self, address: int, point: int, agent: Agent | None) -> Mbarrier | None:
        """The live object at an address; a use before or after its life is noted."""
        barrier = self.machine.mbarriers.get(address)
        if barrier is None and address >> RANK_SHIFT >= len(self.machine.ctas):
            self.machine.left_cluster = True
            return None
        if barrier is None:
            self.early.setdefault((point, address), EarlyUse(len(self.machine.events), point, agent, address))
            return None
        if not barrier.live:
            places = ((barrier.init_point, "initialized here"), (barrier.inval_point, "invalidated here"))
            self.machine.blame(Fault.AFTER_INVAL, point, agent, address, places)
            return None
        if self.machine.order is not None and agent is not None:
            self.machine.order.when = len(self.machine.events)
            self.machine.order.lifetimes.use(agent, address, point)
        return barrier

    def initialize(self, strand: Strand, point: int, address: int, count: int, who: Agent) -> None:
        """mbarrier.init by those threads of a strand."""
        old = self.machine.mbarriers.get(address)
        if address % 8:
            self.machine.blame(Fault.MISALIGNED, point, strand.agent, address, remainder=address % 8)
        if not 1 <= count <= MOST_ARRIVALS:
            self.machine.blame(Fault.BAD_COUNT, point, strand.agent, address, count=count)
        if old is not None and old.live:
            where = "also initialized here" if old.init_point != point else "initialized here before"
            self.machine.blame(Fault.REINIT, point, strand.agent, address, ((old.init_point, where),), phase=old.phase)
        count = self.machine.repair.counts.get(address, count)
        fresh = Mbarrier(address, point, len(self.machine.events), strand.agent, count)
        self.machine.mbarriers[address] = fresh
        self.machine.record(Kind.INIT, strand.agent, point, fresh, count)
        if self.machine.order is not None:
            self.machine.order.when = len(self.machine.events)
            self.machine.order.lifetimes.initialize(who, address, point)
        self._wake_waiters(address)

    def invalidate(self, point: int, address: int, who: Agent) -> None:
        """mbarrier.inval."""
        barrier = self.mbarrier(address, point, who)
        if barrier is not None:
            barrier.live = False
            barrier.inval_point = point
            self.machine.record(Kind.INVAL, who, point, barrier)
            if self.machine.order is not None:
                self.machine.order.lifetimes.invalidate(who, address, point)

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
            self._early[address] = Incident(Fault.OVERTAKE, point, agent, address, len(self.machine.events), details)
        if count > barrier.pending and barrier.expected:
            earlier = tuple((a.point, f"{a.count} arrived here") for a in barrier.arrivals[-3:] if a.point != point)
            self.machine.blame(
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
        barrier.arrivals.append(Arrival(point, agent, count, len(self.machine.events)))
        self.machine.record(Kind.ARRIVE, agent, point, barrier, count)
        if self.machine.order is not None:
            self.machine.order.arrive(agent, address, phase, relaxed=relaxed)
        self.check(barrier)
        return phase

    def expect(self, agent: Agent | None, point: int, address: int, size: int) -> None:
        """mbarrier.expect_tx."""
        barrier = self.mbarrier(address, point, agent)
        if barrier is not None:
            self._expect(barrier, agent, point, size)

    def _expect(self, barrier: Mbarrier, agent: Agent | None, point: int, size: int) -> None:
        barrier.tx += size
        barrier.expects.append(Arrival(point, agent, size, len(self.machine.events)))
        self.machine.record(Kind.EXPECT, agent, point, barrier, size)

    def complete(self, agent: Agent | None, point: int, address: int, size: int) -> None:
        """Complete-tx of known bytes."""
        barrier = self.mbarrier(address, point, agent)
        if barrier is None:
            return
        barrier.tx -= size
        self.machine.record(Kind.COMPLETE, agent, point, barrier, size)
        self.check(barrier)

    def check(self, barrier: Mbarrier) -> None:
        """Let phases complete that nothing is pending in."""
        if barrier.pending <= 0 and barrier.unsized and not barrier.expects and not barrier.tx:
            copy = barrier.unsized[0]
            who = copy.agent if isinstance(copy.agent, Agent) else None
            here = ((barrier.init_point, "initialized here"),)
            self.machine.blame(Fault.UNEXPECTED_COPY, copy.point, who, barrier.address, here, phase=barrier.phase)
            barrier.settle()
        while barrier.is_due and barrier.expected:
            self._note_overtaken(barrier)
            barrier.turn()
            self.machine.record(Kind.PHASE, None, -1, barrier, phase=barrier.phase - 1)
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
        is_told = is_acknowledged(self.machine.events[: early.order], barrier.address, early.details["phase"] - 1)
        if is_told or any(
            other != barrier.address and is_twin(other, barrier.address) for other in self.machine.mbarriers
        ):
            self.unneeded.append((early, is_told))
        else:
            self.machine.admit(early)

    def note_all_overtaken(self) -> None:
        """The same for each mbarrier whose phase is still not seen."""
        for address in [*self._early]:
            self._note_overtaken(self.machine.mbarriers[address])

    def _wake_waiters(self, address: int) -> None:
        for strand in self.waiting.pop(address, ()):
            if strand.wanted[1] != address:
                strand.refused = frozenset()
            self.machine.wake(strand)

    def wait(self, strand: Strand, point: int, address: int, parity: int, *, relaxed: bool = False) -> bool | None:
        """Try to wait: whether the wait returns true or false; None when the strand blocks."""
        if point in self.machine.repair.skipped:
            return True
        barrier = self.mbarrier(address, point, strand.agent)
        own = parity
        if point in self.machine.repair.flipped:
            parity ^= 1
        elif point in self.machine.repair.alternating:
            parity = self._alternate(strand, address, parity)
        if barrier is not None and barrier.passes(parity):
            self._visit(strand, point, address, parity)
            barrier.observed = max(barrier.observed, barrier.phase - 1)
            self.machine.record(Kind.WAIT, strand.agent, point, barrier, own, phase=barrier.phase - 1)
            if self.machine.order is not None:
                self.machine.order.wait(strand.agent, address, barrier.phase - 1, relaxed=relaxed)
            strand.refused = frozenset()
            strand.state = "ready"
            return True
        key = (point, address, parity)
        is_refused = self.machine.schedule.refuses or strand.state == "refused"
        if is_refused and key not in strand.refused:
            strand.refused |= {key}
            strand.state = "ready"
            self.machine.record(Kind.POLL, strand.agent, point, barrier, parity, number=address)
            return False
        strand.state = "stuck" if key in strand.refused else "polling"
        strand.wanted = key
        for _, watched, _ in strand.refused | {key}:
            self.waiting.setdefault(watched, []).append(strand)
        return None

    def _alternate(self, strand: Strand, address: int, parity: int) -> int:
        last = self._visits.get((address, strand.threads[0]))
        if last is None:
            return parity if self.machine.repair.start is None else self.machine.repair.start
        return last.parity ^ 1 if last.is_over and last.tally != strand.tally else last.parity

    def _visit(self, strand: Strand, point: int, address: int, parity: int) -> None:
        if point in self.machine.repair.alternating:
            visit = Visit(parity, True, strand.tally)
            self._visits.update(((address, thread), visit) for thread in strand.threads)
