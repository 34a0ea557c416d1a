"""Concrete evaluation of symbolic values, for all threads of a block at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from ptxlint import isa
from ptxlint.analyses.value import Apply, Constant, Leaf, Sum, Value

Number: TypeAlias = int | Sequence[int]
"""One integer where all threads agree, else one for each thread."""

WARP = 32


@lru_cache(maxsize=256)
def width(type_name: str) -> int:
    """The width of an integer type in bits."""
    return isa.type_width(type_name)


def unsigned(value: int, type_name: str) -> int:
    """The value's bits read as an unsigned integer of the type's width."""
    return value & ((1 << width(type_name)) - 1)


def signed(value: int, type_name: str) -> int:
    """The value's bits read as a signed integer of the type's width."""
    bits = width(type_name)
    low = unsigned(value, type_name)
    return low - (1 << bits) if low >> (bits - 1) else low


def _typed(value: int, type_name: str) -> int:
    return signed(value, type_name) if type_name.startswith("s") else unsigned(value, type_name)


def _quotient(type_name: str, first: int, second: int) -> int:
    dividend, divisor = _typed(first, type_name), _typed(second, type_name)
    if divisor == 0:
        return unsigned(-1, type_name)
    magnitude = abs(dividend) // abs(divisor)
    return magnitude if (dividend < 0) == (divisor < 0) else -magnitude


def _remainder(type_name: str, first: int, second: int) -> int:
    dividend, divisor = _typed(first, type_name), _typed(second, type_name)
    return dividend if divisor == 0 else dividend - divisor * _quotient(type_name, first, second)


def _table_lookup(type_name: str, first: int, second: int, third: int, table: int) -> int:
    """The result of lop3: bit 4a+2b+c of the table for each bit position."""
    result = 0
    for entry in range(8):
        if table >> entry & 1:
            a = first if entry & 4 else ~first
            b = second if entry & 2 else ~second
            c = third if entry & 1 else ~third
            result |= a & b & c
    return unsigned(result, type_name)


def _extracted(type_name: str, value: int, position: int, length: int) -> int:
    position, length = position & 0xFF, length & 0xFF
    field = unsigned(value, type_name) >> position & ((1 << length) - 1)
    is_negative = type_name.startswith("s") and length and field >> (length - 1)
    return field - (1 << length) if is_negative else field


OPERATIONS: dict[str, Callable[..., int]] = {
    "and": lambda t, a, b: unsigned(a & b, t),
    "or": lambda t, a, b: unsigned(a | b, t),
    "xor": lambda t, a, b: unsigned(a ^ b, t),
    "not": lambda t, a: unsigned(~a, t),
    "shl": lambda t, a, b: unsigned(a << min(unsigned(b, "u32"), width(t)), t),
    "shr": lambda t, a, b: _typed(a, t) >> min(unsigned(b, "u32"), width(t)),
    "mul": lambda _, a, b: a * b,
    "mul.hi": lambda t, a, b: _typed(a, t) * _typed(b, t) >> width(t),
    "div": _quotient,
    "rem": _remainder,
    "min": lambda t, a, b: min(_typed(a, t), _typed(b, t)),
    "max": lambda t, a, b: max(_typed(a, t), _typed(b, t)),
    "eq": lambda t, a, b: int(unsigned(a - b, t) == 0),
    "lt": lambda t, a, b: int(_typed(a, t) < _typed(b, t)),
    "select": lambda _, c, a, b: a if c else b,
    "extend": lambda t, a: _typed(a, t),
    "popc": lambda t, a: unsigned(a, t).bit_count(),
    "clz": lambda t, a: width(t) - unsigned(a, t).bit_length(),
    "bfe": _extracted,
    "lop3": _table_lookup,
}
"""What an operation computes, from the PTX type and its arguments. `elect` and `lane` look across threads instead."""


class Evaluation:
    """Values under one assignment of the leaves, for some threads of a block, given by their linear numbers.

    `elsewhere` computes the values that `is_elsewhere` names, and remembers them for other assignments.
    """

    def __init__(
        self,
        leaf: Callable[[Leaf], Number],
        threads: Sequence[int],
        elsewhere: Evaluation | None = None,
        is_elsewhere: Callable[[Value], bool] = lambda _: False,
    ) -> None:
        self._leaf = leaf
        self._elsewhere = elsewhere
        self._is_elsewhere = is_elsewhere
        self._numbers = threads
        self._threads = len(threads)
        self._known: dict[Value, Number] = {}

    def number(self, value: Value) -> Number:
        """What the value is; raises KeyError when `leaf` does for one of its leaves."""
        if isinstance(value, Constant):
            return value.value
        found = self._known.get(value)
        if found is None:
            known = self._elsewhere.number(value) if self._elsewhere and self._is_elsewhere(value) else None
            found = self._known[value] = self._compute(value) if known is None else known
        return found

    def vector(self, value: Value) -> Sequence[int]:
        """What the value is in each thread."""
        number = self.number(value)
        return [number] * self._threads if isinstance(number, int) else number

    def _compute(self, value: Leaf | Sum | Apply) -> Number:
        match value:
            case Leaf():
                return self._leaf(value)
            case Sum(constant, terms):
                return self._sum(constant, [(self.number(term), factor) for term, factor in terms])
            case Apply("elect"):
                return [int(thread % WARP == 0) for thread in self._numbers]
            case Apply("lane", _, (source, lane)):
                return self._from_lane(self.number(source), self.number(lane))
            case Apply(operation, type_name, arguments):
                return self._apply(OPERATIONS[operation], type_name, [self.number(argument) for argument in arguments])

    def _sum(self, constant: int, terms: Sequence[tuple[Number, int]]) -> Number:
        vectors: list[tuple[Sequence[int], int]] = []
        for number, factor in terms:
            if isinstance(number, int):
                constant += number * factor
            else:
                vectors.append((number, factor))
        if not vectors:
            return constant
        total = [constant] * self._threads
        for vector, factor in vectors:
            total = [value + element * factor for value, element in zip(total, vector, strict=True)]
        return total

    def _apply(self, function: Callable[..., int], type_name: str, arguments: Sequence[Number]) -> Number:
        if all(isinstance(argument, int) for argument in arguments):
            return function(type_name, *arguments)
        columns = [[argument] * self._threads if isinstance(argument, int) else argument for argument in arguments]
        return [function(type_name, *row) for row in zip(*columns, strict=True)]

    def _from_lane(self, source: Number, lane: Number) -> Number:
        if isinstance(source, int):
            return source
        lanes = [lane] * self._threads if isinstance(lane, int) else lane
        place = {thread: index for index, thread in enumerate(self._numbers)}
        wanted = [thread - thread % WARP + other % WARP for thread, other in zip(self._numbers, lanes, strict=True)]
        return [source[place.get(thread, index)] for index, thread in enumerate(wanted)]
