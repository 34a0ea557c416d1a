"""Counts that a loop begins anew, and parities that show it."""

from __future__ import annotations

import pytest

from ptxlint import cfg as graphs
from ptxlint.execution import slice as slices
from ptxlint.execution.recurrence import begins_anew
from ptxlint.execution.waits import begin_alike
from ptxlint.ir import Register
from ptxlint.parse import parse

NESTED = """.version 8.8 .target sm_90a .address_size 64
.entry k() {{
    .reg .b32 %r<9>; .reg .pred %p<3>; .shared .b64 bar;
    mov.u32 %r1, 0;
    mov.u32 %r5, 0;
OUTER:
    mov.u32 %r2, 0;
INNER:
    {parity}
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r4;
    @!%p1 bra WAIT;
    add.u32 %r2, %r2, 1;
    xor.b32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r2, 5;
    @%p2 bra INNER;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 3;
    @%p2 bra OUTER;
    ret;
}}
"""


@pytest.mark.parametrize(
    ("parity", "expected"),
    [
        ("shr.u32 %r3, %r2, 1; and.b32 %r4, %r3, 1;", True),
        ("mad.lo.u32 %r3, %r1, 5, %r2; and.b32 %r4, %r3, 1;", False),
        ("mov.b32 %r4, %r5;", False),
        ("and.b32 %r4, %r1, 1;", False),
        ("mov.u32 %r6, bar; add.u32 %r6, %r6, %r2; ld.shared.b32 %r4, [%r6];", False),
        ("mov.u32 %r4, 1;", False),
    ],
    ids=["of the inner loop", "of both loops", "toggled", "of the outer loop", "loaded", "constant"],
)
def test_what_begins_anew_in_an_outer_loop(parity: str, expected: bool) -> None:
    (function,) = parse(NESTED.format(parity=parity)).functions
    cfg = graphs.build(function)
    point = next(point for point, instruction in enumerate(cfg.body) if instruction.opcode == "mbarrier")
    register = cfg.body[point].operands[2]
    assert isinstance(register, Register)
    definitions = slices.compute(cfg, {point: (register,)}).definitions
    assert begins_anew(cfg, definitions, point, register) is expected


@pytest.mark.parametrize(
    ("parities", "expected"),
    [
        ([1, 0, 1, 0, 1, 1, 0, 1], True),
        ([0, 1, 0, 0, 1, 0, 0], True),
        ([0, 1, 1, 0, 0], False),
        ([0, 0, 1, 1], False),
        ([0, 0, 0], False),
        ([0, 1, 0, 1], False),
        ([0], False),
    ],
)
def test_parities_that_begin_alike(parities: list[int], expected: bool) -> None:
    assert begin_alike(parities) is expected
