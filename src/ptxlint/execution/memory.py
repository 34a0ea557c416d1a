"""Bytes that instructions of the slice have stored, and the assumed contents of everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ptxlint.execution.values import Value, combine, each, uniform

Cells: TypeAlias = dict[int, tuple[int, Value]]
"""Local memory of the threads of an agent: address to width in bytes and value; entries never overlap."""


class Bytes:
    """Little-endian memory, byte by byte. Bytes never stored hold what `initial(address, width)` says."""

    __slots__ = ("cells", "initial", "looks")

    def __init__(self, initial: Callable[[int, int], int] | None = None) -> None:
        self.cells: dict[int, int] = {}
        self.initial = initial
        self.looks: dict[int, int] = {}

    def store(self, address: int, width: int, value: int) -> None:
        """Store the low `width` bytes of a value."""
        for index in range(width):
            self.cells[address + index] = value >> 8 * index & 0xFF

    def load(self, address: int, width: int) -> int:
        """The `width` bytes at an address as an unsigned integer."""
        value = self.initial(address, width) if self.initial else 0
        for index in range(width):
            byte = self.cells.get(address + index)
            if byte is not None:
                value = value & ~(0xFF << 8 * index) | byte << 8 * index
        return value

    def look(self, address: int) -> int:
        """Count the strong loads of an address: how many there were before."""
        looks = self.looks.get(address, 0)
        self.looks[address] = looks + 1
        return looks


def store_local(cells: Cells, address: int, width: int, value: Value) -> None:
    """Store a value at one address in the local memory of every thread."""
    present = cells.get(address)
    if present is None or present[0] != width:
        _make_room(cells, address, width)
    ones = (1 << 8 * width) - 1
    cells[address] = (width, each(lambda item: item & ones, value))


def store_local_scattered(cells: Cells, addresses: Sequence[int], width: int, values: Sequence[int]) -> None:
    """Store a value at an address of its own in the local memory of each thread."""
    for address in dict.fromkeys(addresses):
        old = load_local(cells, address, width)
        olds = old if old.__class__ is tuple else (old,) * len(addresses)
        rows = zip(addresses, values, olds, strict=True)
        store_local(cells, address, width, uniform([new if where == address else kept for where, new, kept in rows]))


def load_local(cells: Cells, address: int, width: int) -> Value:
    """The value at one address in the local memory of every thread; bytes never stored are 0."""
    present = cells.get(address)
    if present is not None and present[0] == width:
        return present[1]
    value: Value = 0
    for start, size, item in _overlapping(cells, address, width):
        shift = 8 * (start - address)
        ones = (1 << 8 * size) - 1
        moved = each(lambda v, s=shift, o=ones: (v & o) << s if s >= 0 else (v & o) >> -s, item)
        value = combine(lambda a, b: a | b, value, moved)
    ones = (1 << 8 * width) - 1
    return each(lambda v: v & ones, value)


def _overlapping(cells: Cells, address: int, width: int) -> list[tuple[int, int, Value]]:
    found = []
    for start in range(address - WIDEST + 1, address + width):
        entry = cells.get(start)
        if entry is not None and start + entry[0] > address:
            found.append((start, *entry))
    return found


def _make_room(cells: Cells, address: int, width: int) -> None:
    """Break the entries that overlap a range into bytes, and drop those inside it."""
    for start, size, value in _overlapping(cells, address, width):
        del cells[start]
        for index in range(size):
            if not address <= start + index < address + width:
                cells[start + index] = (1, each(lambda v, i=index: v >> 8 * i & 0xFF, value))


WIDEST = 16
"""Bytes of the widest single value that an instruction stores."""
