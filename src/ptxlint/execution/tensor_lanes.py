"""Columns and lanes of tensor memory that an instruction reaches.

Sources: PTX ISA, *Tensor Memory Addressing*, *Data Movement Shape*, *Data Path Layout Organization*, *Instruction
descriptor*.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ptxlint.execution.conflict import Interval
from ptxlint.execution.layout import RANK_SHIFT
from ptxlint.execution.strand import WARPS_PER_GROUP
from ptxlint.ir import Instruction

OPERAND_COLUMNS = 8
"""Columns of an A operand in tensor memory: K is 32 bytes for every dense kind of MMA."""

SCALES_PER_COLUMN = 32
"""Rows of A, or columns of B, whose scale factors share a column: one in each of 32 lanes.

Source: PTX ISA, *Scale Factor A ID*, *Scale Factor B ID*.
"""

LEAST_COLUMNS = 1
"""Columns that sparsity metadata and scale factors have at least."""

LANE_SHIFT = 16
LANES_PER_QUARTER = 32
LANES_PER_SLAB = 16
ALL_LANES = 128

HALF_OF_LANES = 1 << 20
"""Added to a number of columns: of the first or the second 16 lanes of each quarter, as the address says.

Source: PTX ISA, *Data Path Layout Organization* (layout F: a product of 64 rows, but for `.ws`).
"""

WHOLE_QUARTER = "32x32b"
"""The shape of loads and stores that reach all lanes of a warp's quarter; the others reach 16 of them.

Source: PTX ISA, *Data Movement Shape*; CUTLASS names them by their 32 and 16 data paths.
"""


def moved_columns(instruction: Instruction) -> int:
    """Columns of a load's or store's shape."""
    per_repeat = {"16x64b": 1, "32x32b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
    unit = next((per_repeat[m] for m in instruction.modifiers if m in per_repeat), 1)
    repeat = next((int(m[1:]) for m in instruction.modifiers if re.fullmatch(r"x\d+", m)), 1)
    return unit * repeat


def described_columns(role: str, instruction: Instruction) -> Callable[[int], int]:
    """The columns of an operand of an MMA by the instruction descriptor.

    That of block scaling has M / 128 in bits 27 and 28. Source: PTX ISA, *Instruction descriptor*.
    """
    is_paired = "cta_group::2" in instruction.modifiers
    match role:
        case "scale_a":
            return lambda descriptor: (
                ((descriptor >> 27 & 3) * ALL_LANES >> is_paired) // SCALES_PER_COLUMN or LEAST_COLUMNS
            )
        case "scale_b":
            return lambda descriptor: _scale_columns((descriptor >> 17 & 0x3F) * 8)
        case "sparsity":
            return lambda descriptor: LEAST_COLUMNS
    is_plain = not is_paired and "ws" not in instruction.modifiers
    if role == "a":
        return lambda descriptor: OPERAND_COLUMNS | _half(descriptor, is_plain=is_plain)
    rows = ALL_LANES if "ws" in instruction.modifiers else 2 * ALL_LANES if is_paired else 0
    return lambda descriptor: _result_columns(descriptor, rows) | _half(descriptor, is_plain=is_plain)


def _half(descriptor: int, *, is_plain: bool) -> int:
    """The mark of half of the lanes for a product of 64 rows; is_plain: of one CTA, and without `.ws`."""
    return HALF_OF_LANES if is_plain and _rows(descriptor) == ALL_LANES // 2 else 0


def _rows(descriptor: int) -> int:
    """M of a product. Source: PTX ISA, *Instruction descriptor* (M / 16 in bits 24 to 28)."""
    return (descriptor >> 24 & 0x1F) * 16


def _scale_columns(extent: int) -> int:
    """Columns of the scale factors of so many rows of A, or columns of B."""
    return -(-extent // SCALES_PER_COLUMN) or LEAST_COLUMNS


def _result_columns(descriptor: int, full_rows: int) -> int:
    """Columns of D: N, or the part of it that is left where fewer rows than `full_rows` are spread over all lanes.

    These are the MMAs of a pair of CTAs with 128 rows and those of `.ws` with 64 and 32 rows; `full_rows` 0: all
    others, which leave lanes empty. Source: PTX ISA, *Data Path Layout Organization* (layouts B, E and G).
    """
    columns, rows = (descriptor >> 17 & 0x3F) * 8, _rows(descriptor)
    return columns * rows // full_rows if rows and rows < full_rows else columns


def in_quarter_of(warp: int, address: int) -> int:
    """A tensor memory address in the quarter of the lanes that a warp reaches, whichever quarter the address names.

    Source: PTX ISA, *Access restrictions*; DeepGEMM leaves the lane out of the address.
    """
    return (
        address & 0xFFFF
        | address & LANES_PER_SLAB << LANE_SHIFT
        | ((warp % WARPS_PER_GROUP) * LANES_PER_QUARTER << LANE_SHIFT)
    )


def _slab(slab: int, address: int, columns: int, rank: int) -> Interval:
    """Columns of 16 lanes."""
    start = rank << RANK_SHIFT | slab << LANE_SHIFT | address & 0xFFFF
    return start, start + columns


def _own_slab(address: int, columns: int, rank: int) -> Iterator[Interval]:
    """Columns of the 16 lanes that the address names."""
    yield _slab((address >> LANE_SHIFT) // LANES_PER_SLAB, address, columns, rank)


def _own_columns(address: int, columns: int, rank: int) -> Iterator[Interval]:
    """Columns of the quarter of lanes that the address names."""
    first = 2 * ((address >> LANE_SHIFT) // LANES_PER_QUARTER)
    yield from (_slab(slab, address, columns, rank) for slab in (first, first + 1))


def _whole_columns(address: int, columns: int, rank: int) -> Iterator[Interval]:
    """Columns of all lanes, or of half of them."""
    slabs = range(ALL_LANES // LANES_PER_SLAB)
    if columns & HALF_OF_LANES:
        slabs = slabs[(address >> LANE_SHIFT) // LANES_PER_SLAB % 2 :: 2]
    yield from (_slab(slab, address, columns & ~HALF_OF_LANES, rank) for slab in slabs)


def locator(instruction: Instruction) -> Callable[[int, int, int], Iterator[Interval]]:
    """From an address, a number of columns and the rank of the CTA to intervals of an instruction's lanes."""
    if instruction.modifiers[:1] in (("mma",), ("dealloc",)):
        return _whole_columns
    is_by_slab = instruction.modifiers[:1] in (("ld",), ("st",)) and WHOLE_QUARTER not in instruction.modifiers
    return _own_slab if is_by_slab else _own_columns
