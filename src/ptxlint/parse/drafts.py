"""IR objects made without the cost of a frozen dataclass' `__init__`.

A draft has the slots of the class it stands for, is filled in plainly, and then becomes one of its instances. Measured
on CPython 3.11: an Instruction in 0.5 microseconds instead of 1.4.
"""

from __future__ import annotations

from typing import Any

from ptxlint.ir import Address, Guard, Instruction, Operand, Register
from ptxlint.source import Loc, Span


class _InstructionDraft:
    __slots__ = Instruction.__slots__

    def __init__(
        self,
        opcode: str,
        modifiers: tuple[str, ...],
        operands: tuple[Operand, ...],
        guard: Guard | None,
        span: Span,
        loc: Loc | None,
    ) -> None:
        self.opcode = opcode
        self.modifiers = modifiers
        self.operands = operands
        self.guard = guard
        self.span = span
        self.loc = loc


class _SpanDraft:
    __slots__ = Span.__slots__

    def __init__(self, line: int, column: int) -> None:
        self.line = line
        self.column = column


class _RegisterDraft:
    __slots__ = Register.__slots__

    def __init__(self, name: str, type_: str) -> None:
        self.name = name
        self.type = type_


class _AddressDraft:
    __slots__ = Address.__slots__

    def __init__(self, base: Operand, offset: int, rest: tuple[Operand, ...]) -> None:
        self.base = base
        self.offset = offset
        self.rest = rest


def instruction(
    opcode: str,
    modifiers: tuple[str, ...],
    operands: tuple[Operand, ...],
    guard: Guard | None,
    line: int,
    column: int,
    loc: Loc | None,
) -> Instruction:
    """An instruction that begins at that line and column."""
    span: Any = _SpanDraft(line, column)
    span.__class__ = Span
    draft: Any = _InstructionDraft(opcode, modifiers, operands, guard, span, loc)
    draft.__class__ = Instruction
    return draft  # type: ignore[no-any-return]


def address(base: Operand, offset: int, rest: tuple[Operand, ...]) -> Address:
    """`[base + offset, rest]`."""
    draft: Any = _AddressDraft(base, offset, rest)
    draft.__class__ = Address
    return draft  # type: ignore[no-any-return]


def register(name: str, type_: str) -> Register:
    """A register of that unique name."""
    draft: Any = _RegisterDraft(name, type_)
    draft.__class__ = Register
    return draft  # type: ignore[no-any-return]
