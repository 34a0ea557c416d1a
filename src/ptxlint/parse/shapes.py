"""The shape of a statement: its text with names and numbers blanked, and how to fill them in again.

The grammar is applied once to each distinct shape. What it found becomes Python expressions over the blanked words, so
that every later statement of the same shape costs a lookup and a call or two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from ptxlint import ir
from ptxlint.classes import dataclass
from ptxlint.ir import Element, Immediate, Operand, Register, Symbol
from ptxlint.parse import nodes
from ptxlint.parse.drafts import address
from ptxlint.parse.nodes import Statement
from ptxlint.parse.scopes import NAME, NUMBER, Names

BLANK = "\0"
"""Stands for a word in a shape; no PTX text holds it."""

WORDS = re.compile(
    r"""([%\w$"={](?:"""
    r"""(?<=[%\w$])(?<![.\w$:].)(?!(?<=c)all[\s.(]|(?<=f)unction_name|(?<=i)nlined_at|(?<=_)[^\w$])"""
    r"""[\w$.]*(?:::[\w$.]+)*"""
    r"""|(?<=")[^"\n]*"|(?<=[^=<>!]=)(?!=)[^;"]+"""
    r"""|(?<=\{)(?=\s*(?:\.b\d|[\w$.]+\s*:))[^{};]*\}))""",
    re.ASCII,
)
"""What is blanked: strings, initializers, section data, and the names and numbers outside of directives.

The first letter is matched before it is looked back upon: a set of first letters is what `re` searches for fastest.
"""

Operands: TypeAlias = Callable[[Names, Sequence[str], int], tuple[Operand, ...]]
Prefix: TypeAlias = Callable[[Sequence[str], int, int, int], tuple[Statement, ...]]
Column: TypeAlias = Callable[[Sequence[str], int, int], int]


class IrregularError(Exception):
    """Words that do not fit what the grammar saw in this shape: it has to look at the text itself."""


class Recipe(NamedTuple):
    """A shape as it is stored: counts, literal text and code objects.

    `form` holds opcode index or text, guard index (-1 without), whether it is negated, detached modifiers, the code of
    the operands, line and column of its start, the code of the column where it varies, the index of its first word and
    where in the shape it begins. `is_marked` says that all before it is `.loc`; `long` are the
    words that may run over lines.
    """

    prefix: CodeType | None
    form: tuple[int | str, int, bool, tuple[str, ...], CodeType, int, int, CodeType | None, int, int] | None
    needs_column: bool
    is_marked: bool
    long: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How an operation is read from the words of its statement; indices count from the statement's first word.

    `line` counts the newlines before it. `column` is 0 where it depends on the words before, which `place` then adds.
    """

    opcode: int | str
    guard: int
    negated: bool
    detached: tuple[str, ...]
    operands: Operands
    line: int
    column: int
    place: Column | None
    first: int
    pieces: tuple[str, ...]

    def text(self, words: Sequence[str], base: int) -> str:
        """The operation's text, put together again."""
        start = base + self.first
        return interleave(self.pieces, words[start : start + len(self.pieces) - 1]) + ";"


@dataclass(slots=True)
class Shape:
    """What the grammar made of one shape: nodes that stand before, then at most one operation.

    Both are None when the grammar has to read every text of this shape. `plain` is set for an
    operation on a line of its own with nothing but `.loc` before it: its form, line, column and the `.loc`.
    """

    blanks: int
    newlines: int
    prefix: Prefix | None = None
    form: Form | None = None
    needs_column: bool = False
    plain: tuple[Form, int, int, Prefix | None] | None = None
    long: tuple[int, ...] = ()

    def lines(self, words: Sequence[str], base: int) -> int:
        """How many line ends a statement of this shape holds."""
        return self.newlines + sum(words[base + index].count("\n") for index in self.long)


def interleave(pieces: Sequence[str], words: Sequence[str]) -> str:
    """Pieces with the words between them."""
    text = [""] * (len(pieces) + len(words))
    text[0::2] = pieces
    text[1::2] = words
    return "".join(text)


def opaque(blanked: str) -> Shape:
    """The shape of a text that only the grammar can read."""
    return Shape(blanked.count(BLANK), blanked.count("\n"), needs_column=True)


def revive(blanked: str, recipe: Recipe) -> Shape:
    """A shape from its recipe."""
    shape = opaque(blanked)
    prefix = _evaluate(recipe.prefix) if recipe.prefix is not None else None
    form = None
    if recipe.form is not None:
        opcode, guard, negated, detached, operands, line, column, place, first, begin = recipe.form
        form = Form(
            opcode=opcode,
            guard=guard,
            negated=negated,
            detached=detached,
            operands=_evaluate(operands),
            line=line,
            column=column,
            place=_evaluate(place) if place is not None else None,
            first=first,
            pieces=tuple(blanked[begin:].split(BLANK)),
        )
    plain = None
    if form is not None and form.column and recipe.is_marked and not recipe.needs_column:
        plain = form, form.line, form.column, prefix
    return Shape(shape.blanks, shape.newlines, prefix, form, recipe.needs_column, plain, recipe.long)


def _evaluate(code: CodeType) -> Any:
    return eval(code, _NAMESPACE)


class _Checked(dict[str, str]):
    """Words of one kind; looking up a word of another kind raises IrregularError."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self._pattern = pattern

    def __missing__(self, word: str) -> str:
        if self._pattern.fullmatch(word) is None:
            raise IrregularError
        if len(self) < 100_000:
            self[word] = word
        return word


def _offset(names: Names, word: str) -> int:
    operand = names[word]
    if isinstance(operand, Immediate) and isinstance(operand.value, int):
        return operand.value
    raise IrregularError


def _negated(names: Names, word: str) -> Operand:
    operand = names[word]
    if isinstance(operand, Immediate) and word != "WARP_SZ":
        return Immediate(-operand.value, f"-{word}")
    if isinstance(operand, Register | Element):
        return ir.Negated(operand)
    raise IrregularError


def _inverted(names: Names, word: str) -> Operand:
    operand = names[word]
    if isinstance(operand, Register):
        return ir.Not(operand)
    raise IrregularError


def _named(names: Names, word: str) -> Operand:
    operand = names[word]
    if isinstance(operand, Immediate):
        raise IrregularError
    return operand


def _pair(first: Operand, second: Operand) -> Operand:
    if isinstance(first, Immediate) or isinstance(second, Immediate):
        raise IrregularError
    return ir.Pair(first, second)


def _sum(names: Names, base: str, word: str) -> Operand:
    symbol = names[base]
    if isinstance(symbol, Symbol):
        return Symbol(symbol.name, symbol.offset + _offset(names, word))
    raise IrregularError


KINDS = {
    "w": NAME,
    "n": NUMBER,
    "s": re.compile(r'"[^"\n]*"'),
    "i": re.compile(r"=[^;]*"),
    "d": re.compile(r"\{[^;]*"),
}
"""The kinds of words in statements other than operations: names, numbers, strings, initializers, section data."""

LONG = "=", "{"
"""How the words begin that may run over lines."""

_NAMESPACE: dict[str, Any] = {
    **{name: getattr(nodes, name) for name in dir(nodes) if name[0].isupper()},
    **{f"_{kind}": _Checked(pattern) for kind, pattern in KINDS.items()},
    "_address": address,
    "_tuple": tuple.__new__,
    "_vector": ir.Vector,
    "_arguments": ir.Arguments,
    "_sink": ir.Sink(),
    "_offset": _offset,
    "_negated": _negated,
    "_inverted": _inverted,
    "_named": _named,
    "_pair": _pair,
    "_sum": _sum,
    "len": len,
}
