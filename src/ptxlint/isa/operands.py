"""The roles of an instruction's operands, and the registers that it reads and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

from ptxlint.classes import dataclass
from ptxlint.ir import (
    Address,
    Arguments,
    Element,
    Immediate,
    Indexed,
    Instruction,
    Label,
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
from ptxlint.isa.row import Row
from ptxlint.isa.table import row


def _is_predicate(operand: Operand) -> bool:
    return isinstance(operand, Not) or (isinstance(operand, Register) and operand.type == "pred")


KINDS: dict[str, Callable[[Operand], bool]] = {
    "address": lambda operand: isinstance(operand, Address | Indexed),
    "arguments": lambda operand: isinstance(operand, Arguments),
    "immediate": lambda operand: isinstance(operand, Immediate),
    "integer": lambda operand: not _is_predicate(operand),
    "pred": _is_predicate,
    "vector": lambda operand: isinstance(operand, Vector),
}
"""What `role:kind` in an operand specification asks of the operand."""


class OperandSpecError(ValueError):
    """An operand specification of the table that cannot be read."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One role of a row's operand specification (see `Row`); `kind` is empty where any operand will do."""

    role: str
    kind: str = ""
    is_read: bool = True
    is_written: bool = False
    is_optional: bool = False
    modifier: str = ""


def _slot(text: str) -> Slot:
    body, is_read, is_written = text, True, False
    if text[0] in "=+":
        body, is_read, is_written = text[1:], text[0] == "+", True
    head, mark, condition = body.partition("?")
    if mark and condition and not condition.startswith(":"):
        modifier, kind = _split_kind(condition)
        slot = Slot(head, kind, is_read, is_written, modifier=modifier)
    elif mark:
        slot = Slot(head, condition[1:], is_read, is_written, is_optional=True)
    else:
        role, _, kind = head.partition(":")
        slot = Slot(role, kind, is_read, is_written)
    if not slot.role.isidentifier() or (slot.kind and slot.kind not in KINDS):
        raise OperandSpecError(text)
    return slot


def _split_kind(condition: str) -> tuple[str, str]:
    """The modifier and the kind of `modifier:kind`; a modifier may hold `::` itself."""
    head, colon, kind = condition.rpartition(":")
    return (head, kind) if colon and not head.endswith(":") else (condition, "")


def alternatives(spec: str) -> tuple[tuple[Slot, ...], ...]:
    """The slots of each alternative of an operand specification. Raises OperandSpecError when it is not one."""
    return tuple(tuple(map(_slot, alternative.split())) for alternative in spec.split("/"))


@dataclass(frozen=True, slots=True)
class Form:
    """The readings of the operands of an opcode with its modifiers, those that fill earlier optional roles first."""

    row: Row
    readings: tuple[tuple[Slot, ...], ...]
    only: dict[int, tuple[Slot, ...]]

    def reading(self, operands: tuple[Operand, ...]) -> tuple[Slot, ...] | None:
        """The first reading that has a slot of the right kind for each operand."""
        for slots in self.readings:
            if len(slots) == len(operands) and all(
                not slot.kind or KINDS[slot.kind](operand) for slot, operand in zip(slots, operands, strict=True)
            ):
                return slots
        return None


def _readings(slots: tuple[Slot, ...], modifiers: tuple[str, ...]) -> Iterator[tuple[Slot, ...]]:
    """The slots that may be there under these modifiers, with each choice of the optional ones."""
    there = [slot for slot in slots if not slot.modifier or slot.modifier in modifiers]
    choices = [(True, False) if slot.is_optional else (True,) for slot in there]
    for choice in product(*choices):
        yield tuple(slot for slot, taken in zip(there, choice, strict=True) if taken)


_forms: dict[tuple[str, tuple[str, ...]], Form | None] = {}
_UNKNOWN_FIRST = Slot("destination", is_read=False, is_written=True)


