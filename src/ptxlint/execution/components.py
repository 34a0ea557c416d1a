"""Vector registers taken apart: each component becomes a register of its own, so that nothing else needs to know them.

Source: PTX ISA, *Vectors* (`.v2` and `.v4` registers; components `.x .y .z .w`, or `.r .g .b .a`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from ptxlint.ir import Address, Element, Function, Instruction, Negated, Not, Operand, Pair, Register, Vector

_VECTOR = re.compile(r"v([24])\.(\w+)$")
_COMPONENTS = "xyzw"
_COLORS = dict(zip("rgba", _COMPONENTS, strict=True))


def scalars(function: Function) -> Function:
    """The function without vector registers; itself where it declares none."""
    if function.body is None or not any(_VECTOR.match(kind) for _, kind, _ in function.registers):
        return function
    return replace(function, body=tuple([_apart(instruction) for instruction in function.body]))


def _apart(instruction: Instruction) -> Instruction:
    operands = tuple([_scalar(operand) for operand in instruction.operands])
    return instruction if operands == instruction.operands else replace(instruction, operands=operands)


def _scalar(operand: Operand) -> Operand:
    match operand:
        case Register(name=name, type=kind) if found := _VECTOR.match(kind):
            count, scalar = int(found[1]), found[2]
            return Vector(tuple([Register(f"{name}.{component}", scalar) for component in _COMPONENTS[:count]]))
        case Element(register=Register(name=name, type=kind), component=component) if found := _VECTOR.match(kind):
            return Register(f"{name}.{_COLORS.get(component, component)}", found[2])
        case Vector(elements=elements):
            return Vector(tuple([_scalar(element) for element in elements]))
        case Negated(operand=inner):
            return Negated(_scalar(inner))  # type: ignore[arg-type]
        case Not(operand=inner):
            return Not(_scalar(inner))  # type: ignore[arg-type]
        case Pair(first=first, second=second):
            return Pair(_scalar(first), _scalar(second))
        case Address(base=base, offset=offset, rest=rest):
            return Address(_scalar(base), offset, tuple([_scalar(part) for part in rest]))
    return operand
