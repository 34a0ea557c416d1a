"""Building blocks of closures: slots of operands, and scalar functions applied thread by thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ptxlint.execution.arithmetic import Input, constant
from ptxlint.execution.program import Slots, Step
from ptxlint.execution.strand import Strand
from ptxlint.execution.values import Value, lift, spread, uniform
from ptxlint.ir import Address, Immediate, Instruction, Operand, Vector

ALL_ONES = 0xFFFFFFFF


Scalar = Callable[..., Any]


def slot_of(slots: Slots, operand: Input, type_name: str) -> int:
    """The slot of an operand that is read as the type."""
    if isinstance(operand, Immediate):
        return slots.constant(constant(operand, type_name))
    return slots.operand(operand)


def move(source: int, target: int) -> Step:
    """The closure that copies a slot."""

    def run(strand: Strand) -> None:
        registers = strand.registers
        registers[target] = registers[source]

    return run


def unary(function: Scalar, first: int, target: int) -> Step:
    """The closure of a function of one slot."""
    known: dict[Value, Value] = {}

    def run(strand: Strand) -> None:
        registers = strand.registers
        a = registers[first]
        if a.__class__ is not tuple:
            registers[target] = function(a)
            return
        result = known.get(a)
        if result is None:
            result = uniform(list(map(function, a)))
            _remember(known, a, result)
        registers[target] = result

    return run


def binary(function: Scalar, first: int, second: int, target: int) -> Step:
    """The closure of a function of two slots."""
    known: dict[tuple[Value, Value], Value] = {}

    def run(strand: Strand) -> None:
        registers = strand.registers
        a, b = registers[first], registers[second]
        if a.__class__ is not tuple and b.__class__ is not tuple:
            registers[target] = function(a, b)
            return
        result = known.get((a, b))
        if result is None:
            result = lift(function, (a, b), len(strand.threads))
            _remember(known, (a, b), result)
        registers[target] = result

    return run


def ternary(function: Scalar, first: int, second: int, third: int, target: int) -> Step:
    """The closure of a function of three slots."""
    known: dict[tuple[Value, Value, Value], Value] = {}

    def run(strand: Strand) -> None:
        registers = strand.registers
        a, b, c = registers[first], registers[second], registers[third]
        if a.__class__ is not tuple and b.__class__ is not tuple and c.__class__ is not tuple:
            registers[target] = function(a, b, c)
            return
        result = known.get((a, b, c))
        if result is None:
            result = lift(function, (a, b, c), len(strand.threads))
            _remember(known, (a, b, c), result)
        registers[target] = result

    return run


MOST_KNOWN = 64
"""How many results a closure remembers. Runs repeat each other: their schedules differ, their values hardly do."""


def _remember(known: dict[Any, Value], key: Value, result: Value) -> None:
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[key] = result


def several(function: Scalar, inputs: Sequence[int], outputs: Sequence[int]) -> Step:
    """The closure of a function with several results."""

    def run(strand: Strand) -> None:
        registers = strand.registers
        arguments = [registers[slot] for slot in inputs]
        if any(value.__class__ is tuple for value in arguments):
            rows = [function(*row) for row in zip(*(spread(a, len(strand.threads)) for a in arguments), strict=True)]
            for target, column in zip(outputs, zip(*rows, strict=True), strict=True):
                registers[target] = uniform(column)
        else:
            for target, value in zip(outputs, function(*arguments), strict=True):
                registers[target] = value

    return run


def address_of(slots: Slots, operand: Operand) -> tuple[int, int]:
    """The slot of the base and the offset in bytes of an address operand."""
    if isinstance(operand, Address):
        return slots.operand(operand.base), operand.offset
    return slots.operand(operand), 0


def elements(operand: Operand) -> tuple[Operand, ...]:
    """The elements of a vector operand, or the operand itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def type_of(instruction: Instruction) -> str:
    """The last modifier: the type of a memory instruction."""
    return instruction.modifiers[-1]
