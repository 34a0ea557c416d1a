"""Syntax nodes -> IR of one module: names resolved, scopes flattened, constants folded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptxlint.ir import Directive, Function, Module, Note, Symbol, Variable
from ptxlint.parse.body import Body
from ptxlint.parse.nodes import (
    Close,
    Declaration,
    Header,
    Open,
    Setting,
    Statement,
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

    def read(self, statements: Sequence[Statement]) -> None:
        """Take in all statements of a file."""
        index = 0
        while index < len(statements):
            statement = statements[index]
            index += 1
            match statement:
                case Header():
                    following = statements[index] if index < len(statements) else None
                    if isinstance(following, Open):
                        end = _closing(statements, index)
                        self.define(statement, statements[index + 1 : end])
                        index = end + 1
                    else:
                        self.declare(statement)
                case Setting():
                    self.setting(statement)
                case Declaration():
                    self._variables += self._declare_variables(statement)
                case _:
                    raise AssertionError(statement)

    def finish(self) -> Module:
        """The module. Raises PtxSyntaxError when it does not begin as one."""
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
            target=target.arguments,
            address_size=int(size.arguments[0], 0) if size else 32,
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
                self._files[int(setting.arguments[0], 0)] = setting.arguments[1][1:-1]
            case "DWARF":
                pass
            case name:
                if name == "section" and setting.arguments[0] == ".debug_str":
                    self._strings.update(_debug_strings(setting.arguments[-1]))
                if name.startswith("?"):
                    self._notes.append(Note(setting.start.span, f"unknown directive .{name[1:]}"))
                self._directives.append(Directive(name.lstrip("?"), setting.arguments, setting.start.span))

    def declare(self, header: Header) -> None:
        """Take in a function without a body."""
        self._functions.append(self._function(header, None))

    def define(self, header: Header, body: Sequence[Statement]) -> None:
        """Take in a function with its body."""
        self._symbols.setdefault(header.name, Symbol(str(header.name)))
        reader = Body(self._symbols, self._files, self._notes)
        reader.parameters((*header.results, *header.parameters))
        reader.read(body)
        self._functions.append(self._function(header, reader))

    def _function(self, header: Header, body: Body | None) -> Function:
        self._symbols.setdefault(header.name, Symbol(str(header.name)))
        kind, *settings = header.settings
        return Function(
            name=str(header.name),
            is_entry=kind.name == "entry",
            parameters=tuple(variable for item in header.parameters for variable in variables(item)),
            results=tuple(variable for item in header.results for variable in variables(item)),
            directives=tuple(Directive(item.name, item.arguments, item.start.span) for item in settings),
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


def _closing(statements: Sequence[Statement], opened: int) -> int:
    depth = 0
    for index in range(opened, len(statements)):
        statement = statements[index]
        if isinstance(statement, Open):
            depth += 1
        elif isinstance(statement, Close):
            depth -= 1
            if depth == 0:
                return index
    raise AssertionError("the grammar balances braces")


def _debug_strings(data: str) -> dict[tuple[str, int], str]:
    """The strings of `.section .debug_str`, keyed by label and offset in bytes."""
    strings: dict[tuple[str, int], str] = {}
    for name, content in re.findall(r"([\w$]+)\s*:([^:]*)(?=\s[\w$]+\s*:|\})", data, re.ASCII):
        values = [int(value, 0) & 0xFF for value in re.findall(r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d+)", content)]
        offset = 0
        for text in bytes(values).split(b"\0"):
            if text:
                strings[name, offset] = text.decode("utf-8", "replace")
            offset += len(text) + 1
    return strings
