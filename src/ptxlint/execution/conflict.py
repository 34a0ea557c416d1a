"""Accesses to memory, and conflicts between two of them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from ptxlint.classes import dataclass
from ptxlint.execution.clock import Moment
from ptxlint.execution.trace import Agent
from ptxlint.isa import Proxy

Interval: TypeAlias = tuple[int, int]
"""Bytes of shared memory (`shared::cluster` addresses) or columns of tensor memory (the CTA's rank above bit 24, then
16 of the lanes, then the column): start included, stop excluded."""


class Space(StrEnum):
    """Which memory an access is to."""

    SHARED = "shared memory"
    TENSOR = "tensor memory"
    GLOBAL = "global memory that holds tensor maps"


class Failure(StrEnum):
    """What is missing between two conflicting accesses."""

    UNORDERED = "nothing orders them"
    UNFENCED = "no proxy fence between them"
    FENCED_LATE = "the proxy fence is not the writer's"
    LANES = "a lane releases for its warp before the warp has converged"
    NOT_SENT = "no tcgen05.fence::before_thread_sync before the release"
    NOT_TAKEN = "no tcgen05.fence::after_thread_sync after the acquire"
    OVERWRITTEN = "no proxy fence between a generic read and an async write"
    UNPUBLISHED = "no release of an initialization"
    OVERLAID = "a copy over an mbarrier that is in use"
    LAPPED = "a phase may complete before a warp has seen the one before it"
    INVALIDATED = "an mbarrier is invalidated while another warp may still use it"
    IDLE_LAPPED = "a phase may complete before a warp that only waits has seen the one before it"
    UNRELEASED = "no release of the tensormap proxy after a change"
    UNACQUIRED = "no acquire of the tensormap proxy before a use"


TENSOR_FENCES = frozenset({Failure.NOT_SENT, Failure.NOT_TAKEN})
"""What a kernel that has no tcgen05.fence at all lacks everywhere."""

CONTESTED = TENSOR_FENCES | {Failure.OVERWRITTEN}
"""What is kept apart, so that it never takes the place of another conflict."""


class Access(NamedTuple):
    """One access of one warp, or of an engine on its behalf, to an interval.

    `turn` counts the executions of the instruction by the warp; `when` is the number of events of the run before it.
    `otherwise` is another moment at which it is over: who knows the one or the other to have come knows enough.
    """

    space: Space
    interval: Interval
    is_write: bool
    proxy: Proxy
    moment: Moment
    point: int
    agent: Agent
    warp: int
    turn: int
    when: int
    is_atomic: bool = False
    what: str = ""
    otherwise: Moment | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses to common bytes, at least one a write, without the order that they need; `first` came first.

    Where a write meets a read: `filled` is the write whose bytes were read, `heard` another read of bytes of it that
    the second write does know to be over.
    """

    failure: Failure
    first: Access
    second: Access
    filled: Access | None = None
    heard: Access | None = None

    @property
    def is_own(self) -> bool:
        """Whether both accesses are one warp's."""
        return (self.first.agent.rank, self.first.warp) == (self.second.agent.rank, self.second.warp)


def meet(one: Access, other: Access) -> bool:
    """Whether two accesses have bytes in common."""
    return one.interval[0] < other.interval[1] and other.interval[0] < one.interval[1]


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals, in order, without gaps or overlaps between them."""
    found: list[Interval] = []
    for start, stop in sorted(intervals):
        if found and start <= found[-1][1]:
            if stop > found[-1][1]:
                found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return found
