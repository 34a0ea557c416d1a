"""Scalar and SIMD video instructions.

A result or an operand may be a part of a register (`%r.b0`). Source: PTX ISA, *Video Instructions*.
"""

from __future__ import annotations

from ptxlint.isa.row import Row

_SCALAR = "Scalar Video Instructions: "
_SIMD = "SIMD Video Instructions: "
_SECTIONS = {
    "vadd, vsub, vabsdiff, vmin, vmax": ("vadd", "vsub", "vabsdiff", "vmin", "vmax"),
    "vshl, vshr": ("vshl", "vshr"),
    "vset": ("vset",),
}
_SIMD_OPERATIONS = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")


def _simd(lanes: int) -> tuple[Row, ...]:
    title = _SIMD + ", ".join(f"{operation}{lanes}" for operation in _SIMD_OPERATIONS)
    lane_wise = (Row(f"{operation}{lanes}", "=destination a b c", title, (3, 0), 30) for operation in _SIMD_OPERATIONS)
    return (*lane_wise, Row(f"vset{lanes}", "=destination a b c", f"{_SIMD}vset{lanes}", (3, 0), 30))


ROWS: tuple[Row, ...] = (
    *(
        Row(opcode, "=destination a b c?", _SCALAR + title, (2, 0), 20)
        for title, opcodes in _SECTIONS.items()
        for opcode in opcodes
    ),
    Row("vmad", "=destination a b c", _SCALAR + "vmad", (2, 0), 20),
    *_simd(2),
    *_simd(4),
)
