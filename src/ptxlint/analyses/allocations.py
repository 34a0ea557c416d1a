"""Tensor memory that warps allocate and free, as the run shows it, and returns that skip the freeing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.analyses.value import LeafKind, Value, leaves
from ptxlint.cfg import Block, Cfg
from ptxlint.classes import dataclass
from ptxlint.execution.engine import Execution
from ptxlint.execution.layout import OFFSET_MASK
from ptxlint.execution.strand import WARP
from ptxlint.execution.trace import Event, Kind

__all__ = [
    "ALLOC",
    "DEALLOC",
    "PAIR",
    "RELINQUISH",
    "Event",
    "Kind",
    "Permits",
    "name",
    "skipping_return",
    "unsynchronized",
    "unwaited_commits",
]

if TYPE_CHECKING:
    from ptxlint.facts import Facts

ALLOC = "tcgen05.alloc"
DEALLOC = "tcgen05.dealloc"
RELINQUISH = "tcgen05.relinquish_alloc_permit"
PAIR = "cta_group::2"
_SAME_FOR_ALL = ("%ctaid", "%nctaid", "%ntid", "%cluster", "%grid")


@dataclass(frozen=True, slots=True)
class Permits:
    """The allocations, deallocations and relinquishments of the run, in order."""

    execution: Execution
    events: tuple[Event, ...]

    @staticmethod
    def of(execution: Execution) -> Permits:
        """Those of a kernel; none where it did not run cleanly."""
        noted = [event for event in execution.events if event.kind is Kind.OTHER and event.point >= 0]
        names = {ALLOC, DEALLOC, RELINQUISH}
        return Permits(execution, tuple(event for event in noted if name(execution, event) in names))

    def made(self, kind: str) -> Iterator[Event]:
        """The events of one kind."""
        return (event for event in self.events if name(self.execution, event) == kind)

    def leaked(self) -> Event | None:
        """An allocation of a CTA that frees fewer columns than it allocates."""
        taken, freed = self._columns(ALLOC), self._columns(DEALLOC)
        return next((event for event in self.made(ALLOC) if freed.get(_rank(event), 0) < taken[_rank(event)]), None)

    def _columns(self, kind: str) -> dict[int, int]:
        """Columns that each CTA allocates or frees in all. Lanes of a warp that come apart to one do it together."""
        times: dict[tuple[int, int, int], dict[int, int]] = {}
        for event in self.made(kind):
            for thread in event.agent.threads if event.agent else ():
                lanes = times.setdefault((_rank(event), event.point, thread // WARP), {})
                lanes[thread] = lanes.get(thread, 0) + event.amount
        total: dict[int, int] = {}
        for (rank, _, _), lanes in times.items():
            total[rank] = total.get(rank, 0) + max(lanes.values())
        return total


def _rank(event: Event) -> int:
    return event.agent.rank if event.agent else 0


def unsynchronized(execution: Execution, kind: str, since: Kind) -> Iterator[Event]:
    """Events of one kind for a pair of CTAs, by warps that have not met the other CTA since they last did something.

    They meet at a cluster barrier, or where one waits at an mbarrier that the other CTA's threads arrive at.
    """
    for event in Permits.of(execution).made(kind):
        if PAIR not in execution.body[event.point].modifiers or execution.runs[0].binding.cluster_size < 2:
            continue
        before = [e for e in execution.events[: event.order] if e.agent and _is_warp_of(e, event)]
        last = max((e.order for e in before if e.kind is since), default=-1)
        if not any(e.order > last and _meets_peer(execution, e) for e in before):
            yield event


def _is_warp_of(event: Event, other: Event) -> bool:
    if event.agent is None or other.agent is None or event.agent.rank != other.agent.rank:
        return False
    return not set(event.agent.threads).isdisjoint(other.agent.threads)


def _meets_peer(execution: Execution, event: Event) -> bool:
    if event.kind is Kind.CLUSTER_WAIT:
        return True
    if event.kind is not Kind.WAIT or event.agent is None:
        return False
    return any(
        e.kind is Kind.ARRIVE and e.object == event.object and (e.agent is None or e.agent.rank != event.agent.rank)
        for e in execution.events[: event.order]
    )


def unwaited_commits(execution: Execution) -> Iterator[Event]:
    """The first commit at each place whose mbarriers no thread has waited on, looked at, or is stuck at, in any run.

    A multicast commit tells each CTA; one of them may be all who care.
    """
    asked: set[int] = set()
    for run in execution.runs:
        objects = (event.object for event in run.machine.events if event.kind in (Kind.WAIT, Kind.POLL))
        asked |= {address & OFFSET_MASK for address in objects if address is not None}
        asked |= {strand.wanted[1] & OFFSET_MASK for strand in run.machine.blocked}
    reported: set[int] = set()
    for event in execution.runs[0].machine.events if execution.runs else ():
        is_commit = event.kind is Kind.COPY and name(execution, event) == "tcgen05.commit"
        is_asked = event.object is not None and event.object & OFFSET_MASK in asked
        if is_commit and not is_asked and event.point not in reported:
            reported.add(event.point)
            yield event


def name(execution: Execution, event: Event) -> str:
    """The name of the row of an event's instruction."""
    row = isa.row(execution.body[event.point])
    return row.name if row is not None else ""


def skipping_return(facts: Facts) -> tuple[int, int] | None:
    """An allocation and a return that a branch of the whole CTA leads to, past every deallocation."""
    cfg = facts.cfg
    allocs, frees = _points(cfg, ALLOC), _points(cfg, DEALLOC)
    if not allocs or not frees:
        return None
    freeing = {cfg.block_of[point] for point in frees}
    leading = _reaching(cfg, freeing)
    for alloc in allocs:
        for block in _without(cfg, cfg.block_of[alloc], freeing):
            for edge in block.successors:
                literal = facts.values.along(edge)
                ends = edge.target not in leading and edge.target not in freeing
                if ends and block.index in leading and literal is not None and _is_same_for_all(literal[0]):
                    return alloc, cfg.blocks[edge.target].start
    return None


def _points(cfg: Cfg, kind: str) -> list[int]:
    rows = ((point, isa.row(instruction)) for point, instruction in enumerate(cfg.body))
    return [p for p, row in rows if row is not None and row.name == kind and cfg.block_of[p] in cfg.reachable]


def _reaching(cfg: Cfg, goals: set[int]) -> set[int]:
    """The blocks from which some goal can be reached, goals themselves only where they lie on a way to one."""
    found: set[int] = set()
    waiting = list(goals)
    while waiting:
        for edge in cfg.blocks[waiting.pop()].predecessors:
            if edge.source not in found:
                found.add(edge.source)
                waiting.append(edge.source)
    return found


def _without(cfg: Cfg, start: int, avoided: set[int]) -> Iterator[Block]:
    """The blocks that can be reached from one without passing through those to avoid."""
    seen = {start}
    waiting = [start]
    while waiting:
        block = cfg.blocks[waiting.pop()]
        yield block
        for edge in block.successors:
            if edge.target not in seen and edge.target not in avoided:
                seen.add(edge.target)
                waiting.append(edge.target)


def _is_same_for_all(value: Value) -> bool:
    """Whether a value is made of parameters and of what all threads of a CTA agree on."""
    return all(
        leaf.kind is LeafKind.PARAMETER or (leaf.kind is LeafKind.SPECIAL and leaf.name.startswith(_SAME_FOR_ALL))
        for leaf in leaves(value)
    )
