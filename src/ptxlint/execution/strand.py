"""Agents: sets of threads of one CTA that have taken the same path, and the joins where lanes of a warp meet again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxlint.classes import dataclass
from ptxlint.execution.memory import Cells
from ptxlint.execution.trace import Agent
from ptxlint.execution.values import Value, interleave, narrow

if TYPE_CHECKING:
    from ptxlint.execution.machine import Machine
    from ptxlint.execution.meetings import Cta

WARP = 32
WARPS_PER_GROUP = 4
"""Warps of a warpgroup. Source: PTX ISA, *Warpgroup*."""


class Strand:
    """Threads that run together. `at` is the next segment; `joins` the joins that enclose it, outermost first.

    `wanted` is the wait that blocked it last: point, barrier, parity; `pending` the CTA barrier that it has arrived at,
    with its generation; `refused` the waits that have returned false since it last got anywhere.
    """

    __slots__ = (
        "_lanes",
        "_warps",
        "agent",
        "at",
        "cta",
        "done",
        "joins",
        "local",
        "machine",
        "order",
        "pending",
        "refused",
        "registers",
        "state",
        "tally",
        "threads",
        "wanted",
    )

    def __init__(self, machine: Machine, cta: Cta, threads: tuple[int, ...], registers: list[Value], at: int) -> None:
        self.machine = machine
        self.cta = cta
        self.threads = threads
        self.agent = Agent(cta.rank, threads)
        self.registers = registers
        self.local: Cells = {}
        self.at = at
        self.joins: tuple[Join, ...] = ()
        self.pending: tuple[Any, int] | None = None
        self.wanted: tuple[int, int, int] = (-1, -1, -1)
        self.refused: frozenset[tuple[int, int, int]] = frozenset()
        self.state = "ready"
        self.order = machine.next_order(cta.rank, threads[0])
        self.done = False
        self.tally = 0
        self._warps: dict[int, list[int]] | None = None
        self._lanes: dict[int, frozenset[int]] | None = None

    def progress(self) -> None:
        """Note that the strand got somewhere: what it has been refused may be asked again."""
        self.refused = frozenset()
        self.tally += 1

    def part(self, positions: Sequence[int], slots: Sequence[int] | None = None) -> Strand:
        """A strand of the threads at these positions, with their share of the registers.

        `slots` are the only ones that it will read before it meets the others again; None: it may read any.
        """
        threads = tuple(self.threads[i] for i in positions)
        registers = self.registers.copy()
        for slot in self.machine.program.varying if slots is None else slots:
            value = registers[slot]
            if value.__class__ is tuple:
                registers[slot] = narrow(value, positions)
        strand = Strand(self.machine, self.cta, threads, registers, self.at)
        strand.local = {
            address: (width, narrow(value, positions) if value.__class__ is tuple else value)
            for address, (width, value) in self.local.items()
        }
        strand.joins = self.joins
        strand.refused = self.refused
        strand.tally = self.tally
        return strand

    def parts(self, groups: Sequence[tuple[list[int], int]], meet: int | None, region: Region | None) -> list[Strand]:
        """Strands for groups of positions, each at a segment of its own; lanes of one warp are to meet again at `meet`.

        Where they never meet, `meet` or `region` is None.
        """
        warp_groups: dict[int, set[int]] = {}
        for index, (positions, _) in enumerate(groups):
            for position in positions:
                warp_groups.setdefault(self.threads[position] // WARP, set()).add(index)
        mixed = {warp for warp, members in warp_groups.items() if len(members) > 1}
        join, whole = None, self
        if mixed and meet is not None and region is not None:
            if len(mixed) < len(warp_groups):
                whole = self.part([i for i, thread in enumerate(self.threads) if thread // WARP in mixed])
            join = Join(meet, whole, region)
        at = {thread: position for position, thread in enumerate(whole.threads)}
        parts: list[Strand] = []
        for positions, target in groups:
            pure = [p for p in positions if self.threads[p] // WARP not in mixed]
            rest = [p for p in positions if self.threads[p] // WARP in mixed]
            if pure:
                parts.append(self.part(pure))
                parts[-1].at = target
            if rest and join is not None and region is not None:
                parts.append(whole.part([at[self.threads[p]] for p in rest], region.reads))
                parts[-1].at = target
                parts[-1].joins = (*self.joins, join)
            elif rest:
                parts.append(self.part(rest))
                parts[-1].at = target
        return parts

    def warps(self) -> dict[int, list[int]]:
        """The positions of this strand's threads by warp."""
        if self._warps is None:
            self._warps = {}
            for position, thread in enumerate(self.threads):
                self._warps.setdefault(thread // WARP, []).append(position)
        return self._warps

    def lanes(self) -> dict[int, frozenset[int]]:
        """This strand's threads by warp."""
        if self._lanes is None:
            warps = self.warps().items()
            self._lanes = {warp: frozenset(self.threads[i] for i in positions) for warp, positions in warps}
        return self._lanes


@dataclass(frozen=True, slots=True)
class Region:
    """What lanes may read and write between the place where they part and the place where they meet, as slots."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]


class Join:
    """Where lanes that a branch has parted meet again: never across warps, so each warp is released by itself.

    `whole` is the strand of all of them as it was when they parted.
    """

    __slots__ = ("expected", "outer", "parked", "region", "segment", "whole")

    def __init__(self, segment: int, whole: Strand, region: Region) -> None:
        self.segment = segment
        self.whole = whole
        self.region = region
        self.expected = set(whole.threads)
        self.parked: list[Strand] = []
        self.outer = whole.joins

    def ready(self) -> Strand | None:
        """Take out the parked lanes whose warps are complete, as one strand; None when there are none."""
        arrived = {thread for strand in self.parked for thread in strand.threads}
        waiting = {thread // WARP for thread in self.expected - arrived}
        complete: list[Strand] = []
        rest: list[Strand] = []
        for strand in self.parked:
            inside = [i for i, thread in enumerate(strand.threads) if thread // WARP not in waiting]
            if len(inside) == len(strand.threads):
                complete.append(strand)
            elif inside:
                complete.append(strand.part(inside))
                outside = [i for i, thread in enumerate(strand.threads) if thread // WARP in waiting]
                rest.append(strand.part(outside))
            else:
                rest.append(strand)
        self.parked = rest
        self.expected -= {thread for strand in complete for thread in strand.threads}
        return self.merged(complete) if complete else None

    def release(self) -> Strand:
        """Take out all parked lanes, whoever is missing."""
        parked, self.parked = self.parked, []
        self.expected -= {thread for strand in parked for thread in strand.threads}
        return self.merged(parked)

    def merged(self, strands: Sequence[Strand]) -> Strand:
        """One strand of all the threads at the join: what differs between them becomes a tuple in thread order."""
        order = sorted((thread, s, i) for s, strand in enumerate(strands) for i, thread in enumerate(strand.threads))
        threads = tuple(thread for thread, _, _ in order)
        if threads == self.whole.threads:
            result = self.whole.part(range(len(threads)), ())
        else:
            members = set(threads)
            result = self.whole.part([i for i, thread in enumerate(self.whole.threads) if thread in members])
        registers = result.registers
        held = [strand.registers for strand in strands]
        for slot in self.region.writes:
            registers[slot] = interleave([own[slot] for own in held], order)
        merge_local(result, strands, order)
        result.at = self.segment
        result.joins = self.outer
        result.refused = frozenset()
        result.tally = max(strand.tally for strand in strands)
        result.order = min(strand.order for strand in strands)
        return result


def merge_local(result: Strand, strands: Sequence[Strand], order: Sequence[tuple[int, int, int]]) -> None:
    """Give a strand the local memory of the strands that its threads are in."""
    result.local = {}
    for address in {address for strand in strands for address in strand.local}:
        found = [strand.local.get(address, (0, 0)) for strand in strands]
        width = max(width for width, _ in found)
        result.local[address] = (width, interleave([value for _, value in found], order))
