"""Syntax nodes -> IR of one module: names resolved, scopes flattened, constants folded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ptxlint.ir import Directive, Function, Module, Note, Symbol, Variable
from ptxlint.parse.body import Body, Entry, Opcodes
from ptxlint.parse.constants import integer, number
from ptxlint.parse.nodes import (
    Close,
    Declaration,
    Header,
    LabelMark,
    LocMark,
    Open,
    Operation,
    Prototype,
    Setting,
    Statement,
    Targets,
    Word,
)
from ptxlint.parse.variables import variables
from ptxlint.source import PtxSyntaxError, Span


class ModuleBuilder:
    """Collects the statements of a file; `finish` yields the module."""

    def __init__(self) -> None:
        self._settings: dict[str, Setting] = {}
        self._symbols: dict[str, Symbol] = {}
        self._functions: list[Function] = []
        self._variables: list[Variable] = []
        self._files: dict[int, str] = {}
        self._strings: dict[tuple[str, int], str] = {}
        self._directives: list[Directive] = []
        self._notes: list[Note] = []
        self._opcodes = Opcodes()
        self._header: Header | None = None
        self._depth = 0
        self._entries: list[Entry] = []
        self._scopes = [0]
        self._labels: list[list[Word]] = [[]]

    def read(self, statements: Iterable[Statement]) -> None:
        """Take in statements, in source order."""
        for statement in statements:
            self.take(statement)

    def add(self, entry: Entry, span: Span) -> None:
        """Take in what only a body may hold."""
        if self._depth == 0:
            raise PtxSyntaxError(span, "this stands outside of any function; expected a directive")
        self._entries.append(entry)

    @property
    def entries(self) -> list[Entry] | None:
        """Where the open body collects its statements; None outside of one."""
        return self._entries if self._depth else None

    @property
    def depth(self) -> int:
        """How many braces are open."""
        return self._depth

    def take(self, statement: Statement) -> None:
        """Take in the next statement."""
        match statement:
            case LocMark(line, column):
                self.add(statement, Span(line, column))
            case Operation(start):
                self.add(statement, start.span)
            case Open(start):
                self._open(start)
            case Close(start):
                self._close(start)
            case Header(start):
                if self._depth:
                    raise PtxSyntaxError(start.span, "a function begins before the last one ended; expected '}'")
                self._settle()
                self._header = statement
            case LabelMark(name) | Targets(name) | Prototype(name):
                self.add(statement, name.span)
                self._labels[self._scopes[-1]].append(name)
            case Setting() | Declaration() if self._depth:
                self._entries.append(statement)
            case Setting():
                self._settle()
                self.setting(statement)
            case Declaration():
                self._settle()
                self._variables += self._declare_variables(statement)

    def _open(self, start: Word) -> None:
        if self._depth == 0:
            if self._header is None:
                raise PtxSyntaxError(start.span, "'{' is not expected here; expected a directive")
            self._entries = []
            self._labels = [[]]
            self._scopes = [0]
        else:
            self._scopes.append(len(self._labels))
            self._labels.append([])
            self._entries.append(Open(start))
        self._depth += 1

    def _close(self, start: Word) -> None:
        if self._depth == 0:
            raise PtxSyntaxError(start.span, "'}' closes nothing")
        self._depth -= 1
        if self._depth:
            self._scopes.pop()
            self._entries.append(Close(start))
        else:
            self._define()

    def _settle(self) -> None:
        """A header that no body followed was a declaration."""
        if self._header is not None:
            self._functions.append(self._function(self._header, None))
            self._header = None

    def _define(self) -> None:
        header = self._header
        assert header is not None
        self._header = None
        self._symbols.setdefault(str(header.name), Symbol(str(header.name)))
        body = Body(self._symbols, self._files, self._notes, self._opcodes)
        body.parameters((*header.results, *header.parameters))
        body.read(self._entries, self._labels)
        self._entries = []
        self._functions.append(self._function(header, body))

    def finish(self) -> Module:
        """The module. Raises PtxSyntaxError when it does not begin as one."""
        self._settle()
        version = self._settings.get("version")
        target = self._settings.get("target")
        if version is None:
            raise PtxSyntaxError(Span(1), "no '.version' directive: this is not a PTX module")
        if target is None:
            raise PtxSyntaxError(version.start.span, "no '.target' directive follows '.version'")
        size = self._settings.get("address_size")
        major, _, minor = version.arguments[0].partition(".")
        if not (major.isdigit() and minor.isdigit()):
            raise PtxSyntaxError(version.start.span, "'.version' takes a number such as 9.0")
        return Module(
            version=(int(major), int(minor)),
            target=tuple(map(str, target.arguments)),
            address_size=integer(size.arguments[0]) if size else 32,
            functions=tuple(self._functions),
            variables=tuple(self._variables),
            files=self._files,
            strings=self._strings,
            directives=tuple(self._directives),
            notes=tuple(self._notes),
        )

    def setting(self, setting: Setting) -> None:
        """Take in a directive at module level."""
        match setting.name:
            case "version" | "target" | "address_size":
                if setting.name in self._settings:
                    raise PtxSyntaxError(setting.start.span, f"a second '.{setting.name}' directive")
                self._settings[setting.name] = setting
            case "file":
                self._files[integer(setting.arguments[0])] = setting.arguments[1][1:-1]
            case name:
                if name == "section" and setting.arguments[0] == ".debug_str":
                    self._strings.update(_debug_strings(setting.arguments[-1]))
                if name.startswith("?"):
                    self._notes.append(Note(setting.start.span, f"unknown directive .{name[1:]}"))
                self._directives.append(
                    Directive(name.lstrip("?"), tuple(map(str, setting.arguments)), setting.start.span)
                )

    def _function(self, header: Header, body: Body | None) -> Function:
        self._symbols.setdefault(header.name, Symbol(str(header.name)))
        kind, *settings = header.settings
        return Function(
            name=str(header.name),
            is_entry=kind.name == "entry",
            parameters=tuple(variable for item in header.parameters for variable in variables(item)),
            results=tuple(variable for item in header.results for variable in variables(item)),
            directives=tuple(
                Directive(item.name, tuple(map(str, item.arguments)), item.start.span) for item in settings
            ),
            variables=tuple(body.variables) if body else (),
            body=body.instructions() if body else None,
            labels=body.labels if body else {},
            tables=body.tables if body else {},
            prototypes=body.prototypes if body else {},
            registers=tuple(body.registers) if body else (),
            linkage=" ".join(header.linkage) or None,
            span=header.start.span,
            pragmas=body.pragmas if body else {},
        )

    def _declare_variables(self, declaration: Declaration) -> list[Variable]:
        found = variables(declaration)
        for variable in found:
            self._symbols[variable.name] = Symbol(variable.name)
        return found


def _debug_strings(data: str) -> dict[tuple[str, int], str]:
    """The strings of `.section .debug_str`, keyed by label and offset in bytes."""
    strings: dict[tuple[str, int], str] = {}
    for name, content in re.findall(r"([\w$]+)\s*:([^:]*)(?=\s[\w$]+\s*:|\})", data, re.ASCII):
        values = [_byte(value) for value in re.findall(r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d+)", content)]
        offset = 0
        for text in bytes(values).split(b"\0"):
            if text:
                strings[name, offset] = text.decode("utf-8", "replace")
            offset += len(text) + 1
    return strings


@lru_cache(maxsize=1000)
def _byte(word: str) -> int:
    return int(number(word)) & 0xFF
