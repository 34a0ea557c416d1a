"""What the grammar yields: one node per statement, names still unresolved.

Named tuples, because to define one costs a sixth of what a dataclass costs at start-up.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

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


class Name(NamedTuple):
    """A register, symbol, label or special register, not yet looked up."""

    word: Word


class Number(NamedTuple):
    """A literal in any base or float form."""

    word: Word


class Blank(NamedTuple):
    """`_`."""


class Unary(NamedTuple):
    """`-x`, `!x`, `~x`, `+x`."""

    sign: str
    operand: Expression


class Binary(NamedTuple):
    """Two expressions and the sign between them."""

    left: Expression
    sign: str
    right: Expression


class Conditional(NamedTuple):
    """`condition ? yes : no`."""

    condition: Expression
    yes: Expression
    no: Expression


class Cast(NamedTuple):
    """`(.s64) x` in a constant expression."""

    type: str
    operand: Expression


class Subscript(NamedTuple):
    """`array[index]`."""

    word: Word
    at: Expression


class Bar(NamedTuple):
    """`a|b`: two results, or a bitwise or of constants."""

    left: Expression
    right: Expression


class Braces(NamedTuple):
    """`{a, b}`."""

    elements: tuple[Expression, ...]


class Brackets(NamedTuple):
    """`[base, rest]`."""

    base: Expression
    rest: tuple[Expression, ...]


class Group(NamedTuple):
    """`(a, b)` of a call."""

    elements: tuple[Expression, ...]


Expression: TypeAlias = (
    Name | Number | Blank | Unary | Binary | Conditional | Cast | Subscript | Bar | Braces | Brackets | Group
)


class Operation(NamedTuple):
    """One instruction. `detached` holds modifiers that stand apart from the opcode, after a blank."""

    start: Word
    guard: Word | None
    negated: bool
    opcode: Word
    detached: tuple[str, ...]
    operands: tuple[Expression, ...]


class LabelMark(NamedTuple):
    """`name:`."""

    name: Word


class Targets(NamedTuple):
    """`name: .branchtargets a, b;` or `.calltargets`."""

    name: Word
    targets: tuple[Word, ...]


class LocMark(NamedTuple):
    """A `.loc` as written, at `line` and `column`; `position` and `inlined_at` are file, line and column."""

    line: int
    column: int
    position: tuple[str, str, str]
    function: str | None
    offset: str | None
    inlined_at: tuple[str, str, str] | None


class Open(NamedTuple):
    """`{` of a body or of a scope in it."""

    start: Word


class Close(NamedTuple):
    """`}` of a body or of a scope in it."""

    start: Word


class Modifier(NamedTuple):
    """What stands between state space and name: `align` 8, `type` b32, `vector` v4, `ptr` global, `attribute` text."""

    kind: str
    value: str


class Declarator(NamedTuple):
    """One declared name; `members` of `%r<100>`, None in `dimensions` for `[]`; the initializer begins with `=`."""

    name: Word
    members: Word | None
    dimensions: tuple[Expression | None, ...]
    initializer: Word | None


class Declaration(NamedTuple):
    """Variables, registers or a parameter of one state space."""

    start: Word
    linkage: tuple[str, ...]
    space: str
    modifiers: tuple[Modifier, ...]
    declarators: tuple[Declarator, ...]


class Setting(NamedTuple):
    """A directive with its arguments, as written; the name has no dot."""

    start: Word
    name: str
    arguments: tuple[str, ...]


class Header(NamedTuple):
    """Everything of a function before its body."""

    start: Word
    linkage: tuple[str, ...]
    name: Word
    results: tuple[Declaration, ...]
    parameters: tuple[Declaration, ...]
    settings: tuple[Setting, ...]


class Prototype(NamedTuple):
    """`name: .callprototype (results) _ (parameters);`."""

    name: Word
    results: tuple[Declaration, ...]
    parameters: tuple[Declaration, ...]
    settings: tuple[Setting, ...]


Statement: TypeAlias = (
    Operation | LabelMark | Targets | LocMark | Open | Close | Declaration | Setting | Header | Prototype
)


def depth(node: object) -> int:
    """How deep nodes lie within one another: 1 for a word, found without recursion."""
    levels = 0
    level = [node]
    while level:
        levels += 1
        level = [item for each in level if isinstance(each, tuple) for item in each]
    return levels
