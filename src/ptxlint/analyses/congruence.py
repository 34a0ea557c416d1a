"""What is known of a value's remainder: `value = remainder (mod modulus)` at every point that reads it.

State:    for each merge a congruence; absent while no path has reached it
Order:    a smaller modulus says less; `join` keeps the largest modulus that both agree on
Entry:    a symbol is a multiple of its alignment, a constant is itself (modulus 0); nothing else is known
Transfer: sums, products, masks and shifts of congruences
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from ptxlint.analyses.value import Apply, Constant, Leaf, LeafKind, Sum, Value, leaves
from ptxlint.analyses.values import Values
from ptxlint.classes import dataclass
from ptxlint.ir import Variable


@dataclass(frozen=True, slots=True)
class Congruence:
    """`value = remainder (mod modulus)`; modulus 0 means exactly the remainder, modulus 1 nothing."""

    modulus: int
    remainder: int

    def __or__(self, other: Congruence) -> Congruence:
        """What holds of a value that is either."""
        return congruence(gcd(self.modulus, other.modulus, self.remainder - other.remainder), self.remainder)

    def __add__(self, other: Congruence) -> Congruence:
        return congruence(gcd(self.modulus, other.modulus), self.remainder + other.remainder)

    def __mul__(self, other: Congruence) -> Congruence:
        modulus = gcd(self.modulus * other.modulus, self.modulus * other.remainder, other.modulus * self.remainder)
        return congruence(modulus, self.remainder * other.remainder)

    @property
    def known_bits(self) -> int:
        """How many of the lowest bits are known."""
        return 64 if self.modulus == 0 else (self.modulus & -self.modulus).bit_length() - 1

    def off(self, alignment: int) -> int | None:
        """By how much the value certainly misses multiples of `alignment`; None when it may be one."""
        known = gcd(self.modulus, alignment)
        return self.remainder % known or None


def congruence(modulus: int, remainder: int) -> Congruence:
    """The congruence with its remainder reduced."""
    return Congruence(modulus, remainder % modulus if modulus else remainder)


NOTHING = Congruence(1, 0)


class Congruences:
    """The congruences of one function's values. `pointer_alignment` is what 64-bit parameters are taken to have."""

    def __init__(self, values: Values, variables: Mapping[str, Variable], pointer_alignment: int = 1) -> None:
        self._values = values
        self._variables = variables
        self._pointer_alignment = pointer_alignment
        self._merges: dict[Leaf, Congruence | None] = {}
        self._settled: set[Leaf] = set()
        self._final: dict[Value, Congruence] = {}
        self._sweep: dict[Value, Congruence | None] = {}

    def of(self, value: Value) -> Congruence:
        """What is known of a value."""
        if value not in self._final:
            merges = self._merges_below(value)
            if not merges <= self._settled:
                self._settle(merges - self._settled)
            self._final[value] = self._of(value) or NOTHING
        return self._final[value]

    def _merges_below(self, value: Value) -> set[Leaf]:
        """The merges that a value is made of, also by way of what they bring."""
        found: set[Leaf] = set()
        stack = [value]
        while stack:
            for leaf in leaves(stack.pop()):
                if leaf.kind is LeafKind.MERGE and leaf not in found:
                    found.add(leaf)
                    stack.extend(brought for _, brought in self._values.incoming(leaf))
        return found

    def _settle(self, merges: set[Leaf]) -> None:
        """Iterate from "not reached" until nothing changes; a modulus only ever shrinks to a divisor."""
        ordered = sorted(merges, key=lambda leaf: (leaf.place, leaf.serial))
        changes = True
        while changes:
            changes = False
            self._sweep.clear()
            for merge in ordered:
                brought = [found for _, v in self._values.incoming(merge) if (found := self._of(v)) is not None]
                joined = self._merges.get(merge)
                for one in brought:
                    joined = one if joined is None else joined | one
                if joined != self._merges.get(merge):
                    self._merges[merge] = joined
                    changes = True
        self._sweep.clear()
        self._settled |= merges

    def _of(self, value: Value) -> Congruence | None:
        """The congruence under what is known of merges so far; None when a merge in it is not reached yet."""
        if value in self._final:
            return self._final[value]
        if value not in self._sweep:
            self._sweep[value] = self._computed(value)
        return self._sweep[value]

    def _computed(self, value: Value) -> Congruence | None:
        match value:
            case Constant(number):
                return Congruence(0, number)
            case Leaf(LeafKind.MERGE):
                return self._merges.get(value)
            case Leaf():
                return self._of_leaf(value)
            case Sum(constant, terms):
                total = Congruence(0, constant)
                for term, factor in terms:
                    part = self._of(term)
                    if part is None:
                        return None
                    total += part * Congruence(0, factor)
                return total
            case Apply(operation, _, arguments):
                parts = [self._of(argument) for argument in arguments]
                if any(part is None for part in parts):
                    return None
                return _applied(operation, [part for part in parts if part is not None])

    def _of_leaf(self, leaf: Leaf) -> Congruence:
        variable = self._variables.get(leaf.name)
        if leaf.kind is LeafKind.SYMBOL and variable is not None:
            return congruence(variable.align, 0)
        is_pointer = leaf.kind is LeafKind.PARAMETER and variable is not None and variable.size == 8 and not leaf.place
        return congruence(self._pointer_alignment, 0) if is_pointer else NOTHING


def _applied(operation: str, parts: list[Congruence]) -> Congruence:
    match operation, parts:
        case "select", [_, yes, no]:
            return yes | no
        case "mul", [first, second]:
            return first * second
        case (("and" | "or" | "xor"), [first, second]):
            return _bitwise(operation, first, second)
        case "rem", [first, Congruence(0, divisor)] if divisor > 0:
            return congruence(gcd(first.modulus, divisor), first.remainder)
        case "shr", [first, Congruence(0, places)] if 0 <= places <= first.known_bits < 64:
            return congruence(1 << (first.known_bits - places), first.remainder >> places)
        case "shl", [first, Congruence(0, places)] if places >= 0:
            return first * Congruence(0, 1 << places)
        case (("lane" | "extend"), [first, *_]):
            return first
        case (("min" | "max"), [first, second]):
            return first | second
    return NOTHING


def _bitwise(operation: str, first: Congruence, second: Congruence) -> Congruence:
    """The lowest bits of a bitwise result: those known on both sides, and those that one side decides."""
    bits = result = 0
    while bits < 64:
        known = [part.remainder >> bits & 1 if bits < part.known_bits else None for part in (first, second)]
        bit = _bit(operation, known[0], known[1])
        if bit is None:
            break
        result |= bit << bits
        bits += 1
    return congruence(1 << bits, result)


def _bit(operation: str, first: int | None, second: int | None) -> int | None:
    if operation == "and" and 0 in (first, second):
        return 0
    if operation == "or" and 1 in (first, second):
        return 1
    if first is None or second is None:
        return None
    return {"and": first & second, "or": first | second, "xor": first ^ second}[operation]
