"""Groups of asynchronous operations in a run: which are committed, and which a wait leaves pending.

Groups of cp.async and of bulk copies are a thread's own. Threads that issue together are kept as one party: its groups
are committed when all of its threads have run a commit, and done when all have run a wait that covers them. Groups of
loads and stores of tensor memory are a warp's. A group of wgmma is its warpgroup's: one of its warps that has waited
knows the products of all four to be done, and CUTLASS lets one thread of the warpgroup hand the operands back. Sources:
PTX ISA, *Async-group mechanism*, *wgmma.commit_group*, *wgmma.wait_group*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from ptxlint.classes import dataclass
from ptxlint.execution.clock import BULK, CP_ASYNC, PARTY_SHIFT, WGMMA, Line, Moment
from ptxlint.execution.strand import WARPS_PER_GROUP

Lanes: TypeAlias = frozenset[int]
"""Threads of one warp."""

PER_THREAD = frozenset({CP_ASYNC, BULK})
"""Kinds of groups that each thread has for itself."""

EVERYONE: Lanes = frozenset()
"""Stands for the warp where groups are the warp's."""


@dataclass(slots=True)
class _Party:
    """Threads that issue together. `commits` are the epochs that ended in one; `waited` up to which each has waited."""

    line: Line
    epoch: int = 0
    commits: list[int] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)
    waited: dict[int, int] = field(default_factory=dict)

    def close(self) -> int:
        """End the epoch in which operations are gathered; its number."""
        self.epoch += 1
        return self.epoch


class Groups:
    """The groups of all warps, by kind, CTA and warp."""

    def __init__(self) -> None:
        self._parties: dict[Line, dict[Lanes, _Party]] = {}

    def moment(self, kind: str, rank: int, warp: int, lanes: Lanes) -> Moment:
        """When an operation that is issued now will be over: when the group that is being filled is."""
        parties = self._parties.setdefault((kind, rank, warp), {})
        issuers = lanes if kind in PER_THREAD else EVERYONE
        party = parties.get(issuers)
        if party is None:
            party = parties[issuers] = _Party((kind, rank, warp | len(parties) << PARTY_SHIFT))
        return Moment(party.line, party.epoch + 1)

    def commit(self, kind: str, rank: int, warp: int, lanes: Lanes) -> None:
        """The operations that these threads issued since their last commit are a group."""
        for issuers, party in self._parties.get((kind, rank, warp), {}).items():
            if not issuers <= lanes:
                party.committed |= issuers & lanes
                if party.committed != issuers:
                    continue
            party.committed.clear()
            party.commits.append(party.close())

    def wait(self, kind: str, rank: int, warp: int, lanes: Lanes, pending: int) -> Iterator[tuple[Line, int]]:
        """What is over once all but the newest `pending` groups of these threads are done: lines and their times."""
        for issuers, party in self._parties.get((kind, rank, warp), {}).items():
            if len(party.commits) <= pending or (issuers and issuers.isdisjoint(lanes)):
                continue
            done = party.commits[len(party.commits) - pending - 1]
            if not issuers <= lanes:
                party.waited.update(dict.fromkeys(issuers & lanes, done))
                if len(party.waited) < len(issuers):
                    continue
                done = min(party.waited.values())
            yield party.line, done
            if kind == WGMMA:
                first = warp - warp % WARPS_PER_GROUP
                yield from (((kind, rank, other), done) for other in range(first, first + WARPS_PER_GROUP))

    def arrive(self, kind: str, rank: int, warp: int, lanes: Lanes) -> Iterator[tuple[Line, int]]:
        """What is over once all operations are that these threads have issued so far: lines and their times."""
        for issuers, party in self._parties.get((kind, rank, warp), {}).items():
            if issuers <= lanes:
                yield party.line, party.close()