def form(instruction: Instruction) -> Form | None:
    """The readings of an instruction's operands, None when the table does not know its opcode."""
    key = (instruction.opcode, instruction.modifiers)
    try:
        return _forms[key]
    except KeyError:
        found = row(instruction)
        if found is None:
            return _forms.setdefault(key, None)
        return _forms.setdefault(key, _form(found, key[1]))


def _form(found: Row, modifiers: tuple[str, ...]) -> Form:
    """The form of a row under these modifiers; `only` holds the readings that no other of their length rivals."""
    every = [reading for slots in alternatives(found.operands) for reading in _readings(slots, modifiers)]
    readings = tuple(dict.fromkeys(every))
    lengths = Counter(map(len, readings))
    return Form(found, readings, {len(r): r for r in readings if lengths[len(r)] == 1})


def slots(instruction: Instruction) -> tuple[Slot, ...]:
    """One slot for each operand; generic roles where the table has no reading (`fits` tells)."""
    operands = instruction.operands
    known = form(instruction)
    if known is not None:
        reading = known.only.get(len(operands)) or known.reading(operands)
        if reading is not None:
            return reading
        best = max(known.readings, key=len)
        extra = tuple(Slot(f"extra{n}") for n in range(len(best), len(operands)))
        return (*best[: len(operands)], *extra)
    return tuple(Slot(f"operand{n}") if n else _UNKNOWN_FIRST for n in range(len(operands)))


def fits(instruction: Instruction) -> bool:
    """Whether the table knows the opcode and has a reading for just these operands."""
    known = form(instruction)
    return known is not None and known.reading(instruction.operands) is not None


def roles(instruction: Instruction) -> dict[str, Operand]:
    """Each operand by its role. An unknown opcode has `destination`, `operand1`, `operand2`..."""
    return {slot.role: operand for slot, operand in zip(slots(instruction), instruction.operands, strict=True)}


def _collect(operand: Operand, found: list[Register]) -> None:
    """Append every register that an operand names, in order."""
    match operand:
        case Register():
            found.append(operand)
        case Immediate() | SpecialRegister() | Symbol() | Label() | Sink():
            return
        case Address(base, _, rest):
            _collect(base, found)
            for element in rest:
                _collect(element, found)
        case Vector(elements) | Arguments(elements):
            for element in elements:
                _collect(element, found)
        case Not(inner) | Negated(inner):
            _collect(inner, found)
        case Element(register, _):
            found.append(register)
        case Indexed(_, index):
            _collect(index, found)
        case Pair(first, second):
            _collect(first, found)
            _collect(second, found)


def _collect_read(result: Operand, found: list[Register]) -> None:
    """Append the registers that are read where a result is written: inside an address, or around a component."""
    match result:
        case Address() | Indexed():
            _collect(result, found)
        case Element(register, _):
            found.append(register)
        case Vector(elements) | Arguments(elements):
            for element in elements:
                _collect_read(element, found)
        case Pair(first, second):
            _collect_read(first, found)
            _collect_read(second, found)


def _once(found: list[Register]) -> tuple[Register, ...]:
    return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)


def reads(instruction: Instruction) -> tuple[Register, ...]:
    """The registers that an instruction reads, its guard's first, each once.

    An instruction that writes one component of a register (`%v.x`) reads the rest of it too.
    """
    found = [instruction.guard.register] if instruction.guard else []
    for slot, operand in zip(slots(instruction), instruction.operands, strict=True):
        if slot.is_read:
            _collect(operand, found)
        elif type(operand) is not Register:
            _collect_read(operand, found)
    return _once(found)


def writes(instruction: Instruction) -> tuple[Register, ...]:
    """The registers that an instruction writes, each once; all elements of a vector or pair of results."""
    found: list[Register] = []
    for slot, operand in zip(slots(instruction), instruction.operands, strict=True):
        if slot.is_written and not isinstance(operand, Address | Indexed):
            _collect(operand, found)
    return _once(found)
