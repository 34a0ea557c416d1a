"""Symbolic values: hash-consed expressions over what a function cannot know, with the arithmetic that simplifies them.

Equal expressions are one object, so identity is equality. Integers are mathematical: an operation that depends on its
width masks its operands when it is evaluated, additions and multiplications do not wrap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias

from ptxlint.classes import dataclass

DEPTH_LIMIT = 60
"""How deeply an expression may nest before it is given up as unknown."""


class LeafKind(StrEnum):
    """What an expression bottoms out in."""

    SYMBOL = "symbol"
    SPECIAL = "special register"
    PARAMETER = "parameter"
    UNKNOWN = "unknown result"
    MERGE = "merge"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An integer."""

    value: int
    serial: int
    depth: int = 0

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Something without further structure.

    `name` is a symbol, a special register, a parameter or the register written; `place` is the offset in a parameter,
    the index of the instruction with an unknown result (-1: never written), or the block where paths merge.
    """

    kind: LeafKind
    name: str
    place: int
    serial: int
    depth: int = 0

    def __str__(self) -> str:
        match self.kind:
            case LeafKind.SYMBOL | LeafKind.SPECIAL:
                return self.name
            case LeafKind.PARAMETER:
                return f"[{self.name}+{self.place}]"
            case LeafKind.UNKNOWN:
                return f"{self.name}@{self.place}"
            case LeafKind.MERGE:
                return f"{self.name}@B{self.place}"


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """`constant` plus each term times its factor; terms are ordered by age and are neither constants nor sums."""

    constant: int
    terms: tuple[tuple[Value, int], ...]
    serial: int
    depth: int
    leaves: frozenset[Leaf]

    def __str__(self) -> str:
        parts = [str(term) if factor == 1 else f"{factor}*{term}" for term, factor in self.terms]
        if self.constant:
            parts.append(str(self.constant))
        return "(" + " + ".join(parts) + ")"


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """An operation on values; `type` is the PTX type that says its width and sign."""

    operation: str
    type: str
    arguments: tuple[Value, ...]
    serial: int
    depth: int
    leaves: frozenset[Leaf]

    def __str__(self) -> str:
        return f"{self.operation}.{self.type}({', '.join(map(str, self.arguments))})"


Value: TypeAlias = Constant | Leaf | Sum | Apply

Literal: TypeAlias = tuple[Value, bool]
"""A predicate value with the truth that is asserted of it."""


def leaves(value: Value) -> frozenset[Leaf]:
    """The leaves of an expression."""
    match value:
        case Constant():
            return frozenset()
        case Leaf():
            return frozenset((value,))
    return value.leaves


def _all_leaves(values: Iterable[Value]) -> frozenset[Leaf]:
    """The leaves of several expressions; one of their own sets where it holds all the others."""
    found: frozenset[Leaf] = frozenset()
    for value in values:
        more = leaves(value)
        if not more <= found:
            found = more if found <= more else found | more
    return found


_MIRRORED = {"gt": "lt", "le": "ge"}
_NEGATED = {"ne": "eq", "ge": "lt"}


@dataclass(slots=True)
class Algebra:
    """Makes values: the table of those that exist, and the rules that bring equal ones to one form."""

    _known: dict[tuple[object, ...], Value] = field(default_factory=dict)

    def constant(self, value: int) -> Constant:
        """An integer."""
        key = ("constant", value)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Constant(value, len(self._known))
        assert isinstance(found, Constant)
        return found

    def leaf(self, kind: LeafKind, name: str, place: int = 0) -> Leaf:
        """A leaf; see `Leaf` for what its fields mean."""
        key = (kind, name, place)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Leaf(kind, name, place, len(self._known))
        assert isinstance(found, Leaf)
        return found

    def total(self, constant: int, terms: Iterable[tuple[Value, int]]) -> Value:
        """A constant plus terms times factors, flattened."""
        factors: dict[Value, int] = {}
        for term, factor in terms:
            match term:
                case Constant(value):
                    constant += value * factor
                case Sum(inner, parts):
                    constant += inner * factor
                    for part, times in parts:
                        factors[part] = factors.get(part, 0) + times * factor
                case _:
                    factors[term] = factors.get(term, 0) + factor
        kept = tuple(sorted(((t, f) for t, f in factors.items() if f), key=lambda pair: pair[0].serial))
        if not kept:
            return self.constant(constant)
        if not constant and len(kept) == 1 and kept[0][1] == 1:
            return kept[0][0]
        key = ("sum", constant, kept)
        found = self._known.get(key)
        if found is None:
            depth = 1 + max(term.depth for term, _ in kept)
            below = _all_leaves(term for term, _ in kept)
            found = self._known[key] = Sum(constant, kept, len(self._known), depth, below)
        return found

    def add(self, first: Value, second: Value) -> Value:
        """The sum of two values."""
        return self.total(0, ((first, 1), (second, 1)))

    def scaled(self, value: Value, factor: int) -> Value:
        """A value times an integer."""
        return self.total(0, ((value, factor),))

    def multiply(self, first: Value, second: Value, type_name: str) -> Value:
        """The product of two values."""
        if isinstance(second, Constant):
            return self.scaled(first, second.value)
        if isinstance(first, Constant):
            return self.scaled(second, first.value)
        return self.apply("mul", type_name, *sorted((first, second), key=lambda value: value.serial))

    def apply(self, operation: str, type_name: str, *arguments: Value) -> Value:
        """An operation without rules of its own."""
        key = (operation, type_name, arguments)
        found = self._known.get(key)
        if found is None:
            depth = 1 + max((argument.depth for argument in arguments), default=0)
            below = _all_leaves(arguments)
            found = self._known[key] = Apply(operation, type_name, arguments, len(self._known), depth, below)
        return found

    def negation(self, value: Value) -> Value:
        """The opposite of a predicate."""
        match value:
            case Constant(truth):
                return self.constant(1 - truth)
            case Apply("not", "pred", (inner,)):
                return inner
        return self.apply("not", "pred", value)

    def select(self, condition: Value, yes: Value, no: Value, type_name: str) -> Value:
        """`yes` where the condition holds, `no` elsewhere."""
        match condition:
            case Constant(truth):
                return yes if truth else no
            case Apply("not", "pred", (inner,)):
                return self.select(inner, no, yes, type_name)
        if yes is no:
            return yes
        if type_name == "pred" and (yes, no) == (self.constant(1), self.constant(0)):
            return condition
        if type_name == "pred" and (yes, no) == (self.constant(0), self.constant(1)):
            return self.negation(condition)
        return self.apply("select", type_name, condition, yes, no)

    def compare(self, relation: str, type_name: str, first: Value, second: Value) -> Value:
        """An integer comparison, brought to `eq` or `lt` and negations of them."""
        if relation in _MIRRORED:
            return self.compare(_MIRRORED[relation], type_name, second, first)
        if relation in _NEGATED:
            return self.negation(self.compare(_NEGATED[relation], type_name, first, second))
        if relation == "eq":
            return self._equal(type_name, first, second)
        if first is second:
            return self.constant(0)
        return self.apply(relation, type_name, first, second)

    def _equal(self, type_name: str, first: Value, second: Value) -> Value:
        chosen = self._equal_to_choice(first, second) or self._equal_to_choice(second, first)
        if chosen is not None:
            return chosen
        difference = self.total(0, ((first, 1), (second, -1)))
        if isinstance(difference, Constant):
            return self.constant(int(difference.value == 0))
        if isinstance(difference, Sum) and difference.terms[0][1] < 0:
            difference = self.scaled(difference, -1)
        return self.apply("eq", type_name, difference, self.constant(0))

    def _equal_to_choice(self, first: Value, second: Value) -> Value | None:
        """The condition that says whether a choice between two constants is a third constant."""
        match first, second:
            case Apply("select", _, (condition, Constant(yes), Constant(no))), Constant(wanted):
                return self.select(
                    condition, self.constant(int(yes == wanted)), self.constant(int(no == wanted)), "pred"
                )
        return None


def implied(value: Value, truth: bool) -> frozenset[Literal]:
    """What follows from a predicate being true or false: itself, and the parts of conjunctions and disjunctions."""
    found: set[Literal] = set()
    stack = [(value, truth)]
    while stack:
        node, holds = stack.pop()
        match node:
            case Apply("not", "pred", (inner,)):
                stack.append((inner, not holds))
                continue
            case Apply("and", "pred", arguments) if holds:
                stack.extend((argument, True) for argument in arguments)
            case Apply("or", "pred", arguments) if not holds:
                stack.extend((argument, False) for argument in arguments)
        found.add((node, holds))
    return frozenset(found)
