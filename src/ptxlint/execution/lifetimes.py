"""The lives of mbarriers on the clocks of a run: who may use one before it is published, overwrite it, invalidate it
while others use it, or let its parity come round unseen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlint.classes import dataclass
from ptxlint.execution.clock import INITIALIZATION, WARP_LINE, Clock, Line, Moment
from ptxlint.execution.conflict import Access, Conflict, Failure, Interval, Space
from ptxlint.execution.trace import Agent
from ptxlint.isa import Proxy

if TYPE_CHECKING:
    from ptxlint.execution.order import Order

MBARRIER_BYTES = 8
"""Size of an mbarrier. Source: PTX ISA, *Size and alignment of mbarrier object*."""


@dataclass(frozen=True, slots=True)
class _Use:
    """What a warp did with an mbarrier, and when by the warp's own time line."""

    agent: Agent
    warp: int
    point: int
    when: int
    moment: Moment

    def access(self, address: int, *, is_write: bool = False) -> Access:
        """The same as an access to the mbarrier's bytes."""
        place = (address, address + MBARRIER_BYTES)
        return Access(
            Space.SHARED, place, is_write, Proxy.GENERIC, self.moment, self.point, self.agent, self.warp, 0, self.when
        )


class Lifetimes:
    """The mbarriers of a run, as its order sees them; conflicts go to those of the order."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.initialized: dict[int, Access] = {}
        self.users: dict[int, dict[tuple[int, int], _Use]] = {}
        self.declared: dict[tuple[int, int], dict[Line, int]] = {}
        self.seen: dict[tuple[int, int], list[_Use]] = {}
        self.point = -1

    def initialize(self, agent: Agent, address: int, point: int) -> None:
        """mbarrier.init: a generic write that others may rely on once a release has published it."""
        warp = agent.threads[0] // 32
        line = (INITIALIZATION, agent.rank, warp)
        moment = Moment(line, self.order.close(line))
        self.order.clock(agent.rank, warp).known[line] = moment.time
        use = _Use(agent, warp, point, self.order.when, moment)
        self.initialized[address] = use.access(address, is_write=True)

    def declare(self, agent: Agent) -> None:
        """fence.mbarrier_init: a relaxed arrive publishes the initializations before it as well.

        Source: PTX ISA, *membar/fence*. A proxy fence in its place is no release by the text; it is taken for one.
        """
        for warp in self.order.warps(agent):
            line = (INITIALIZATION, agent.rank, warp)
            self.declared[agent.rank, warp] = {line: self.order.clock(agent.rank, warp).known.get(line, 0)}

    def use(self, agent: Agent, address: int, point: int) -> None:
        """An operation on an mbarrier: a conflict if no barrier, or a relaxed one, comes after its initialization.

        The last of each warp is kept.
        """
        self.point = point
        made = self.initialized.get(address)
        if made is None:
            return
        users = self.users.setdefault(address, {})
        for warp in self.order.warps(agent):
            clock = self.order.clock(agent.rank, warp)
            line = (WARP_LINE, agent.rank, warp)
            use = users[agent.rank, warp] = _Use(agent, warp, point, self.order.when, Moment(line, clock.known[line]))
            if not clock.knows(made.moment):
                self._note(Failure.UNPUBLISHED, made, use.access(address))

    def invalidate(self, agent: Agent, address: int, point: int) -> None:
        """mbarrier.inval: the memory is free for other uses; a conflict with the last use by each warp that may come
        later.

        The warps of a warpgroup that multiplies run together; relaxed operations leave no trace in the clocks. Source:
        PTX ISA, *mbarrier.inval* (any other operation on the invalidated object is undefined).
        """
        self.initialized.pop(address, None)
        warp = agent.threads[0] // 32
        clock = self.order.clock(agent.rank, warp)
        over = Moment((WARP_LINE, agent.rank, warp), 0)
        given_up = _Use(agent, warp, point, self.order.when, over).access(address, is_write=True)
        for user, used in self.users.pop(address, {}).items():
            is_together = self.order.group_of(*user) == self.order.group_of(agent.rank, warp)
            is_exempt = self.order.is_relaxed or (is_together and self.order.multiplies(*user))
            if user != (agent.rank, warp) and not is_exempt and not clock.knows(used.moment):
                self._note(Failure.INVALIDATED, used.access(address), given_up)

    def overlay(self, made: Access, intervals: Sequence[Interval]) -> None:
        """A copy writes shared memory: a conflict with each mbarrier in use there."""
        for address, barrier in self.initialized.items():
            if any(start < address + MBARRIER_BYTES and address < stop for start, stop in intervals):
                self._note(Failure.OVERLAID, barrier, made)

    def complete(self, agent: Agent, address: int, phase: int, source: Clock) -> None:
        """A phase is seen complete: a conflict if a warp that waited for the one before may not have seen that yet.

        Its parity would come round meanwhile. A warpgroup that multiplies runs together; relaxed operations count, but
        leave no trace in the clocks. Warps that wait and then touch nothing, as those do that TileLang keeps beside its
        elected producer, are told apart: they lose nothing but their place.
        """
        order = self.order
        later = agent.threads[0] // 32
        for early in self.seen.pop((address, phase - 1), ()):
            line, time = early.moment.line, early.moment.time
            is_known = max(source.known.get(line, 0), source.issued.get(line, 0)) >= time
            if is_known or order.is_relaxed or order.multiplies(early.agent.rank, early.warp):
                continue
            is_idle = order.touched.get((early.agent.rank, early.warp), -1) < early.when
            over = Moment((WARP_LINE, agent.rank, later), 0)
            passed = _Use(agent, later, self.point, order.when, over).access(address, is_write=True)
            self._note(Failure.IDLE_LAPPED if is_idle else Failure.LAPPED, early.access(address), passed)
        seen = self.seen.setdefault((address, phase), [])
        for warp in order.warps(agent):
            line = (WARP_LINE, agent.rank, warp)
            over = Moment(line, order.clock(agent.rank, warp).known[line])
            seen.append(_Use(agent, warp, self.point, order.when, over))

    def _note(self, failure: Failure, first: Access, second: Access) -> None:
        """Keep a conflict, one for each failure and pair of places."""
        self.order.conflicts.setdefault((failure, first.point, second.point), Conflict(failure, first, second))
