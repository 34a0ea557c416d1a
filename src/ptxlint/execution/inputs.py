"""Assumed values of what a kernel reads from outside: parameters, and global memory that it has not written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.execution.layout import GLOBAL_BASE, PARAMETER_WINDOW
from ptxlint.ir import Address, Function, Immediate, Instruction, Operand, Register, Symbol

ARRAY_BITS = 32
"""Bits of an address within what one pointer points at."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """Every integer that the kernel is given is `size`; pointers are distinct, and memory counts up by `step`.

    given: values that the user states, by name or index. special: values of single parameter words that a run varies,
    by name and offset. Memory holds `base`, or else `size`, plus `step` for each word, so that ranges read as
    neighbouring offsets (`begin[i]`, `begin[i + 1]`) are not empty; it is the same for every reader. arrays: the value
    of all words behind a pointer, by the name and offset of that parameter.
    """

    size: int
    step: int = 0
    pointers: frozenset[tuple[str, int]] = frozenset()
    indices: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str | int, int] = field(default_factory=dict)
    special: Mapping[tuple[str, int], int] = field(default_factory=dict)
    base: int | None = None
    arrays: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def parameter(self, name: str, offset: int, width: int) -> int:
        """`width` bytes of a parameter."""
        index = self.indices.get(name, 0)
        ones = (1 << 8 * width) - 1
        stated = self.given.get(name, self.given.get(index)) if offset == 0 else None
        if stated is not None:
            return stated & ones
        if (name, offset) in self.special:
            return self.special[name, offset] & ones
        if (name, offset) in self.pointers:
            return self._address(name, offset)
        if width == 16:
            return (self.size << 64 | self.size) & ones
        return self.size & ones

    def load(self, address: int, width: int) -> int:
        """`width` bytes of global or constant memory that the kernel has not written."""
        ones = (1 << 8 * width) - 1
        for (name, offset), value in self.arrays.items():
            if address >> ARRAY_BITS == self._address(name, offset) >> ARRAY_BITS:
                return value & ones
        word = address >> (3 if width == 8 else 2)
        base = self.size if self.base is None else self.base
        return (base + self.step * (word & 0xF)) & ones

    def _address(self, name: str, offset: int) -> int:
        """What a pointer parameter holds."""
        return GLOBAL_BASE + (self.indices.get(name, 0) << 44 | offset << ARRAY_BITS)


def pointer_parameters(cfg: Cfg) -> frozenset[tuple[str, int]]:
    """The 64-bit parameter words that are used as addresses, by name and offset.

    A word is one when its value, plus anything, is an address operand of an instruction or goes through `cvta`; a
    declared `.ptr` says the same.
    """
    function = cfg.function
    names = {parameter.name for parameter in function.parameters}
    declared = {
        (p.name, 0) for p in function.parameters if any(attribute.startswith("ptr") for attribute in p.attributes)
    }
    origin: dict[str, set[tuple[str, int]]] = {}
    body = cfg.body
    bases = _parameter_addresses(body, names)
    for instruction in body:
        if instruction.opcode == "ld" and "param" in instruction.modifiers:
            operand = instruction.operands[1]
            place = _parameter_place(operand, names, bases)
            if place is not None:
                for index, loaded in enumerate(isa.writes(instruction)):
                    if loaded.type.endswith("64"):
                        origin.setdefault(loaded.name, set()).add((place[0], place[1] + 8 * index))
    found: set[tuple[str, int]] = set(declared)
    for _ in range(3):
        for instruction in body:
            if instruction.opcode in ("add", "mov", "cvta", "mad", "sub", "selp") and instruction.operands:
                target = instruction.operands[0]
                sources = [o.name for o in instruction.operands[1:] if isinstance(o, Register) and o.name in origin]
                if instruction.opcode == "mad":
                    sources = [o.name for o in instruction.operands[3:] if isinstance(o, Register) and o.name in origin]
                if sources and isinstance(target, Register):
                    if instruction.opcode == "cvta":
                        found.update(*(origin[name] for name in sources))
                    known = origin.setdefault(target.name, set())
                    for name in sources[:1]:
                        known.update(origin[name])
    for instruction in body:
        for base in (operand.base for operand in instruction.operands if isinstance(operand, Address)):
            if isinstance(base, Register):
                found.update(origin.get(base.name, ()))
    return frozenset(found)


def _parameter_place(
    operand: Operand, names: Collection[str], bases: Mapping[str, tuple[str, int]]
) -> tuple[str, int] | None:
    """The parameter and the offset that an operand names, itself or through a register that holds its address."""
    base, offset = (operand.base, operand.offset) if isinstance(operand, Address) else (operand, 0)
    if isinstance(base, Symbol) and base.name in names:
        return base.name, base.offset + offset
    if isinstance(base, Register) and base.name in bases:
        name, start = bases[base.name]
        return name, start + offset
    return None


def _parameter_addresses(body: Sequence[Instruction], names: Collection[str]) -> dict[str, tuple[str, int]]:
    """The registers that are written once, with the address of a parameter and perhaps a number added to it."""
    written = Counter(register.name for instruction in body for register in isa.writes(instruction))
    found: dict[str, tuple[str, int]] = {}
    for instruction in body:
        match instruction.opcode, instruction.operands:
            case "mov", (Register(name=target), source):
                place = _parameter_place(source, names, found)
            case "add", (Register(name=target), source, Immediate(value=int() as step)):
                place = _parameter_place(source, names, found)
                place = None if place is None else (place[0], place[1] + step)
            case _:
                continue
        if place is not None and written[target] == 1:
            found[target] = place
    return found


def is_assumed(instruction: Instruction, pointers: frozenset[tuple[str, int]]) -> bool:
    """Whether an instruction may bring in an assumed integer: a load of memory, or of what is no pointer."""
    if instruction.opcode not in ("ld", "ldu", "atom", "call"):
        return False
    address = isa.roles(instruction).get("address")
    if "param" not in instruction.modifiers or not isinstance(address, Address) or not isinstance(address.base, Symbol):
        return True
    start = address.base.offset + address.offset
    words = (start + 8 * index for index, _ in enumerate(isa.writes(instruction)))
    return any((address.base.name, word) not in pointers for word in words)


def parameter_indices(function: Function) -> dict[str, int]:
    """The position of each parameter."""
    return {parameter.name: index for index, parameter in enumerate(function.parameters)}


__all__ = ["PARAMETER_WINDOW", "Assumed", "is_assumed", "parameter_indices", "pointer_parameters"]
