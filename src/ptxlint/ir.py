"""The intermediate representation: what a PTX module says, with scopes and names resolved.

Nested `{ }` scopes are flattened. A register, label or variable that an inner scope declares again has been renamed to
a name that is unique in its function; `Function.labels` and `Register.name` hold the unique names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from ptxlint.classes import dataclass
from ptxlint.source import Loc, Span


@dataclass(frozen=True, slots=True)
class Register:
    """A declared register: its unique name and fundamental type without the dot (`pred`, `b32`, `f64`, `b128`)."""

    name: str
    type: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A predefined register with its component, such as `%tid.x`, `%laneid` or `%clock64`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. Integer constant expressions are folded; `0f`/`0d` literals are floats, their text is kept."""

    value: int | float
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, function or parameter, plus an offset in bytes."""

    name: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target, or the name of a `.branchtargets`, `.calltargets` or `.callprototype` list."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a result that is thrown away."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Not:
    """`!p`: a predicate operand read inverted."""

    operand: Register

    def __str__(self) -> str:
        return f"!{self.operand}"


@dataclass(frozen=True, slots=True)
class Negated:
    """`-%r`: a register operand with its sign changed (old dialects)."""

    operand: Register | Element

    def __str__(self) -> str:
        return f"-{self.operand}"


@dataclass(frozen=True, slots=True)
class Element:
    """One component of a register: `%v.x` of a vector, or `%r.b0`, `%r.h1` of video instructions."""

    register: Register
    component: str

    def __str__(self) -> str:
        return f"{self.register}.{self.component}"


@dataclass(frozen=True, slots=True)
class Indexed:
    """`array[index]`: an element's address, or the element itself, as the instruction has it."""

    array: Symbol
    index: Operand

    def __str__(self) -> str:
        return f"{self.array}[{self.index}]"


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: two results, or the two halves of an `elect.sync` or `shfl.sync` destination."""

    first: Operand
    second: Operand

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, c}`: a brace list of operands."""

    elements: tuple[Operand, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


@dataclass(frozen=True, slots=True)
class Arguments:
    """`(a, b)`: the results or the arguments of a `call`."""

    elements: tuple[Operand, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.elements)) + ")"


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]` or `[base, {coordinates}]`; the offset is in bytes (ptxas reads `+-4`, not `-4`).

    `rest` holds whatever follows the base inside the brackets: tensor coordinates, a texture's sampler.
    """

    base: Operand
    offset: int = 0
    rest: tuple[Operand, ...] = ()

    def __str__(self) -> str:
        offset = f"+{self.offset}" if self.offset else ""
        return "[" + ", ".join([f"{self.base}{offset}", *map(str, self.rest)]) + "]"


Operand: TypeAlias = (
    Register
    | SpecialRegister
    | Immediate
    | Symbol
    | Label
    | Sink
    | Not
    | Negated
    | Element
    | Indexed
    | Pair
    | Vector
    | Arguments
    | Address
)


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`: the instruction runs in the threads where it holds."""

    register: Register
    negated: bool = False

    def __str__(self) -> str:
        return f"@!{self.register}" if self.negated else f"@{self.register}"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: `@guard opcode.modifier.modifier operands;`.

    `opcode` is the first word alone (`mbarrier`, `cp`, `bar`); the modifiers follow in source order, without dots,
    `::` kept (`shared::cta`). What the two mean is said by the row that `isa.row` returns.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    span: Span
    loc: Loc | None = None

    @property
    def name(self) -> str:
        """The opcode with all its modifiers, as written."""
        return ".".join((self.opcode, *self.modifiers))

    def __str__(self) -> str:
        guard = f"{self.guard} " if self.guard else ""
        operands = f" {', '.join(map(str, self.operands))}" if self.operands else ""
        return f"{guard}{self.name}{operands};"


_START = Span(1)
_BYTES = {"pred": 1, "texref": 8, "samplerref": 8, "surfref": 8, "e4m3": 1, "e5m2": 1, "e2m1": 1, "tf32": 4}


def size_of(type_: str) -> int:
    """The bytes that one value of a type takes, `v4.f32` and `f16x2` included: also its natural alignment."""
    lanes, _, scalar = type_.rpartition(".")
    packed = 2 if scalar.endswith("x2") else 1
    scalar = scalar.removesuffix("x2")
    size = _BYTES[scalar] if scalar in _BYTES else int(scalar.lstrip("bfsu")) // 8
    return size * packed * (int(lanes[1:]) if lanes else 1)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable or parameter: state space, type and extent.

    `size` is in bytes, 0 for an `.extern` array without extent; `align` is in bytes and never 0 (the natural alignment
    of the type when none is written). `initializer` is kept as text.
    """

    name: str
    space: str
    type: str
    align: int
    size: int
    linkage: str | None = None
    initializer: str | None = None
    attributes: tuple[str, ...] = ()
    dimensions: tuple[int, ...] = ()
    span: Span = _START


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive with its arguments as written, such as `.maxntid` with (128, 1, 1) or `.pragma` with a string."""

    name: str
    arguments: tuple[str, ...]
    span: Span

    def integers(self) -> tuple[int, ...]:
        """The arguments as integers. Raises ValueError when one is not."""
        return tuple(int(argument, 0) for argument in self.arguments)


@dataclass(frozen=True, slots=True)
class Function:
    """A `.entry` or `.func` with its body; a declaration alone has `body` None.

    The body is a flat sequence: an instruction's index in it is the program point that every analysis uses. `labels`
    maps a label to the index of the instruction it stands before (`len(body)` at the end of the body).
    `tables` maps the name of a `.branchtargets`/`.calltargets` list to its entries.
    """

    name: str
    is_entry: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    directives: tuple[Directive, ...]
    variables: tuple[Variable, ...]
    body: Sequence[Instruction] | None
    labels: Mapping[str, int]
    tables: Mapping[str, tuple[str, ...]]
    prototypes: Mapping[str, str]
    registers: tuple[tuple[str, str, int | None], ...]
    linkage: str | None
    span: Span
    pragmas: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def directive(self, name: str) -> Directive | None:
        """The performance or cluster directive of that name (without the dot), if written."""
        return next((directive for directive in self.directives if directive.name == name), None)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the parser accepted without knowing it: an unknown opcode, modifier or directive."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Module:
    """One PTX module. `version` is (major, minor); `target` holds the architecture first, then options."""

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    functions: tuple[Function, ...]
    variables: tuple[Variable, ...]
    files: Mapping[int, str]
    strings: Mapping[tuple[str, int], str]
    directives: tuple[Directive, ...] = ()
    notes: tuple[Note, ...] = ()

    def function(self, name: str) -> Function | None:
        """The definition of that name, or its declaration when there is no body."""
        named = [function for function in self.functions if function.name == name]
        return next((function for function in named if function.body is not None), named[0] if named else None)
