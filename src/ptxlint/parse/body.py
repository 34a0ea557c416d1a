"""The body of one function: scopes flattened, operands resolved, `.loc` chains attached to instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn, TypeAlias

from ptxlint import ir
from ptxlint.ir import Guard, Immediate, Instruction, Note, Operand, Register, Symbol, Variable
from ptxlint.parse.constants import DEEPEST, NotConstantError, fold, integer
from ptxlint.parse.drafts import instruction
from ptxlint.parse.locs import Locs
from ptxlint.parse.nodes import (
    Bar,
    Binary,
    Blank,
    Braces,
    Brackets,
    Close,
    Declaration,
    Expression,
    Group,
    LabelMark,
    LocMark,
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
    depth,
)
from ptxlint.parse.scopes import NAME, Names, RedeclaredError, UndeclaredError
from ptxlint.parse.shapes import Form, IrregularError
from ptxlint.parse.variables import prototype_text, register_type, renamed, variables
from ptxlint.source import PtxSyntaxError, Span

_SINK = ir.Sink()
_MODULE_ONLY = ("version", "target", "address_size", "section")


Pending: TypeAlias = tuple[Form, Sequence[str], int, int, int]
"""An operation still to be read from its statement's words: its form, the words, which is the first, line, column."""

Entry: TypeAlias = Statement | Pending
"""A statement of a body."""


class Opcodes(dict[str, tuple[str, tuple[str, ...]]]):
    """An opcode as written -> its first word and its modifiers, which all instructions of that name share."""

    def __missing__(self, word: str) -> tuple[str, tuple[str, ...]]:
        if NAME.fullmatch(word) is None:
            raise IrregularError
        opcode, *modifiers = word.split(".")
        self[word] = opcode, tuple(modifiers)
        return self[word]


