"""Barriers as the ISA counts them: mbarrier objects, named barriers of a CTA, the barrier of a cluster.

The models only count; who waits and what is at fault is decided by the machine. Sources: PTX ISA, *mbarrier* (Contents
of the mbarrier object, Phase Completion), *bar, barrier*, *barrier.cluster*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ptxlint.classes import dataclass
from ptxlint.execution.trace import Incident

MOST_ARRIVALS = (1 << 20) - 1


@dataclass(slots=True)
class Copy:
    """An asynchronous operation that completes on an mbarrier.

    `size` None: bytes of a tensor box, not in the PTX. `destination`: the shared memory that it fills, -1 for none.
    `source`: the shared memory that it reads, -1 for none. `is_commit`: it is a tcgen05.commit, which moves nothing
    itself. `is_generic`: it stores through the generic proxy (st.async, red.async).
    """

    point: int
    agent: object
    barrier: int
    size: int | None
    arrivals: int = 0
    order: int = 0
    destination: int = -1
    is_commit: bool = False
    source: int = -1
    is_generic: bool = False

    @property
    def is_arrival(self) -> bool:
        """Whether it stands for the cp.async before it (cp.async.mbarrier.arrive)."""
        return self.arrivals > 0 and not self.is_commit


@dataclass(slots=True)
class Arrival:
    """One arrive-on of the phase in progress."""

    point: int
    agent: object
    count: int
    order: int


@dataclass(slots=True)
class Mbarrier:
    """An mbarrier object. `pending` is negative while more threads have arrived than the phase had left.

    `raised` counts the arrivals that `cp.async.mbarrier.arrive` has added to this phase and takes back by itself.
    """

    address: int
    init_point: int
    init_order: int
    init_agent: object
    expected: int
    pending: int = 0
    tx: int = 0
    phase: int = 0
    observed: int = -1
    live: bool = True
    inval_point: int = -1
    raised: int = 0
    unsized: list[Copy] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    expects: list[Arrival] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    history: list[tuple[tuple[Arrival, ...], tuple[Arrival, ...], tuple[Copy, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pending = self.expected

    def passes(self, parity: int) -> bool:
        """Whether a wait for this parity returns true: the phase before the current one has it."""
        return (self.phase ^ parity) & 1 == 1

    @property
    def is_unseen(self) -> bool:
        """Whether no wait has yet returned true for the phase before the current one."""
        return self.phase > 0 and self.observed < self.phase - 1

    @property
    def is_due(self) -> bool:
        """Whether the phase completes now."""
        return self.pending <= 0 and self.tx == 0 and not self.unsized

    def turn(self) -> None:
        """Complete the phase; arrivals in excess count in the next one (measured on an H200)."""
        self.history.append((tuple(self.arrivals), tuple(self.expects), tuple(self.copies)))
        self.arrivals, self.expects, self.copies = [], [], []
        self.phase += 1
        self.raised = 0
        self.pending += self.expected

    def settle(self) -> None:
        """Let the tensor copies land: they bring whatever bytes are still expected."""
        self.tx = 0
        self.unsized.clear()


@dataclass(slots=True)
class NamedBarrier:
    """One of the 16 barriers of a CTA. Warps count, 32 threads each, once all their live lanes have arrived.

    `parted`: lanes that have come to an aligned barrier before the others of their warp, which may come there yet.
    A warp that arrives and then synchronizes on the same barrier counts twice: the ISA forbids it, kernels rely on it
    for an initial credit (flash-attention's warp scheduler), and hardware counts it so.
    """

    number: int
    generation: int = 0
    count: int | None = None
    arrived: int = 0
    warps: set[int] = field(default_factory=set)
    arrivers: dict[int, int] = field(default_factory=dict)
    lanes: dict[int, set[int]] = field(default_factory=dict)
    points: dict[int, int] = field(default_factory=dict)
    waiting: list[object] = field(default_factory=list)
    values: dict[int, int] = field(default_factory=dict)
    result: dict[str, int] = field(default_factory=dict)
    generations: list[tuple[int, ...]] = field(default_factory=list)
    has_counted_twice: bool = False
    parted: dict[int, Incident] = field(default_factory=dict)

    def admit(self, warp: int) -> None:
        """Count a warp whose live lanes have all arrived."""
        self.arrived += 32
        self.warps.add(warp)
        self.parted.pop(warp, None)
        self.lanes.pop(warp, None)

    def reset(self) -> None:
        """Complete the barrier: the next use of its number begins."""
        values = self.values.values()
        self.result = {"popc": sum(values), "and": int(all(values)), "or": int(any(values))}
        self.generations.append(tuple(sorted(self.warps)))
        self.has_counted_twice |= self.arrived > 32 * len(self.warps)
        self.generation += 1
        self.count = None
        self.arrived = 0
        self.warps, self.arrivers, self.lanes, self.points, self.values = set(), {}, {}, {}, {}


@dataclass(slots=True)
class ClusterBarrier:
    """The barrier of a cluster: every thread of it that has not exited arrives, then waits.

    By CTA rank: the threads that have arrived, the generation that each thread has yet to wait for, and the place of
    its last arrival.
    """

    generation: int = 0
    arrived: dict[int, set[int]] = field(default_factory=dict)
    owed: dict[int, dict[int, int]] = field(default_factory=dict)
    points: dict[int, dict[int, int]] = field(default_factory=dict)

    def arrive(self, rank: int, threads: Sequence[int], point: int) -> int | None:
        """Count threads in; the place of the last arrival of one that had not waited since, if there is one."""
        owed = self.owed.setdefault(rank, {})
        points = self.points.setdefault(rank, {})
        twice = next((points[thread] for thread in threads if thread in owed), None) if owed else None
        self.arrived.setdefault(rank, set()).update(threads)
        owed.update(dict.fromkeys(threads, self.generation))
        points.update(dict.fromkeys(threads, point))
        return twice

    def leave(self, rank: int, threads: Iterable[int]) -> None:
        """Forget threads that have exited."""
        if rank in self.arrived:
            self.arrived[rank].difference_update(threads)

    def turn(self) -> None:
        """Complete the barrier."""
        self.generation += 1
        self.arrived = {}
