"""Bytes that instructions of the slice have stored, and the assumed contents of everything else."""

from __future__ import annotations

from collections.abc import Callable


class Bytes:
    """Little-endian memory, byte by byte. Bytes never stored hold what `initial(address, width)` says."""

    __slots__ = ("cells", "initial")

    def __init__(self, initial: Callable[[int, int], int] | None = None) -> None:
        self.cells: dict[int, int] = {}
        self.initial = initial

    def store(self, address: int, width: int, value: int) -> None:
        """Store the low `width` bytes of a value."""
        for index in range(width):
            self.cells[address + index] = value >> 8 * index & 0xFF

    def load(self, address: int, width: int) -> int:
        """The `width` bytes at an address as an unsigned integer."""
        cells = self.cells
        if address in cells:
            value = 0
            for index in range(width):
                value |= cells.get(address + index, 0) << 8 * index
            return value
        return self.initial(address, width) if self.initial else 0
