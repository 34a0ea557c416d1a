"""How a run may go: the schedules that hardware may choose, and the repairs that a diagnosis tries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from ptxlint.classes import dataclass


class Turn(StrEnum):
    """Which agent runs next."""

    FIFO = "fifo"
    UP = "lowest thread first"
    DOWN = "highest thread first"
    INITIALIZER_LAST = "initializing thread last"


@dataclass(frozen=True, slots=True)
class Schedule:
    """One way for hardware to choose: the order of agents, and whether copies land at once or as late as possible.

    `refuses`: a wait for a phase that is not complete returns false once before it blocks, as `mbarrier.try_wait` may
    after its time limit (*mbarrier.test_wait, mbarrier.try_wait*); so the wait behind a peek is reached.
    """

    order: Turn
    late_copies: bool = False
    refuses: bool = False

    def __str__(self) -> str:
        return f"{self.order}, copies {'late' if self.late_copies else 'at once'}"


SCHEDULES = (
    Schedule(Turn.FIFO),
    Schedule(Turn.INITIALIZER_LAST),
    Schedule(Turn.UP),
    Schedule(Turn.DOWN, late_copies=True),
    Schedule(Turn.FIFO, late_copies=True, refuses=True),
)


THREADS_PER_STEP = 8
"""Parting an agent costs as much as a step for so many threads."""


LEAST_BOX = 128
"""Bytes of a tensor box when nothing says how many."""


class OutOfBudgetError(Exception):
    """The run took more steps than it was given."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change to the kernel tried in a run, to see whether it mends it. Points index the body.

    flipped: waits that ask for the other parity. alternating: waits that ask each barrier for the phases in turn,
    starting where they start, or with the parity `start`. counts: mbarriers that expect another number of arrivals.
    skipped: synchronization points that are left out.
    """

    flipped: frozenset[int] = frozenset()
    alternating: frozenset[int] = frozenset()
    start: int | None = None
    counts: Mapping[int, int] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()


NO_REPAIR = Repair()


@dataclass(frozen=True, slots=True)
class Visit:
    """The last wait of a thread on a barrier under an alternating repair: its parity, whether it is over, and when."""

    parity: int
    is_over: bool
    tally: int
