"""Text -> syntax nodes through the Lark grammar: the one authority on syntax, and the only file that imports lark."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any, NoReturn

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args

from ptxlint import storage
from ptxlint.parse import store
from ptxlint.parse.constants import NotConstantError, fold
from ptxlint.parse.nodes import (
    Bar,
    Binary,
    Blank,
    Braces,
    Brackets,
    Cast,
    Close,
    Conditional,
    Declaration,
    Declarator,
    Expression,
    Group,
    Header,
    LabelMark,
    LocMark,
    Modifier,
    Name,
    Number,
    Open,
    Operation,
    Prototype,
    Setting,
    Statement,
    Subscript,
    Targets,
    Unary,
    Word,
)
from ptxlint.source import PtxSyntaxError, Span

_MOST_WORDS = 1_000_000
_READABLE = {
    "WORD": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "SINK": "'_'",
    "CALL": "'call'",
    "DIRECTIVE": "a directive",
    "TYPE": "a type",
    "VECTOR": "'.v2' or '.v4'",
    "SPACE": "a state space",
    "LINKAGE": "'.visible', '.extern', '.weak' or '.common'",
    "SECTION_FLAG": "a section flag",
    "SECTION_DATA": "'{'",
    "INITIALIZER": "'='",
    "$END": "the end of the file",
}
_OPERATORS = frozenset(
    "OR AND XOR BIT_AND EQUALITY RELATION SHIFT SIGN FACTOR NOT COMPLEMENT QMARK VBAR LESSTHAN".split()  # noqa: SIM905
)


class IncompleteError(PtxSyntaxError):
    """The text ends where more must follow."""


def read_module(text: str) -> list[Statement]:
    """The statements of a whole file. Raises PtxSyntaxError."""
    try:
        return _flatten(_lark().parse(text, start="module"))
    except UnexpectedInput as error:
        _explain(error, text, 1, 1)


def read_fragment(text: str, line: int = 1, column: int = 1) -> list[Statement]:
    """The statements of a piece of a file that begins at that line and column. Raises PtxSyntaxError."""
    parser = _lark().parse_interactive(text, start="fragment")
    state = parser.lexer_thread.state
    assert state is not None
    counter = state.line_ctr
    counter.line, counter.line_start_pos, counter.column = line, 1 - column, column
    try:
        for count, token in enumerate(parser.lexer_thread.lex(parser.parser_state)):  # type: ignore[no-untyped-call]
            parser.feed_token(token)
            if count > _MOST_WORDS:
                raise PtxSyntaxError(_word(token).span, f"a statement of more than {_MOST_WORDS} words")
        return _flatten(parser.feed_eof())  # type: ignore[no-untyped-call]
    except UnexpectedInput as error:
        _explain(error, text, line, column)


@cache
def _lark() -> Lark:
    name = f"grammar-{store.version()}"
    path = storage.path(name)
    if not os.path.exists(path):
        storage.write(name, _build)
    return _build(path if os.path.exists(path) else False)


def _build(tables: str | bool) -> Lark:
    """The parser, its tables read from that file or written to it."""
    return Lark(
        store.grammar(),
        parser="lalr",
        start=["module", "fragment"],
        g_regex_flags=int(re.ASCII),
        maybe_placeholders=True,
        propagate_positions=False,
        transformer=_Nodes(),
        cache=tables,
    )


def _flatten(tree: Any) -> list[Statement]:
    """The statements in source order, without recursion: bodies may nest by the thousand."""
    statements: list[Statement] = []
    pending = [iter(tree)]
    while pending:
        for node in pending[-1]:
            if isinstance(node, list):
                pending.append(iter(node))
                break
            statements.append(node)
        else:
            pending.pop()
    return statements


def _explain(error: UnexpectedInput, text: str, line: int, column: int) -> NoReturn:
    if isinstance(error, UnexpectedToken):
        if error.token.type == "$END":
            newline = text.rfind("\n")
            span = Span(line + text.count("\n"), len(text) - newline if newline >= 0 else column + len(text))
            raise IncompleteError(span, f"the file ends here{_expectation(error.accepts or error.expected)}") from None
        span, found = Span(error.line, error.column), _quote(str(error.token))
        expected = error.accepts or error.expected
    elif isinstance(error, UnexpectedCharacters):
        span, expected = Span(error.line, error.column), set(error.allowed or ())
        found = _quote(re.split(r"[\s,;]", text[error.pos_in_stream or 0 :][:60], maxsplit=1)[0])
    else:
        raise error
    raise PtxSyntaxError(span, f"{found} is not expected here{_expectation(expected)}") from None


def _quote(text: str) -> str:
    shown = text if len(text) <= 40 else text[:40] + "..."
    return ascii(shown) if not shown.isprintable() or not shown.isascii() else f"'{shown}'"


def _expectation(terminals: set[str]) -> str:
    shown = sorted({_terminal(name) for name in terminals if name not in _OPERATORS})
    if not shown:
        return ""
    if len(shown) > 8:
        shown = [name for name in shown if not name.startswith("'.")] or shown[:8]
    return f"; expected {shown[0]}" if len(shown) == 1 else f"; expected {', '.join(shown[:-1])} or {shown[-1]}"


def _terminal(name: str) -> str:
    if name in _READABLE:
        return _READABLE[name]
    pattern = next((terminal.pattern for terminal in _lark().terminals if terminal.name == name), None)
    return f"'{pattern.value}'" if pattern is not None else name


def _word(token: Token) -> Word:
    return Word(str(token), token.line or 1, token.column or 1)


def _argument(start: Token, value: Any) -> str:
    """A directive's argument as text: a lone literal or name as written, a constant expression folded."""
    if isinstance(value, Token):
        return _word(value)
    if isinstance(value, Number | Name):
        return value.word
    try:
        return str(fold(value))
    except NotConstantError:
        raise PtxSyntaxError(_word(start).span, f"an argument of '{start}' is not a constant") from None


