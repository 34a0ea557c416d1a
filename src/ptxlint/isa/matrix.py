"""Synchronous matrix instructions of one warp: wmma, mma, and the moves of their fragments."""

from __future__ import annotations

from ptxlint.isa.row import Access, Mode, Row

_BLOCK = " scale_a?block_scale scale_a_selector?block_scale scale_b?block_scale scale_b_selector?block_scale"

_MOVES: tuple[Row, ...] = (
    Row(
        "ldmatrix",
        "=destination address:address",
        "Warp-level matrix load instruction: ldmatrix",
        (6, 5),
        75,
        accesses=(Access("address", Mode.READ, bytes=16, is_of_matrices=True),),
        semantics="weak",
        is_collective=True,
    ),
    Row(
        "stmatrix",
        "address:address value",
        "Warp-level matrix store instruction: stmatrix",
        (7, 8),
        90,
        accesses=(Access("address", Mode.WRITE, bytes=16, is_of_matrices=True),),
        semantics="weak",
        is_collective=True,
    ),
    Row(
        "wmma.load",
        "=destination address:address stride?",
        "Warp-level Matrix Load Instruction: wmma.load",
        (6, 0),
        70,
        accesses=(Access("address", Mode.READ),),
        semantics="weak",
        is_collective=True,
    ),
    Row(
        "wmma.store",
        "address:address value stride?",
        "Warp-level Matrix Store Instruction: wmma.store",
        (6, 0),
        70,
        accesses=(Access("address", Mode.WRITE),),
        semantics="weak",
        is_collective=True,
    ),
)

_PRODUCTS: tuple[Row, ...] = (
    Row(
        "wmma.mma",
        "=destination a b c",
        "Warp-level Matrix Multiply-and-Accumulate Instruction: wmma.mma",
        (6, 0),
        70,
        is_collective=True,
    ),
    Row(
        "mma", "=destination a b c" + _BLOCK, "Multiply-and-Accumulate Instruction: mma", (6, 4), 70, is_collective=True
    ),
    Row(
        "mma",
        "=destination a b c metadata selector" + _BLOCK,
        "Multiply-and-Accumulate Instruction: mma.sp/mma.sp::ordered_metadata",
        (7, 1),
        80,
        requires=("sp|sp::ordered_metadata",),
        is_collective=True,
    ),
    Row(
        "movmatrix",
        "=destination a",
        "Warp-level matrix transpose instruction: movmatrix",
        (7, 8),
        75,
        is_collective=True,
    ),
)

ROWS: tuple[Row, ...] = (*_MOVES, *_PRODUCTS)
