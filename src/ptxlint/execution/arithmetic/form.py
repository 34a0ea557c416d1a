"""What a pure instruction looks like apart from its registers, and the function chosen for that look."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from ptxlint.classes import dataclass

Function: TypeAlias = Callable[..., Any]

_TYPE = re.compile(r"pred|[bsu](?:8|16|32|64|128)|bf16(?:x2)?|f(?:16|32|64)(?:x2)?|[su]16x2|tf32")
_WIDTHS = {"pred": 1, "tf32": 32, "bf16": 16, "bf16x2": 32, "f16x2": 32, "f32x2": 64, "u16x2": 32, "s16x2": 32}


@dataclass(frozen=True, slots=True)
class Form:
    """The part of an instruction that chooses its function.

    types: the modifiers that name a type, in order. arity: number of source operands, vector elements counted one by
    one. results: number of destination operands, likewise. register: type of the first destination register.
    table: the immediate look-up table of `lop3`.
    """

    opcode: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    arity: int
    results: int
    register: str
    table: int = 0

    @property
    def type(self) -> str:
        """The last type written, which is the type of the sources wherever the two may differ."""
        return self.types[-1]

    def has(self, modifier: str) -> bool:
        """Whether the modifier is written."""
        return modifier in self.modifiers

    def one_of(self, *modifiers: str) -> str | None:
        """The first of these modifiers that is written."""
        return next((modifier for modifier in modifiers if modifier in self.modifiers), None)


@dataclass(frozen=True, slots=True)
class Plan:
    """The function of a form, with the types its inputs are read as and its use of the carry flag.

    The carry is the last input and the last result.
    """

    function: Function
    inputs: tuple[str, ...]
    reads_carry: bool = False
    writes_carry: bool = False


def type_names(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """The modifiers that name a type, in order."""
    return tuple(modifier for modifier in modifiers if _TYPE.fullmatch(modifier))


def width(type_name: str) -> int:
    """Bits that a value of the type occupies."""
    return _WIDTHS.get(type_name) or int(type_name.lstrip("bsuf"))


def mask(type_name: str) -> int:
    """All ones in the width of the type."""
    return (1 << width(type_name)) - 1


def sign(type_name: str) -> int:
    """The sign bit when the type is signed, else 0, so that `(a ^ sign) - sign` reads `a` as a number."""
    return 1 << (width(type_name) - 1) if type_name.startswith("s") else 0


def is_float(type_name: str) -> bool:
    """Whether the type is a floating-point format, packed or not."""
    return type_name.startswith(("f", "bf", "tf"))


def element(type_name: str) -> str | None:
    """The type of one lane of a packed type; None when the type is not packed."""
    return type_name[:-2] if type_name.endswith("x2") else None


def by_lanes(function: Function, lane: str, arity: int) -> Function:
    """The function applied to both lanes of packed operands."""
    bits = width(lane)
    ones = (1 << bits) - 1
    if arity == 1:
        return lambda a: function(a & ones) | function(a >> bits) << bits
    if arity == 2:
        return lambda a, b: function(a & ones, b & ones) | function(a >> bits, b >> bits) << bits
    return lambda a, b, c: function(a & ones, b & ones, c & ones) | function(a >> bits, b >> bits, c >> bits) << bits