def _declaration(linkage: tuple[Token, ...], space: Token, rest: tuple[Any, ...]) -> Declaration:
    return Declaration(
        start=_word((*linkage, space)[0]),
        linkage=tuple(str(token)[1:] for token in linkage),
        space=str(space)[1:],
        modifiers=tuple(item for item in rest if isinstance(item, Modifier)),
        declarators=tuple(item for item in rest if isinstance(item, Declarator)),
    )


@v_args(inline=True)
class _Nodes(Transformer[Token, Any]):
    """One method per rule of the grammar, called while the parser reduces it."""

    def module(self, *items: Any) -> list[Any]:
        return list(items)

    fragment = module
    body = module

    def setting(self, start: Token, *arguments: Any) -> Setting:
        return Setting(_word(start), str(start)[1:], tuple(_argument(start, each) for each in arguments))

    def unknown(self, start: Token, *arguments: Expression) -> Setting:
        return Setting(_word(start), f"?{str(start)[1:]}", tuple(_argument(start, each) for each in arguments))

    def header(self, linkage: tuple[Token, ...], kind: Token, *rest: Any) -> Header:
        results: tuple[Declaration, ...] = ()
        parameters: tuple[Declaration, ...] = ()
        settings: list[Setting] = []
        name: Word | None = None
        for item in rest:
            match item:
                case Token():
                    name = _word(item)
                case Modifier(_, value):
                    settings.append(Setting(_word(kind), "attribute", (value,)))
                case Setting():
                    settings.append(item)
                case ("parameters", found):
                    parameters = found
                case ("results", found, options):
                    results = found
                    settings += [
                        Setting(_word(kind), "attribute", (option.value,)) if isinstance(option, Modifier) else option
                        for option in options
                    ]
        assert name is not None
        settings.insert(0, Setting(_word(kind), str(kind)[1:], ()))
        return Header(
            start=_word((*linkage, kind)[0]),
            linkage=tuple(str(token)[1:] for token in linkage),
            name=name,
            results=results,
            parameters=parameters,
            settings=tuple(settings),
        )

    def results(self, parameters: tuple[str, Any], *options: Any) -> tuple[str, Any, Any]:
        return ("results", parameters[1], options)

    def func_option(self, option: Any) -> Any:
        return option

    def performance(self, setting: Any) -> Any:
        return setting

    def parameters(self, *parameters: Declaration) -> tuple[str, tuple[Declaration, ...]]:
        return ("parameters", parameters)

    def parameter(self, space: Token, *rest: Any) -> Declaration:
        modifiers = tuple(item for item in rest if isinstance(item, Modifier))
        name, *dimensions = rest[len(modifiers) :]
        return _declaration((), space, (*modifiers, Declarator(name, None, tuple(d[0] for d in dimensions), None)))

    def parameter_name(self, token: Token) -> Word:
        return _word(token)

    def linkage(self, *tokens: Token) -> tuple[Token, ...]:
        return tokens

    def variables(self, linkage: tuple[Token, ...], space: Token, *rest: Any) -> Declaration:
        return _declaration(linkage, space, rest)

    def align(self, value: Token) -> Modifier:
        return Modifier("align", _word(value))

    def type(self, token: Token) -> Modifier:
        return Modifier("vector" if token.type == "VECTOR" else "type", str(token)[1:])

    def pointer(self, space: Token | None = None) -> Modifier:
        return Modifier("ptr", str(space)[1:] if space is not None else "generic")

    def modifier(self, modifier: Modifier) -> Modifier:
        return modifier

    def attribute(self, *values: str) -> Modifier:
        return Modifier("attribute", ";".join(values))

    def attribute_value(self, name: Token, *numbers: Token) -> str:
        return str(name)[1:] + (f"({', '.join(map(str, numbers))})" if numbers else "")

    def declarator(self, name: Token, initializer: Token | None = None) -> Declarator:
        return Declarator(_word(name), None, (), _word(initializer) if initializer is not None else None)

    def family(self, name: Token, count: Token) -> Declarator:
        return Declarator(_word(name), _word(count), (), None)

    def array(self, name: Token, *rest: Any) -> Declarator:
        dimensions = tuple(item[0] for item in rest if isinstance(item, tuple))
        initializer = rest[-1] if isinstance(rest[-1], Token) else None
        return Declarator(_word(name), None, dimensions, _word(initializer) if initializer is not None else None)

    def dimension(self, size: Expression | None) -> tuple[Expression | None]:
        return (size,)

    def open(self, token: Token) -> Open:
        return Open(_word(token))

    def close(self, token: Token) -> Close:
        return Close(_word(token))

    def label(self, token: Token) -> LabelMark:
        return LabelMark(_word(token))

    def targets(self, label: LabelMark, *names: Token) -> Targets:
        return Targets(label.name, tuple(map(_word, names)))

    def prototype(self, label: LabelMark, results: Any, _: Token, parameters: Any, *settings: Setting) -> Prototype:
        return Prototype(label.name, results[1] if results else (), parameters[1] if parameters else (), settings)

    def loc(self, start: Token, *words: Token | None) -> LocMark:
        file, line, column, name, offset, *caller = [_word(word) if word is not None else None for word in words]
        assert file is not None
        assert line is not None
        assert column is not None
        at = [word for word in caller if word is not None]
        place = _word(start)
        return LocMark(
            place.line, place.column, (file, line, column), name, offset, (at[0], at[1], at[2]) if at else None
        )

    def instruction(self, guard: Any, opcode: Token, *rest: Any) -> Operation:
        detached = tuple(str(item)[1:] for item in rest if isinstance(item, Token))
        word = _word(opcode)
        start, negated, register = guard if guard is not None else (word, False, None)
        return Operation(start, register, negated, word, detached, rest[len(detached) :])

    call = instruction

    def guard(self, at: Token, *rest: Token) -> tuple[Word, bool, Word]:
        return _word(at), len(rest) == 2, _word(rest[-1])

    def arguments(self, *operands: Expression) -> Group:
        return Group(operands)

    def address(self, base: Expression, *rest: Expression) -> Brackets:
        return Brackets(base, rest)

    def pair(self, left: Any, right: Any) -> Bar:
        first, second = (Blank() if isinstance(side, Token) else side for side in (left, right))
        return Bar(first, second)

    def sink(self, _: Token) -> Blank:
        return Blank()

    def braces(self, *elements: Expression) -> Braces:
        return Braces(elements)

    def conditional(self, condition: Expression, yes: Expression, no: Expression) -> Conditional:
        return Conditional(condition, yes, no)

    def binary(self, left: Expression, sign: Token, right: Expression) -> Binary:
        return Binary(left, str(sign), right)

    def unary(self, sign: Token, operand: Expression) -> Unary:
        return Unary(str(sign), operand)

    def cast(self, type_: Token, operand: Expression) -> Cast:
        return Cast(str(type_)[1:], operand)

    def number(self, token: Token) -> Number:
        return Number(_word(token))

    def name(self, token: Token) -> Name:
        return Name(_word(token))

    def element(self, token: Token, index: Expression) -> Subscript:
        return Subscript(_word(token), index)
