"""Vector clocks: what a warp, or a phase of a barrier, knows to be over, and in which ways.

A time line is a warp, an mbarrier (its time is the number of completed phases) or a warp's groups of one kind (its
time is the number of completed groups). What a bulk copy or an MMA does happens at a time of the line that tracks its
completion, so that whoever waits for that time knows it to be done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from ptxlint.classes import dataclass

Line: TypeAlias = tuple[str, int, int]
"""A time line: its kind, the CTA's rank (0 for mbarriers), the warp, the thread (tensor core) or the address.

Groups of several parties of one warp have lines of their own: the number of the party stands above the warp's.
"""

PARTY_SHIFT = 16


def warp_of(line: Line) -> int:
    """The warp whose time line it is, for lines of warps and of their groups."""
    return line[2] & (1 << PARTY_SHIFT) - 1


WARP_LINE = "warp"
"""The kind of the time lines of warps."""

MBARRIER = "mbarrier"
"""The kind of the time lines of mbarriers."""

CP_ASYNC = "cp.async"
BULK = "bulk"
WGMMA = "wgmma"
TENSOR_LOAD = "tcgen05.ld"
TENSOR_STORE = "tcgen05.st"
TENSOR_CORE = "tcgen05.commit"
INITIALIZATION = "mbarrier.init"

PIPELINED = frozenset({TENSOR_CORE, TENSOR_LOAD, TENSOR_STORE})
"""Kinds of lines of asynchronous accesses to tensor memory, which keep their order within one thread or warp."""

GENERIC = frozenset({WARP_LINE, CP_ASYNC, INITIALIZATION})
"""Kinds of lines whose accesses only a release and an acquire order."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When an access is over: a time of a line."""

    line: Line
    time: int


@dataclass(slots=True)
class Clock:
    """For each line the last time that is known to be over, and the last for which more than that holds.

    known: over. fenced: made visible to the async proxy since, by whichever thread on the way; strict: by the writer
    itself. whole: done by the releasing lanes themselves, or before their warp converged. issued: over before a copy
    was issued whose completion has been seen: a copy publishes nothing else of its issuer's, but reads before it have
    ended. sent: operations on tensor memory followed by a fence before the release. taken: those followed by a fence
    after the acquire; it holds for the warp that ran the fence and is not handed on. mapped: writes of
    tensor maps followed by a release of the tensormap proxy; acquired: for each line and tensor map, those of them that
    an acquire of the map has followed.
    """

    known: dict[Line, int] = field(default_factory=dict)
    fenced: dict[Line, int] = field(default_factory=dict)
    strict: dict[Line, int] = field(default_factory=dict)
    whole: dict[Line, int] = field(default_factory=dict)
    issued: dict[Line, int] = field(default_factory=dict)
    sent: dict[Line, int] = field(default_factory=dict)
    taken: dict[Line, int] = field(default_factory=dict)
    mapped: dict[Line, int] = field(default_factory=dict)
    acquired: dict[tuple[Line, int], int] = field(default_factory=dict)

    def join(self, other: Clock, *, relaxed: bool = False) -> None:
        """Learn all that another knows; through a relaxed operation only what engines have done."""
        for mine, theirs in (
            (self.known, other.known),
            (self.fenced, other.fenced),
            (self.strict, other.strict),
            (self.whole, other.whole),
            (self.issued, other.issued),
            (self.sent, other.sent),
            (self.mapped, other.mapped),
        ):
            if theirs:
                advance(mine, _of_engines(theirs) if relaxed else theirs)
        if not relaxed:
            for key, time in other.acquired.items():
                self.acquired[key] = max(time, self.acquired.get(key, 0))

    def adopt(self, other: Clock, line: Line) -> None:
        """The same for one that was handed over to the other and has learned nothing since, but that its own line
        went on."""
        known, whole = self.known[line], self.whole[line]
        self.known, self.fenced, self.strict = other.known.copy(), other.fenced.copy(), other.strict.copy()
        self.whole, self.issued, self.sent = other.whole.copy(), other.issued.copy(), other.sent.copy()
        self.mapped, self.acquired = other.mapped.copy(), other.acquired.copy()
        self.known[line], self.whole[line] = known, whole

    def take_over(self) -> None:
        """tcgen05.fence::after_thread_sync: all accesses to tensor memory that are known to be over, or handed over."""
        for times in (self.known, self.sent):
            advance(self.taken, {line: time for line, time in times.items() if line[0] in PIPELINED})

    def knows(self, moment: Moment) -> bool:
        """Whether something is known to be over."""
        return self.known.get(moment.line, 0) >= moment.time


def _of_engines(times: Mapping[Line, int]) -> Mapping[Line, int]:
    return {line: time for line, time in times.items() if line[0] not in GENERIC}


def advance(mine: dict[Line, int], theirs: Mapping[Line, int]) -> None:
    """Raise times to those of another map where they are later."""
    known = mine.get
    mine.update({line: time for line, time in theirs.items() if known(line, -1) < time} if mine else theirs)
