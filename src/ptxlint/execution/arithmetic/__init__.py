"""The values that instructions without memory or other lanes compute: a function per form, built once.

Every register holds its bit pattern as a non-negative int below 2**width, floating-point registers too (a float is
decoded and encoded inside the operation), so that `mov.b32` and `mov.b64` move bits and nothing else. A predicate is
0 or 1. The carry flag of extended-precision arithmetic is a register of its own, `CARRY`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias, cast

from ptxlint.classes import dataclass
from ptxlint.execution.arithmetic import bits, comparison, conversion, floating, integer
from ptxlint.execution.arithmetic.form import Form, Function, Plan, is_float, mask, type_names, width
from ptxlint.execution.arithmetic.formats import FORMATS
from ptxlint.ir import (
    Immediate,
    Instruction,
    Negated,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)

Input: TypeAlias = Register | SpecialRegister | Immediate | Symbol
Output: TypeAlias = Register | Sink

_INPUTS = frozenset((Register, SpecialRegister, Immediate, Symbol))

CARRY = Register("%cc", "pred")
"""The condition code register's carry flag, `CC.CF`."""


@dataclass(frozen=True, slots=True)
class Computation:
    """What a pure instruction computes: `outputs = function(*inputs)`.

    The function returns a value when there is one output and a tuple when there are several. `types` says as which
    PTX type each input is read (see `constant`); an input never exceeds the width of that type, except in `cvt`.
    """

    function: Callable[..., int | tuple[int, ...]]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    types: tuple[str, ...]


def identity(value: int) -> int:
    """The function of every plain `mov`, so that a caller may recognize it."""
    return value


def scalar(instruction: Instruction) -> Computation | None:
    """What the instruction computes, guard aside; None when it does more than compute registers from registers, or
    is not known.
    """
    opcode, operands = instruction.opcode, instruction.operands
    if opcode not in _BUILDERS or not operands:
        return None
    table = None
    sources = operands[1:]
    if opcode == "lop3" and len(sources) >= 4:
        table, sources = sources[3], sources[:3] + sources[4:]
    inputs, is_plain = sources, True
    for source in sources:
        if type(source) not in _INPUTS:
            sources = tuple(item for operand in sources for item in _flattened(operand))
            inputs, is_plain = tuple(map(_unsigned, sources)), False
            break
    destination = operands[0]
    outputs = (destination,) if type(destination) is Register else _outputs(destination)
    if not outputs or not (is_plain or all(type(item) in _INPUTS for item in inputs)):
        return None
    register = next((output.type for output in outputs if isinstance(output, Register)), "b32")
    plan = _plan(opcode, instruction.modifiers, len(inputs), len(outputs), register, table)
    if plan is None or len(plan.inputs) != len(inputs):
        return None
    read = cast("tuple[Input, ...]", inputs)
    types, function = plan.inputs, plan.function if is_plain else _with_signs(plan, sources)
    if plan.reads_carry:
        read, types = (*read, CARRY), (*types, "pred")
    return Computation(function, read, (*outputs, CARRY) if plan.writes_carry else outputs, types)


def constant(immediate: Immediate, type_name: str) -> int:
    """The bits of an immediate read as the type."""
    value = immediate.value
    if isinstance(value, int):
        if type_name == "pred":
            return int(value != 0)
        is_numeric = type_name in ("f32", "f64")
        return FORMATS[type_name].encode(float(value)) if is_numeric else value & mask(type_name)
    size = 64 if width(type_name) == 64 else 32
    prefix = "0d" if size == 64 else "0f"
    if immediate.text[:2].lower() == prefix and type_name not in ("f16", "bf16"):
        return int(immediate.text[2:], 16)
    return FORMATS.get(type_name, FORMATS[f"f{size}"]).encode(value)


@cache
def _plan(
    opcode: str, modifiers: tuple[str, ...], arity: int, results: int, register: str, table: Operand | None
) -> Plan | None:
    """The plan of a form. The table of `lop3` is part of the form, since it is always a constant."""
    lut = 0
    if table is not None:
        if not isinstance(table, Immediate) or not isinstance(table.value, int):
            return None
        lut = table.value
    form = Form(opcode, modifiers, type_names(modifiers), arity, results, register, lut)
    return _BUILDERS[opcode](form) if form.types else None


def _outputs(operand: Operand) -> tuple[Output, ...]:
    """The registers an operand in the place of the destination stands for; empty when there is something else."""
    match operand:
        case Register() | Sink():
            return (operand,)
        case Pair(first=(Register() | Sink()) as first, second=(Register() | Sink()) as second):
            return (first, second)
        case Vector(elements=elements):
            plain = tuple(item for item in elements if isinstance(item, Register | Sink))
            return plain if len(plain) == len(elements) else ()
    return ()


