"""A shape is learned: the grammar's nodes for one text become code that builds them for every text of its shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from types import CodeType

from ptxlint.parse.nodes import (
    Bar,
    Binary,
    Blank,
    Braces,
    Brackets,
    Expression,
    Group,
    LocMark,
    Name,
    Number,
    Operation,
    Statement,
    Unary,
    Word,
    depth,
)
from ptxlint.parse.shapes import BLANK, KINDS, LONG, Recipe, interleave

_DEEPEST = 30


class OpaqueError(Exception):
    """A text whose shape does not settle how its words are to be read."""


def learn(blanked: str, words: Sequence[str], statements: Sequence[Statement]) -> Recipe | None:
    """How to read texts of this shape, from the nodes of one text, whose positions count from its start.

    None when that depends on more than the shape.
    """
    try:
        return _Learner(blanked, words).recipe(statements)
    except OpaqueError:
        return None


class _Learner:
    def __init__(self, blanked: str, words: Sequence[str]) -> None:
        self._blanked = blanked
        self._words = words
        self._text = interleave(blanked.split(BLANK), words)
        self._long = tuple(index for index, word in enumerate(words) if word[0] in LONG)
        lengths = [len(piece) for piece in blanked.split(BLANK)]
        gaps = accumulate(length + len(word) for length, word in zip(lengths, ["", *words], strict=True))
        self._starts = {start: index for index, start in enumerate(gaps) if index < len(words)}
        self._lines = [0, *(index + 1 for index, letter in enumerate(self._text) if letter == "\n")]
        self._read: set[int] = set()
        self._needs_column = False

    def recipe(self, statements: Sequence[Statement]) -> Recipe:
        """The recipe, once every blanked word is accounted for."""
        if not statements:
            raise OpaqueError
        *before, last = statements
        if depth(tuple(statements)) > _DEEPEST:
            raise OpaqueError
        prefix: Sequence[Statement] = before if isinstance(last, Operation) else statements
        code = _compiled("t, i, l, c", self._code(tuple(prefix))) if prefix else None
        form = self._form(last) if isinstance(last, Operation) else None
        if len(self._read) != len(self._words):
            raise OpaqueError
        is_marked = all(isinstance(statement, LocMark) for statement in prefix)
        return Recipe(code, form, self._needs_column, is_marked, self._long)

    def _form(
        self, operation: Operation
    ) -> tuple[int | str, int, bool, tuple[str, ...], CodeType, int, int, CodeType | None, int, int]:
        opcode = self._index(operation.opcode)
        guard = self._index(operation.guard) if operation.guard is not None else -1
        if guard is None or self._long:
            raise OpaqueError
        operand = self._operand if opcode is not None else self._call_operand
        operands = _compiled("v, t, i", _tuple(map(operand, operation.operands)))
        start = operation.start
        column, words, is_first_line = self._place(start)
        is_fixed = not words and not is_first_line
        place = None if is_fixed else _compiled("t, i, c", self._column(start))
        offset = self._offset(start)
        first = sum(begin < offset for begin in self._starts)
        begin = offset - sum(len(word) - 1 for word in self._words[:first])
        return (
            opcode if opcode is not None else str(operation.opcode),
            guard,
            operation.negated,
            operation.detached,
            operands,
            start.line - 1,
            column if is_fixed else 0,
            place,
            first,
            begin,
        )

    def _offset(self, word: Word) -> int:
        return self._lines[word.line - 1] + word.column - 1

    def _index(self, word: Word) -> int | None:
        """Which blanked word this is; None for one that the shape spells out."""
        offset = self._offset(word)
        index = self._starts.get(offset)
        if index is not None and self._words[index] == word:
            self._read.add(index)
            return index
        end = offset + len(word)
        if any(start < end and offset < start + len(self._words[index]) for start, index in self._starts.items()):
            raise OpaqueError
        return None

    def _place(self, word: Word) -> tuple[int, list[int], bool]:
        """Column without the blanked words before it on its line, those words, whether it stands on the first line."""
        line = self._lines[word.line - 1]
        before = [
            index
            for start, index in self._starts.items()
            if line <= start + len(self._words[index]) and start < self._offset(word)
        ]
        is_first_line = word.line == 1
        self._needs_column = self._needs_column or is_first_line
        if any(index in self._long for index in before):
            raise OpaqueError
        return word.column - sum(len(self._words[index]) for index in before), before, is_first_line

    def _line(self, word: Word) -> str:
        """Its line; long words before it push it down."""
        before = [index for start, index in self._starts.items() if index in self._long and start < self._offset(word)]
        newlines = sum(self._words[index].count("\n") for index in before)
        return "+".join([f"l+{word.line - 1 - newlines}", *(f't[i+{index}].count("\\n")' for index in before)])

    def _column(self, word: Word) -> str:
        column, before, is_first_line = self._place(word)
        terms = [str(column), *(f"len(t[i+{index}])" for index in before), *(["c"] if is_first_line else [])]
        return "+".join(terms)

    def _code(self, value: object) -> str:
        if isinstance(value, Word):
            return self._word(value)
        if isinstance(value, LocMark):
            return self._loc(value)
        if isinstance(value, tuple):
            items = _tuple(map(self._code, value))
            return items if type(value) is tuple else f"{type(value).__name__}(*{items})"
        if value is None or isinstance(value, str | int):
            return repr(value)
        raise OpaqueError

    def _loc(self, mark: LocMark) -> str:
        start = Word(".loc", mark.line, mark.column)
        position = _tuple(map(self._token, mark.position))
        function = self._token(mark.function) if mark.function is not None else "None"
        offset = self._token(mark.offset) if mark.offset is not None else "None"
        inlined_at = _tuple(map(self._token, mark.inlined_at)) if mark.inlined_at is not None else "None"
        place = f"{self._line(start)},{self._column(start)}"
        return f"_tuple(LocMark,({place},{position},{function},{offset},{inlined_at}))"

    def _word(self, word: Word) -> str:
        index = self._index(word)
        if index is None:
            text = repr(str(word))
        else:
            kind = next((kind for kind, pattern in KINDS.items() if pattern.fullmatch(word)), None)
            if kind is None:
                raise OpaqueError
            text = f"_{kind}[t[i+{index}]]"
        return f"Word({text},{self._line(word)},{self._column(word)})"

    def _operand(self, expression: Expression) -> str:
        match expression:
            case Name(word) | Number(word):
                return f"v[{self._token(word)}]"
            case Blank():
                return "_sink"
            case Braces(elements):
                return f"_vector({_tuple(map(self._operand, elements))})"
            case Group(elements):
                return f"_arguments({_tuple(map(self._operand, elements))})"
            case Brackets(base, rest):
                return f"_address({self._base(base)},{_tuple(map(self._operand, rest))})"
            case Bar(left, right):
                return f"_pair({self._operand(left)},{self._operand(right)})"
            case Unary("-", Name(word) | Number(word)):
                return f"_negated(v,{self._token(word)})"
            case Unary("!", Name(word)):
                return f"_inverted(v,{self._token(word)})"
            case Binary(Name(word), "+", Number(constant)):
                return f"_sum(v,{self._token(word)},{self._token(constant)})"
        raise OpaqueError

    def _call_operand(self, expression: Expression) -> str:
        """A name or a group: the operands of `call`, whose word the shape spells out."""
        return (
            f"_named(v,{self._token(expression.word)})" if isinstance(expression, Name) else self._operand(expression)
        )

    def _base(self, expression: Expression) -> str:
        match expression:
            case Binary(Name() | Number() as left, "+", Number(word)):
                return f"{self._operand(left)},_offset(v,{self._token(word)})"
            case Binary(Name() | Number() as left, "+", Unary("-", Number(word))):
                return f"{self._operand(left)},-_offset(v,{self._token(word)})"
        return f"{self._operand(expression)},0"

    def _token(self, word: str) -> str:
        assert isinstance(word, Word)
        index = self._index(word)
        return repr(str(word)) if index is None else f"t[i+{index}]"


def _tuple(items: Iterable[str]) -> str:
    listed = ",".join(items)
    return f"({listed},)" if listed else "()"


def _compiled(arguments: str, expression: str) -> CodeType:
    return compile(f"lambda {arguments}: {expression}", "<shape>", "eval")