class Body:
    """Reads the statements between a function's braces."""

    def __init__(
        self, symbols: Mapping[str, Symbol], files: dict[int, str], notes: list[Note], opcodes: Opcodes
    ) -> None:
        self.names = Names(symbols)
        self.variables: list[Variable] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, str] = {}
        self.registers: list[tuple[str, str, int | None]] = []
        self.pragmas: dict[int, tuple[str, ...]] = {}
        self._instructions: list[Instruction] = []
        self._files = files
        self._notes = notes
        self._locs = Locs()
        self._opcodes = opcodes
        self._guards: dict[tuple[str, bool], Guard] = {}
        self._labels: Iterator[Sequence[Word]] = iter([])

    def instructions(self) -> tuple[Instruction, ...]:
        """The flat body."""
        return tuple(self._instructions)

    def parameters(self, declarations: Sequence[Declaration]) -> None:
        """Make parameters and results known; they keep their names."""
        for declaration in declarations:
            for declarator in declaration.declarators:
                name = str(declarator.name)
                try:
                    if declaration.space == "reg":
                        self.names.declare_register(name, register_type(declaration))
                    else:
                        self.names.keep(name)
                except RedeclaredError:
                    _fail(declarator.name.span, f"'{name}' is declared twice")

    def read(self, entries: Sequence[Entry], labels: Sequence[Sequence[Word]]) -> None:
        """Take in the body, outer braces excluded. `labels` lists what each scope declares, in the order of opening."""
        self._labels = iter(labels)
        self._declare_labels(next(self._labels))
        names, opcodes, append, mark = self.names, self._opcodes, self._instructions.append, self._locs.mark
        loc = self._locs.current()
        for entry in entries:
            if type(entry) is not tuple:
                if type(entry) is LocMark:
                    loc = mark(entry)
                else:
                    self._statement(entry)  # type: ignore[arg-type]
                continue
            pending: Pending = entry  # type: ignore[assignment]
            form, words, base, line, column = pending
            try:
                operands = form.operands(names, words, base)
                guard = self._guard(names[words[base + form.guard]], form.negated) if form.guard >= 0 else None
                opcode = words[base + form.opcode] if isinstance(form.opcode, int) else form.opcode
                name, modifiers = opcodes[opcode] if not form.detached else self._detached(opcode, form.detached)
            except (UndeclaredError, IrregularError):
                self._irregular(form.text(words, base), line, column)
            else:
                append(instruction(name, modifiers, operands, guard, line, column, loc))

    def _statement(self, statement: Statement) -> None:
        match statement:
            case LocMark():
                self._locs.mark(statement)
            case Operation():
                self._instructions.append(self._instruction(statement))
            case LabelMark(name):
                self.labels[str(self._resolved(name))] = len(self._instructions)
            case Open():
                self.names.open()
                self._declare_labels(next(self._labels))
            case Close():
                self.names.close()
            case Declaration():
                self._declare(statement)
            case Targets(name, targets):
                self.tables[str(self._resolved(name))] = tuple(str(self._resolved(word)) for word in targets)
            case Prototype(name):
                self.prototypes[str(self._resolved(name))] = prototype_text(statement)
            case Setting():
                self._setting(statement)
            case _:
                raise AssertionError(statement)

    def _irregular(self, text: str, line: int, column: int) -> None:
        """An operation whose words do not fit its shape: let the grammar judge."""
        from ptxlint.parse.syntax import read_fragment

        for statement in read_fragment(text, line, column):
            self._statement(statement)

    def _detached(self, opcode: str, detached: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        name, modifiers = self._opcodes[opcode]
        return self._opcodes.setdefault(f"{opcode} {detached}", (name, modifiers + detached))

    def _guard(self, register: Operand, is_negated: bool) -> Guard:
        if not isinstance(register, Register):
            raise IrregularError
        known = self._guards.get((register.name, is_negated))
        if known is None:
            known = self._guards[register.name, is_negated] = Guard(register, is_negated)
        return known

    def _declare_labels(self, words: Sequence[Word]) -> None:
        for word in words:
            try:
                self.names.declare_label(str(word))
            except RedeclaredError:
                _fail(word.span, f"'{word}' is declared twice in this scope")

    def _declare(self, declaration: Declaration) -> None:
        if declaration.space == "reg":
            self._declare_registers(declaration)
            return
        for variable in variables(declaration):
            try:
                unique = self.names.declare_variable(variable.name)
            except RedeclaredError:
                _fail(variable.span, f"'{variable.name}' is declared twice in this scope")
            self.variables.append(renamed(variable, unique))

    def _declare_registers(self, declaration: Declaration) -> None:
        type_ = register_type(declaration)
        for declarator in declaration.declarators:
            name = str(declarator.name)
            try:
                if declarator.members is None:
                    self.registers.append((self.names.declare_register(name, type_), type_, None))
                else:
                    count = integer(declarator.members)
                    self.registers.append((self.names.declare_family(name, type_, count), type_, count))
            except RedeclaredError:
                _fail(declarator.name.span, f"'{name}' is declared twice in this scope")

    def _setting(self, setting: Setting) -> None:
        match setting.name:
            case "pragma":
                index = len(self._instructions)
                texts = tuple(text[1:-1] for text in setting.arguments)
                self.pragmas[index] = self.pragmas.get(index, ()) + texts
            case "file":
                self._files[integer(setting.arguments[0])] = setting.arguments[1][1:-1]
            case name if name.lstrip("?") in _MODULE_ONLY:
                _fail(setting.start.span, f"'.{name.lstrip('?')}' is not expected in a function")
            case name:
                self._notes.append(Note(setting.start.span, f"unknown directive .{name.lstrip('?')}"))

    def _instruction(self, operation: Operation) -> Instruction:
        if depth(operation.operands) > DEEPEST:
            _fail(operation.opcode.span, f"the operands of '{operation.opcode}' are nested too deeply")
        operands = tuple([self._operand(expression, operation.opcode) for expression in operation.operands])
        guard = None
        if operation.guard is not None:
            register = self._resolved(operation.guard)
            if not isinstance(register, Register):
                _fail(operation.guard.span, f"the guard '{operation.guard}' is not a register")
            guard = self._guard(register, operation.negated)
        opcode, modifiers = self._detached(str(operation.opcode), operation.detached)
        return Instruction(opcode, modifiers, operands, guard, operation.start.span, self._locs.current())

    def _resolved(self, word: Word) -> Operand:
        try:
            return self.names[str(word)]
        except UndeclaredError:
            _fail(word.span, f"'{word}' is not declared")

    def _operand(self, expression: Expression, place: Word) -> Operand:
        match expression:
            case Name(word) | Number(word):
                return self._resolved(word)
            case Blank():
                return _SINK
            case Brackets(base, rest):
                operand, offset = self._based(base, place)
                return ir.Address(operand, offset, tuple([self._operand(item, place) for item in rest]))
            case Braces(elements):
                return ir.Vector(tuple([self._operand(item, place) for item in elements]))
            case Group(elements):
                return ir.Arguments(tuple([self._operand(item, place) for item in elements]))
            case Subscript(word, index):
                array = self._resolved(word)
                if not isinstance(array, Symbol):
                    _fail(word.span, f"'{word}' is not an array")
                return ir.Indexed(array, self._operand(index, place))
            case _:
                return self._computed(expression, place)

    def _computed(self, expression: Expression, place: Word) -> Operand:
        try:
            value = fold(expression)
        except NotConstantError:
            pass
        else:
            return Immediate(value, _text(expression, value))
        match expression:
            case Unary("!" | "-" as sign, Name(word)):
                register = self._resolved(word)
                if sign == "!" and isinstance(register, Register):
                    return ir.Not(register)
                if sign == "-" and isinstance(register, Register | ir.Element):
                    return ir.Negated(register)
            case Bar(left, right):
                return ir.Pair(self._operand(left, place), self._operand(right, place))
            case Binary():
                base, offset = self._based(expression, place)
                if isinstance(base, Symbol):
                    return Symbol(base.name, base.offset + offset)
        raise PtxSyntaxError(place.span, f"an operand of '{place}' is neither a name nor a constant")

    def _based(self, expression: Expression, place: Word) -> tuple[Operand, int]:
        """`base + constant + constant` as an operand and the sum."""
        offset = 0
        while isinstance(expression, Binary) and expression.sign in ("+", "-"):
            try:
                value = fold(expression.right)
            except NotConstantError:
                break
            if not isinstance(value, int):
                break
            offset += value if expression.sign == "+" else -value
            expression = expression.left
        if isinstance(expression, Binary) and not _is_constant(expression):
            _fail(place.span, f"an operand of '{place}' is not a name plus a constant")
        return self._operand(expression, place), offset


def _is_constant(expression: Expression) -> bool:
    try:
        fold(expression)
    except NotConstantError:
        return False
    return True


def _text(expression: Expression, value: int | float) -> str:
    if isinstance(expression, Unary) and isinstance(expression.operand, Number):
        return f"{expression.sign}{expression.operand.word}"
    return repr(value)


def _fail(span: Span, message: str) -> NoReturn:
    raise PtxSyntaxError(span, message)
