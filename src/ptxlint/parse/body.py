"""The body of one function: scopes flattened, operands resolved, `.loc` chains attached to instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from ptxlint import ir
from ptxlint.ir import Guard, Immediate, Instruction, Note, Operand, Register, Symbol, Variable
from ptxlint.parse.constants import NotConstantError, fold
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
)
from ptxlint.parse.scopes import Names, RedeclaredError, UndeclaredError
from ptxlint.parse.variables import prototype_text, register_type, renamed, variables
from ptxlint.source import PtxSyntaxError, Span

_SINK = ir.Sink()


class Body:
    """Reads the statements between a function's braces."""

    def __init__(self, symbols: Mapping[str, Symbol], files: dict[int, str], notes: list[Note]) -> None:
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
        self._opcodes: dict[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]] = {}

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

    def read(self, statements: Sequence[Statement]) -> None:
        """Take in all statements of the body, outer braces excluded."""
        labels = _labels_by_scope(statements)
        scope = 0
        self._declare_labels(labels[0])
        for statement in statements:
            match statement:
                case Operation():
                    self._instructions.append(self._instruction(statement))
                case LocMark():
                    self._locs.mark(statement)
                case LabelMark(name):
                    self.labels[str(self._resolved(name))] = len(self._instructions)
                case Open():
                    scope += 1
                    self.names.open()
                    self._declare_labels(labels[scope])
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

    def _declare_labels(self, words: list[Word]) -> None:
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
                if declarator.count is None:
                    self.registers.append((self.names.declare_register(name, type_), type_, None))
                else:
                    count = int(fold(declarator.count))
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
                self._files[int(setting.arguments[0], 0)] = setting.arguments[1][1:-1]
            case name:
                self._notes.append(Note(setting.start.span, f"unknown directive .{name.lstrip('?')}"))

    def _instruction(self, operation: Operation) -> Instruction:
        opcode, *modifiers = f"{operation.opcode}".split(".")
        key = (opcode, (*modifiers, *operation.detached))
        opcode, shared = self._opcodes.setdefault(key, key)
        guard = None
        if operation.guard is not None:
            register = self._resolved(operation.guard)
            if not isinstance(register, Register):
                _fail(operation.guard.span, f"the guard '{operation.guard}' is not a register")
            guard = Guard(register, operation.negated)
        operands = tuple([self._operand(expression, operation.opcode) for expression in operation.operands])
        return Instruction(opcode, shared, operands, guard, operation.start.span, self._locs.current())

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
        raise PtxSyntaxError(place.span, f"an operand of '{place}' is neither an operand nor a constant")

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
            _fail(place.span, f"an address of '{place}' is not a base plus a constant")
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


def _labels_by_scope(statements: Sequence[Statement]) -> list[list[Word]]:
    """The labels that each scope declares, scopes numbered in the order in which they open."""
    found: list[list[Word]] = [[]]
    inside = [0]
    for statement in statements:
        if isinstance(statement, LabelMark | Targets | Prototype):
            found[inside[-1]].append(statement.name)
        elif isinstance(statement, Open):
            inside.append(len(found))
            found.append([])
        elif isinstance(statement, Close):
            inside.pop()
    return found


def _fail(span: Span, message: str) -> NoReturn:
    raise PtxSyntaxError(span, message)
