"""What happened in a run: events in order, and the incidents among them that no correct kernel has."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What an event did."""

    INIT = "init"
    INVAL = "inval"
    ARRIVE = "arrive"
    EXPECT = "expect_tx"
    COMPLETE = "complete_tx"
    COPY = "copy"
    WAIT = "wait"
    POLL = "poll"
    PHASE = "phase completes"
    SYNC = "bar.sync"
    BAR_ARRIVE = "bar.arrive"
    CLUSTER_ARRIVE = "barrier.cluster.arrive"
    CLUSTER_WAIT = "barrier.cluster.wait"
    WARP_SYNC = "bar.warp.sync"
    EXIT = "exit"
    TRAP = "trap"
    FENCE = "fence.proxy.async"
    COMMIT = "commit_group"
    WAIT_GROUP = "wait_group"
    OTHER = "other"


class Agent(NamedTuple):
    """A set of threads that ran an event together: the CTA's rank in its cluster and the linear thread ids."""

    rank: int
    threads: tuple[int, ...]

    def __str__(self) -> str:
        return f"{threads_in_words(self.threads)}{f' of CTA {self.rank}' if self.rank else ''}"


def threads_in_words(threads: tuple[int, ...]) -> str:
    """`thread 128`, `warps 0-3`, `threads 0-15`; ranges are inclusive."""
    if len(threads) == 1:
        return f"thread {threads[0]}"
    first, last = threads[0], threads[-1]
    whole = len(threads) % 32 == 0 and all(
        threads[i] % 32 == 0 and threads[i + 31] == threads[i] + 31 for i in range(0, len(threads), 32)
    )
    if whole:
        warps = [thread // 32 for thread in threads[::32]]
        return _ranges("warp", warps)
    if last - first + 1 == len(threads):
        return f"threads {first}-{last}"
    if all(thread % 32 == first % 32 for thread in threads):
        return f"lane {first % 32} of {_ranges('warp', [thread // 32 for thread in threads])}"
    return f"{len(threads)} threads from {first} to {last}"


def _ranges(noun: str, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    if numbers[-1] - numbers[0] + 1 == len(numbers):
        return f"{noun}s {numbers[0]}-{numbers[-1]}"
    return f"{noun}s {', '.join(map(str, numbers))}"


class Event(NamedTuple):
    """One event. `point` indexes the body of the function that ran (calls inlined); -1 for hardware events.

    `object` is the `shared::cluster` address of an mbarrier, a named barrier's id, or None. `phase` is the phase of the
    mbarrier that the event belongs to (for a wait: the phase whose completion it saw, -1 for the one before the first);
    `pending` and `tx` are the counts after the event. `amount` is arrivals, bytes (-1: not in the PTX), or the parity
    that a wait asks for. `source` is the `shared::cluster` address that a copy fills, -1 where it fills none.
    """

    order: int
    kind: Kind
    agent: Agent | None
    point: int
    object: int | None = None
    phase: int = 0
    amount: int = 0
    pending: int = 0
    tx: int = 0
    source: int = -1


class Fault(StrEnum):
    """How a run went wrong, in the words of the protocol; rules give each its name and advice."""

    BEFORE_INIT = "used before its initialization"
    UNPUBLISHED = "used by another thread before its initialization is ordered before the use"
    AFTER_INVAL = "used after its invalidation"
    REINIT = "initialized while it is live"
    BAD_COUNT = "initialized with a count out of range"
    MISALIGNED = "not aligned"
    OVERTAKE = "phase begun before anyone saw the last one complete"
    OVER_ARRIVAL = "more arrivals than the phase has left"
    PARITY_CONSTANT = "waits for the same parity again"
    PARITY_RESTARTED = "starts its parity anew while the barrier goes on"
    PARITY_OF_OTHER_SLOT = "waits for a parity that belongs to another slot"
    PARITY_INITIAL = "begins with the wrong parity"
    ARRIVALS_MISSING = "expects more arrivals than come"
    NO_ARRIVAL = "waits for an arrival that never comes"
    BYTES = "expects other bytes than are copied"
    BOXES = "expects other bytes than its tensor boxes can bring"
    UNEXPECTED_COPY = "copies into a phase that expects no bytes"
    EXPECT_WITHOUT_ARRIVAL = "has transactions in its phase and no arrival"
    CYCLE = "waits in a cycle"
    STUCK = "never gets past a wait"
    ROLE_BARRIER = "waits at a barrier of the whole CTA inside a role"
    STUCK_BARRIER = "waits at a barrier that the others do not reach"
    STUCK_CLUSTER = "waits at a cluster barrier that the others do not reach"
    BARRIER_COUNT = "thread counts of one barrier differ"
    SHARED_BARRIER = "one named barrier is used by two groups at a time"
    RUN_AHEAD = "arrives again before the barrier is reset"
    DIVERGENT = "aligned barrier under divergence"
    CLUSTER_TWICE = "arrives twice at the cluster barrier"
    CLUSTER_UNWAITED = "arrives at the cluster barrier and nobody ever waits"
    CLUSTER_UNARRIVED = "waits at the cluster barrier without having arrived"
    REMOTE_EARLY = "reaches another CTA before any cluster barrier"
    REMOTE_LATE = "reaches a CTA that has exited"


class Incident(NamedTuple):
    """A fault where it happened: `point` is the place to blame, `others` places that belong to it with their part.

    `details` are named numbers for the message (counts, bytes, phases, iteration).
    """

    fault: Fault
    point: int
    agent: Agent | None
    object: int | None
    order: int
    details: dict[str, int]
    others: tuple[tuple[int, str], ...] = ()
