"""Synchronous matrix instructions of one warp: wmma, mma, and the moves of their fragments."""

from __future__ import annotations

from ptxlint.isa.row import Access, Mode, Row

_MATRIX = "Warp Level Matrix Instructions: "
_BLOCK = " scale_a?block_scale scale_a_selector?block_scale scale_b?block_scale scale_b_selector?block_scale"

_MOVES: tuple[Row, ...] = (
    Row(
        "ldmatrix",
        "=destination address:address",
        _MATRIX + "ldmatrix",
        (6, 5),
        75,
        accesses=(Access("address", Mode.READ, bytes=16),),
        semantics="weak",
        is_collective=True,
    ),
    Row(
        "stmatrix",
        "address:address value",
        _MATRIX + "stmatrix",
        (7, 8),
        90,
        accesses=(Access("address", Mode.WRITE, bytes=16),),
        semantics="weak",
        is_collective=True,
    ),
    Row(
        "wmma.load",
        "=destination address:address stride?",
        _MATRIX + "wmma.load",
        (6, 0),
        70,
        accesses=(Access("address", Mode.READ),),
        semantics="weak",
        is_collective=True,
    ),
    Row(
        "wmma.store",
        "address:address value stride?",
        _MATRIX + "wmma.store",
        (6, 0),
        70,
        accesses=(Access("address", Mode.WRITE),),
        semantics="weak",
        is_collective=True,
    ),
)

_PRODUCTS: tuple[Row, ...] = (
    Row("wmma.mma", "=destination a b c", _MATRIX + "wmma.mma", (6, 0), 70, is_collective=True),
    Row("mma", "=destination a b c" + _BLOCK, _MATRIX + "mma", (6, 4), 70, is_collective=True),
    Row(
        "mma",
        "=destination a b c metadata selector" + _BLOCK,
        _MATRIX + "mma.sp",
        (7, 1),
        80,
        requires=("sp|sp::ordered_metadata",),
        is_collective=True,
    ),
    Row("movmatrix", "=destination a", _MATRIX + "movmatrix", (7, 8), 75, is_collective=True),
)

ROWS: tuple[Row, ...] = (*_MOVES, *_PRODUCTS)