def _flattened(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _unsigned(operand: Operand) -> Operand:
    return operand.operand if isinstance(operand, Not | Negated) else operand


def _with_signs(plan: Plan, operands: tuple[Operand, ...]) -> Function:
    """The function with `!p` and `-r` applied to the inputs that are written so."""
    changes = [_change(operand, kind) for operand, kind in zip(operands, plan.inputs, strict=True)]
    if not any(changes):
        return plan.function
    function = plan.function
    for position, change in enumerate(changes):
        if change is not None:
            function = _changed(function, position, len(changes), change)
    return function


def _change(operand: Operand, type_name: str) -> Callable[[int], int] | None:
    match operand:
        case Not():
            return lambda value: value ^ 1
        case Negated() if is_float(type_name):
            top = 1 << (width(type_name) - 1)
            return lambda value: value ^ top
        case Negated():
            ones = mask(type_name)
            return lambda value: -value & ones
    return None


def _changed(function: Function, position: int, arity: int, change: Callable[[int], int]) -> Function:
    match arity, position:
        case 1, 0:
            return lambda a: function(change(a))
        case 2, 0:
            return lambda a, b: function(change(a), b)
        case 2, 1:
            return lambda a, b: function(a, change(b))
        case 3, 2:
            return lambda a, b, c: function(a, b, change(c))
    return lambda *values: function(*values[:position], change(values[position]), *values[position + 1 :])


def _mov(form: Form) -> Plan | None:
    """*mov*: a copy, `{a, b}` packed with the first element lowest, or the reverse."""
    type_name = form.type
    if form.arity == form.results == 1:
        return Plan(identity, (type_name,))
    parts = max(form.arity, form.results)
    if min(form.arity, form.results) != 1 or width(type_name) % parts:
        return None
    size = width(type_name) // parts
    ones = (1 << size) - 1
    packs: dict[int, Function] = {
        2: lambda a, b: b << size | a,
        4: lambda a, b, c, d: ((d << size | c) << size | b) << size | a,
    }
    unpacks: dict[int, Function] = {
        2: lambda a: (a & ones, a >> size),
        4: lambda a: (a & ones, a >> size & ones, a >> 2 * size & ones, a >> 3 * size),
    }
    if form.arity > 1:
        return Plan(packs[parts], (f"b{size}",) * parts) if parts in packs else None
    return Plan(unpacks[parts], (type_name,)) if parts in unpacks else None


def _by_type(
    integers: Callable[[Form], Plan | None], floats: Callable[[Form], Plan | None]
) -> Callable[[Form], Plan | None]:
    return lambda form: floats(form) if is_float(form.type) else integers(form)


_BUILDERS: dict[str, Callable[[Form], Plan | None]] = {
    "abs": _by_type(integer.absolute, floating.absolute),
    "add": _by_type(integer.add, floating.add),
    "addc": integer.add,
    "and": bits.both,
    "bfe": bits.bfe,
    "bfi": bits.bfi,
    "bfind": bits.bfind,
    "bmsk": bits.bmsk,
    "brev": bits.brev,
    "clz": bits.clz,
    "cnot": bits.cnot,
    "copysign": floating.copysign,
    "cos": floating.cos,
    "cvt": conversion.cvt,
    "div": _by_type(integer.div, floating.div),
    "dp2a": integer.dp2a,
    "dp4a": integer.dp4a,
    "ex2": floating.ex2,
    "fma": floating.fma,
    "fns": bits.fns,
    "lg2": floating.lg2,
    "lop3": bits.lop3,
    "mad": _by_type(integer.mad, floating.fma),
    "mad24": integer.mad24,
    "madc": integer.mad,
    "max": _by_type(integer.maximum, floating.maximum),
    "min": _by_type(integer.minimum, floating.minimum),
    "mov": _mov,
    "mul": _by_type(integer.mul, floating.mul),
    "mul24": integer.mul24,
    "neg": _by_type(integer.neg, floating.neg),
    "not": bits.inverted,
    "or": bits.either,
    "popc": bits.popc,
    "prmt": bits.prmt,
    "rcp": floating.rcp,
    "rem": integer.rem,
    "rsqrt": floating.rsqrt,
    "sad": integer.sad,
    "selp": comparison.selp,
    "set": comparison.set_,
    "setp": comparison.setp,
    "shf": bits.shf,
    "shl": bits.shl,
    "shr": bits.shr,
    "sin": floating.sin,
    "slct": comparison.slct,
    "sqrt": floating.sqrt,
    "sub": _by_type(integer.sub, floating.sub),
    "subc": integer.sub,
    "szext": bits.szext,
    "tanh": floating.tanh,
    "testp": comparison.testp,
    "xor": bits.differing,
}
