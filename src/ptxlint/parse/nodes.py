"""What the grammar yields: one node per statement, names still unresolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ptxlint.source import Span


class Word(str):
    """A piece of PTX text that remembers where it stood; line and column from 1."""

    __slots__ = ("column", "line")

    line: int
    column: int

    def __new__(cls, text: str, line: int, column: int) -> Word:
        word = super().__new__(cls, text)
        word.line = line
        word.column = column
        return word

    @property
    def span(self) -> Span:
        """Where the word begins."""
        return Span(self.line, self.column)


@dataclass(frozen=True, slots=True)
class Name:
    """A register, symbol, label or special register, not yet looked up."""

    word: Word


@dataclass(frozen=True, slots=True)
class Number:
    """A literal in any base or float form."""

    word: Word


@dataclass(frozen=True, slots=True)
class Blank:
    """`_`."""


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, `!x`, `~x`, `+x`."""

    sign: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions and the sign between them."""

    left: Expression
    sign: str
    right: Expression


@dataclass(frozen=True, slots=True)
class Conditional:
    """`condition ? yes : no`."""

    condition: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    """`(.s64) x` in a constant expression."""

    type: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Subscript:
    """`array[index]`."""

    word: Word
    index: Expression


@dataclass(frozen=True, slots=True)
class Bar:
    """`a|b`: two results, or a bitwise or of constants."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Braces:
    """`{a, b}`."""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Brackets:
    """`[base, rest]`."""

    base: Expression
    rest: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b)` of a call."""

    elements: tuple[Expression, ...]


Expression: TypeAlias = (
    Name | Number | Blank | Unary | Binary | Conditional | Cast | Subscript | Bar | Braces | Brackets | Group
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction. `detached` holds modifiers that stand apart from the opcode, after a blank."""

    start: Word
    guard: Word | None
    negated: bool
    opcode: Word
    detached: tuple[str, ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class LabelMark:
    """`name:`."""

    name: Word


@dataclass(frozen=True, slots=True)
class Targets:
    """`name: .branchtargets a, b;` or `.calltargets`."""

    name: Word
    targets: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class LocMark:
    """A `.loc` as written, at `line` and `column`; `position` and `inlined_at` are file, line and column."""

    line: int
    column: int
    position: tuple[str, str, str]
    function: str | None
    offset: str | None
    inlined_at: tuple[str, str, str] | None


@dataclass(frozen=True, slots=True)
class Open:
    """`{` of a body or of a scope in it."""

    start: Word


@dataclass(frozen=True, slots=True)
class Close:
    """`}` of a body or of a scope in it."""

    start: Word


@dataclass(frozen=True, slots=True)
class Modifier:
    """What stands between state space and name: `align` 8, `type` b32, `vector` v4, `ptr` global, `attribute` text."""

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Declarator:
    """One declared name; `count` of `%r<count>`, None in `dimensions` for `[]`; the initializer begins with `=`."""

    name: Word
    count: Word | None
    dimensions: tuple[Expression | None, ...]
    initializer: Word | None


@dataclass(frozen=True, slots=True)
class Declaration:
    """Variables, registers or a parameter of one state space."""

    start: Word
    linkage: tuple[str, ...]
    space: str
    modifiers: tuple[Modifier, ...]
    declarators: tuple[Declarator, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A directive with its arguments, as written; the name has no dot."""

    start: Word
    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """Everything of a function before its body."""

    start: Word
    linkage: tuple[str, ...]
    name: Word
    results: tuple[Declaration, ...]
    parameters: tuple[Declaration, ...]
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Prototype:
    """`name: .callprototype (results) _ (parameters);`."""

    name: Word
    results: tuple[Declaration, ...]
    parameters: tuple[Declaration, ...]
    settings: tuple[Setting, ...]


Statement: TypeAlias = (
    Operation | LabelMark | Targets | LocMark | Open | Close | Declaration | Setting | Header | Prototype
)
