"""Agents: sets of threads of one CTA that have taken the same path, and the joins where lanes of a warp meet again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ptxlint.execution.trace import Agent

if TYPE_CHECKING:
    from ptxlint.execution.machine import Cta, Machine

WARP = 32

Value = Any
"""A register's value: an int where all threads of the strand agree, else a tuple with one int for each thread."""


class Strand:
    """Threads that run together. `at` is the next segment; `joins` the joins that enclose it, outermost first.

    `wanted` is the wait that blocked it last: point, barrier, parity; `pending` the CTA barrier that it has arrived at,
    with its generation; `refused` the waits that have returned false since it last got anywhere.
    """

    __slots__ = (
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
        self.local: dict[int, tuple[int, Value]] = {}
        self.at = at
        self.joins: tuple[Join, ...] = ()
        self.pending: tuple[Any, int] | None = None
        self.wanted: tuple[int, int, int] = (-1, -1, -1)
        self.refused: frozenset[tuple[int, int, int]] = frozenset()
        self.state = "ready"
        self.order = machine.next_order(cta.rank, threads[0])
        self.done = False
        self.tally = 0

    def progress(self) -> None:
        """Note that the strand got somewhere: what it has been refused may be asked again."""
        self.refused = frozenset()
        self.tally += 1

    def part(self, positions: Sequence[int]) -> Strand:
        """A strand of the threads at these positions, with their share of the registers."""
        threads = tuple(self.threads[i] for i in positions)
        registers = self.registers.copy()
        for slot in self.machine.program.varying:
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

    def warps(self) -> dict[int, list[int]]:
        """The positions of this strand's threads by warp."""
        found: dict[int, list[int]] = {}
        for position, thread in enumerate(self.threads):
            found.setdefault(thread // WARP, []).append(position)
        return found


class Join:
    """Where lanes that a branch has parted meet again: never across warps, so each warp is released by itself."""

    __slots__ = ("expected", "outer", "parked", "segment")

    def __init__(self, segment: int, threads: Iterable[int], outer: tuple[Join, ...]) -> None:
        self.segment = segment
        self.expected = set(threads)
        self.parked: list[Strand] = []
        self.outer = outer

    def ready(self) -> list[list[Strand]]:
        """Take out the parts of parked strands whose warps are complete, one list of parts for each merger."""
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
        return [complete] if complete else []


def narrow(value: tuple[int, ...], positions: Sequence[int]) -> Value:
    """The values at these positions, as one int where they agree."""
    return uniform([value[i] for i in positions])


def uniform(values: Sequence[Any]) -> Value:
    """One value where all agree, else a tuple."""
    first = values[0]
    return first if values.count(first) == len(values) else tuple(values)


def lift(function: Callable[..., Any], arguments: Sequence[Value], count: int) -> Value:
    """Apply a scalar function to each thread's arguments."""
    columns = [value if value.__class__ is tuple else repeat(value, count) for value in arguments]
    return uniform(list(map(function, *columns)))


def spread(value: Value, count: int) -> Sequence[Any]:
    """The value of each thread."""
    return value if value.__class__ is tuple else (value,) * count


def merge(strands: Sequence[Strand]) -> Strand:
    """One strand of all the threads: what differs between them becomes a tuple in thread order."""
    if len(strands) == 1:
        return strands[0]
    order = sorted((thread, s, i) for s, strand in enumerate(strands) for i, thread in enumerate(strand.threads))
    first = strands[0]
    registers = first.registers.copy()
    for slot in first.machine.program.varying:
        values = [strand.registers[slot] for strand in strands]
        if values[0].__class__ is tuple or any(value != values[0] for value in values[1:]):
            registers[slot] = _interleave(values, order)
    merged = Strand(first.machine, first.cta, tuple(thread for thread, _, _ in order), registers, first.at)
    keys = {address for strand in strands for address in strand.local}
    for address in keys:
        found = [strand.local.get(address, (0, 0)) for strand in strands]
        width = max(width for width, _ in found)
        merged.local[address] = (width, _interleave([value for _, value in found], order))
    merged.tally = max(strand.tally for strand in strands)
    merged.order = min(strand.order for strand in strands)
    return merged


def _interleave(values: Sequence[Value], order: Sequence[tuple[int, int, int]]) -> Value:
    return uniform([v[i] if (v := values[s]).__class__ is tuple else v for _, s, i in order])
