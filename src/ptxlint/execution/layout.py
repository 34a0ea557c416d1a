"""Where variables lie: one disjoint address space with the hardware's own form for shared memory.

A `shared::cluster` address holds the rank of its CTA above bit 24 (measured in practice: CUTLASS clears bit 24 to reach
the even CTA of a pair; the PTX ISA leaves the layout open), so the address of a shared variable differs between CTAs.
The dynamic part begins on 1024 bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ptxlint.classes import dataclass
from ptxlint.ir import Address, Function, Instruction, Module, Operand, Symbol, Variable

RANK_SHIFT = 24
SHARED_BASE = 1024
OFFSET_MASK = (1 << RANK_SHIFT) - 1
SHARED_WINDOW = 0x7F00_0000_0000
LOCAL_WINDOW = 0x7E00_0000_0000
PARAMETER_WINDOW = 0x7D00_0000_0000
GLOBAL_BASE = 0x1000_0000_0000
WINDOW_SIZE = 1 << 32
DYNAMIC_ALIGNMENT = 1024


@dataclass(frozen=True, slots=True)
class Place:
    """A byte of shared memory for messages: the CTA's rank, the variable that holds it, the bytes into that variable.

    `symbol` is empty where no variable lies there.
    """

    rank: int
    symbol: str
    offset: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The addresses of the variables of a function. Shared ones are offsets in the window of their own CTA."""

    shared: dict[str, int]
    elsewhere: dict[str, int]
    sizes: dict[str, int]
    starts: tuple[tuple[int, str], ...]
    shared_end: int

    def place(self, address: int) -> Place:
        """The variable under a `shared::cluster` address."""
        offset = address & OFFSET_MASK
        index = bisect_right(self.starts, (offset, "\U0010ffff")) - 1
        if index < 0:
            return Place(address >> RANK_SHIFT, "", offset)
        start, name = self.starts[index]
        return Place(address >> RANK_SHIFT, name, offset - start)

    def describe(self, address: int) -> str:
        """The place in words: `full`, or `full+8` within the variable."""
        place = self.place(address)
        return f"{place.symbol or 'shared'}{f'+{place.offset}' if place.offset else ''}"


def lay_out(module: Module, function: Function) -> Layout:
    """Place the variables that the body names, static shared ones in order of declaration, the dynamic one last."""
    named = {symbol.name for instruction in function.body or () for symbol in symbols(instruction)}
    variables = [v for v in (*module.variables, *function.variables) if v.name in named]
    shared: dict[str, int] = {}
    cursor = SHARED_BASE
    for variable in sorted((v for v in variables if _is_shared(v)), key=lambda v: v.size == 0):
        alignment = variable.align if variable.size else max(variable.align, DYNAMIC_ALIGNMENT)
        cursor = -(-cursor // alignment) * alignment
        shared[variable.name] = cursor
        cursor += variable.size
    elsewhere = _place_local(v for v in variables if v.space in ("local", "param"))
    for index, name in enumerate(sorted(named - shared.keys() - elsewhere.keys())):
        elsewhere[name] = GLOBAL_BASE + ((index + 1) << 36)
    for index, parameter in enumerate(function.parameters):
        elsewhere[parameter.name] = PARAMETER_WINDOW + (index << 16)
    sizes = {variable.name: variable.size for variable in variables}
    starts = tuple(sorted((offset, name) for name, offset in shared.items()))
    return Layout(shared, elsewhere, sizes, starts, cursor)


def _is_shared(variable: Variable) -> bool:
    return variable.space.startswith("shared")


def _place_local(variables: Iterable[Variable]) -> dict[str, int]:
    places: dict[str, int] = {}
    cursor = 16
    for variable in variables:
        cursor = -(-cursor // variable.align) * variable.align
        places[variable.name] = LOCAL_WINDOW + cursor
        cursor += max(variable.size, 1)
    return places


def symbols(instruction: Instruction) -> Iterable[Symbol]:
    """Every symbol among the operands of an instruction."""
    stack: list[Operand] = list(instruction.operands)
    while stack:
        operand = stack.pop()
        if isinstance(operand, Symbol):
            yield operand
        else:
            stack.extend(getattr(operand, "elements", ()))
            if isinstance(operand, Address):
                stack.extend((operand.base, *operand.rest))
