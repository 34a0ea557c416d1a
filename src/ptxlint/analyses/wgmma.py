"""Registers of wgmma: those that a wgmma in flight may be reading or writing, and those changed since the last fence.

Moves are not accesses of the program: compilers copy registers at joins, and ptxas removes the copies. A copy takes
over what is known of its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.analyses.groups import allowed
from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.dataflow import Analysis
from ptxlint.ir import Immediate, Instruction, Register, Vector
from ptxlint.isa import Tracking

if TYPE_CHECKING:
    from ptxlint.facts import Facts

OPEN = -1
"""The age of a wgmma that is in no group yet; a group's age is the number of groups committed after it."""

OLDEST = 8
"""Ages are told apart up to this one: no wait allows so many groups to be pending."""


@dataclass(frozen=True, slots=True)
class Flight:
    """A wgmma that may not be done: its index in the body, and the age of its group."""

    wgmma: int
    age: int


Flights = Mapping[Register, Flight]


class InFlight(Analysis[Flights]):
    """Registers that belong to a wgmma in flight.

    State     for a register the youngest wgmma that may be using it; a register without one is free
    Order     more registers, younger groups
    Entry     no register
    Transfer  a wgmma takes its registers, commit and wait move and end groups, a move passes on what its source is in
    """

    def __init__(self, facts: Facts) -> None:
        self._cfg = facts.cfg

    def boundary(self) -> Flights:
        return {}

    def join(self, first: Flights, second: Flights) -> Flights:
        joined = dict(first)
        for register, flight in second.items():
            known = joined.get(register)
            if known is None or (flight.age, flight.wgmma) < (known.age, known.wgmma):
                joined[register] = flight
        return joined

    def transfer(self, index: int, instruction: Instruction, state: Flights) -> Flights:
        row = isa.row(instruction)
        if row is None or not (state or row.opens is Tracking.WGMMA):
            return state
        if row.opens is Tracking.WGMMA:
            return {**state, **dict.fromkeys(held(instruction), Flight(index, OPEN))}
        if row.commits is Tracking.WGMMA:
            return {r: Flight(f.wgmma, min(f.age + 1, OLDEST)) for r, f in state.items()}
        if row.waits is Tracking.WGMMA:
            left = allowed(instruction)
            return {register: flight for register, flight in state.items() if flight.age < left}
        written = isa.writes(instruction)
        if not written:
            return state
        source = moved(instruction)
        rest = {register: flight for register, flight in state.items() if register not in written}
        if source is not None and source in state:
            rest[written[0]] = state[source]
        return rest if rest != state else state


class Unfenced(Analysis[frozenset[Register]]):
    """Registers of wgmma that the program has changed since the last wgmma.fence.

    State     the registers that may have been changed
    Order     more registers
    Entry     all registers of all wgmma
    Transfer  wgmma.fence clears it, a wgmma clears its own, another write adds, a move passes on
    """

    def __init__(self, facts: Facts) -> None:
        self._tracked = frozenset(_family(facts.cfg))

    def boundary(self) -> frozenset[Register]:
        return self._tracked

    def join(self, first: frozenset[Register], second: frozenset[Register]) -> frozenset[Register]:
        return first | second

    def transfer(
        self,
        index: int,  # noqa: ARG002
        instruction: Instruction,
        state: frozenset[Register],
    ) -> frozenset[Register]:
        row = isa.row(instruction)
        if row is not None and row.name == "wgmma.fence":
            return frozenset()
        if row is not None and row.opens is Tracking.WGMMA:
            return state.difference(held(instruction))
        written = self._tracked.intersection(isa.writes(instruction))
        if not written:
            return state
        source = moved(instruction)
        if source in self._tracked and source not in state:
            return state - written
        return state if _is_constant(instruction) else state | written


def held(instruction: Instruction) -> Iterator[Register]:
    """The registers that a wgmma uses while it is in flight: accumulator and A fragment."""
    roles = isa.roles(instruction)
    for role in ("accumulator", "a"):
        operand = roles.get(role)
        if isinstance(operand, Vector):
            yield from (element for element in operand.elements if isinstance(element, Register))


def accumulator(instruction: Instruction) -> frozenset[Register]:
    """The accumulator of a wgmma."""
    operand = isa.roles(instruction).get("accumulator")
    elements = operand.elements if isinstance(operand, Vector) else ()
    return frozenset(element for element in elements if isinstance(element, Register))


def moved(instruction: Instruction) -> Register | None:
    """The register that a move copies as it is."""
    if instruction.opcode != "mov" or instruction.guard is not None or len(instruction.operands) != 2:
        return None
    source = instruction.operands[1]
    return source if isinstance(source, Register) and isinstance(instruction.operands[0], Register) else None


def _is_constant(instruction: Instruction) -> bool:
    """Whether an instruction sets a register to a constant: compilers move those to where they like."""
    return instruction.opcode == "mov" and isinstance(instruction.operands[-1], Immediate)


def _family(cfg: Cfg) -> set[Register]:
    """The registers of all wgmma, and those that are copied from or to them."""
    found = {r for i in cfg.body if (row := isa.row(i)) is not None and row.opens is Tracking.WGMMA for r in held(i)}
    if not found:
        return found
    copies = [(source, i.operands[0]) for i in cfg.body if (source := moved(i)) is not None]
    grown = True
    while grown:
        more = {a for a, b in copies if b in found} | {b for a, b in copies if a in found and isinstance(b, Register)}
        grown = not more <= found
        found |= more
    return found
