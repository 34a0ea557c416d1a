"""Text -> IR, statement by statement: each is looked up by its shape, and new shapes are asked of the grammar."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ptxlint.ir import Module
from ptxlint.parse.body import Pending
from ptxlint.parse.build import ModuleBuilder
from ptxlint.parse.shapes import BLANK, WORDS, Form, IrregularError, Shape, interleave, opaque
from ptxlint.parse.store import ShapeStore
from ptxlint.source import PtxSyntaxError, Span

_BLOCK = 1 << 18
_LONGEST_BLOCK = 1 << 22
_LONGEST_SHAPE = 4000

_UNFINISHED = "\1"
"""Follows the last shape of a file, whose statements end without `;`."""

_shapes = ShapeStore()


def scan(text: str) -> Module:
    """The module that a text without comments holds. Raises PtxSyntaxError."""
    if BLANK in text:
        raise PtxSyntaxError(_span(text, text.index(BLANK)), "a NUL character: this is not PTX text")
    with _collector_paused():
        try:
            module = _scanned(text)
        except PtxSyntaxError:
            if len(text) <= _BLOCK:
                _explain(text)
            raise
    _shapes.settle()
    return module


def _scanned(text: str) -> Module:
    scanner = _Scanner()
    for block in _blocks(text):
        scanner.read(block)
    return scanner.finish(text)


def _explain(text: str) -> None:
    """Let the grammar read it all: where the error is one of syntax, it knows best what was expected there."""
    from ptxlint.parse.syntax import read_module

    read_module(text)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """The IR holds no cycles, and to let the collector walk it over and over costs a third of the time.

    Freezing and unfreezing moves all new objects to the oldest generation without a walk.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _blocks(text: str) -> Iterator[str]:
    """The text in pieces of bounded length, each ending with a `;` that ends a statement.

    A longer piece is a single statement, or what stands after the last one.
    """
    start = 0
    while start < len(text):
        end = text.find(";\n", start + _BLOCK) + 1
        if end == 0 and len(text) - start <= _LONGEST_BLOCK:
            end = len(text)
        if end == 0 or end - start > _LONGEST_BLOCK:
            end = _last_statement(text, start) or text.find(";", start + _BLOCK) + 1 or len(text)
        yield text[start:end]
        start = end


def _last_statement(text: str, start: int) -> int:
    """Where the last statement ends that lies within a block from there; 0 when there is none."""
    end = min(start + _BLOCK, len(text))
    while (semicolon := text.rfind(";", start, end)) >= 0:
        if text.count('"', text.rfind("\n", start, semicolon) + 1 or start, semicolon) % 2 == 0:
            return semicolon + 1
        end = semicolon
    return 0


def _span(text: str, offset: int) -> Span:
    before = text[:offset]
    return Span(before.count("\n") + 1, offset - before.rfind("\n"))


class _Chunk(NamedTuple):
    """A statement with its words and place; `column` counts the letters before it on its line."""

    blanked: str
    words: list[str]
    base: int
    line: int
    column: int
    end: str

    def text(self, shape: Shape) -> str:
        """The statement as it stands in the file."""
        inside = self.words[self.base : self.base + shape.blanks]
        return interleave(self.blanked.split(BLANK), inside) + self.end

    def entry(self, form: Form) -> Pending:
        """Its operation, as bodies take it."""
        column = form.place(self.words, self.base, self.column) if form.place is not None else form.column
        return form, self.words, self.base, self.line + form.line, column


class _Columns:
    """How many letters stand before a chunk on its line, asked for chunk after chunk of a block."""

    def __init__(self, chunks: list[str], words: list[str], column: int) -> None:
        self._chunks = chunks
        self._words = words
        self._index = 0
        self._column = column

    def before(self, index: int, base: int) -> int:
        """The letters before a chunk whose words begin at `base`."""
        first, start = index, base
        while first > self._index:
            first -= 1
            start -= self._chunks[first].count(BLANK)
            if "\n" in self._chunks[first]:
                break
        text = interleave(";".join([*self._chunks[first:index], ""]).split(BLANK), self._words[start:base])
        newline = text.rfind("\n")
        self._column = len(text) - newline - 1 if newline >= 0 else self._column + len(text)
        self._index = index
        return self._column


class _Scanner:
    """Reads block after block; a block begins at `_line`, with `_column` letters before it on that line."""

    def __init__(self) -> None:
        self._builder = ModuleBuilder()
        self._line = 1
        self._column = 0
        self._held: tuple[str, int, int] | None = None

    def read(self, block: str) -> None:
        """Take in a block."""
        if len(block) > _LONGEST_BLOCK:
            self._read_alone(block)
            return
        parts = WORDS.split(block)
        words = parts[1::2]
        chunks = BLANK.join(parts[0::2]).split(";")
        del parts
        columns = _Columns(chunks, words, self._column)
        known = _shapes.met.get
        entries = self._builder.entries
        base, line = 0, self._line
        last = len(chunks) - 1
        for index, blanked in enumerate(chunks):
            shape = known(blanked) if index < last else None
            if shape is None:
                shape = _shape(blanked, words, base, ";" if index < last else "")
            plain = shape.plain
            if plain is not None and entries is not None:
                form, lines, column, prefix = plain
                if prefix is not None:
                    entries += prefix(words, base, line, 0)
                entries.append((form, words, base, line + lines, column))
                line += shape.newlines
            elif index < last or blanked.strip():
                before = columns.before(index, base) if shape.needs_column else 0
                line += self._take(shape, _Chunk(blanked, words, base, line, before, ";" if index < last else ""))
                entries = self._builder.entries
            base += shape.blanks
        self._column = columns.before(last + 1, base) - 1
        self._line = line

    def _read_alone(self, block: str) -> None:
        """Take in a long statement without looking at its words."""
        end = ";" if block.endswith(";") else ""
        self._line += self._ask_grammar(block, _Chunk(block, [], 0, self._line, self._column, end))
        newline = block.rfind("\n")
        self._column = len(block) - newline - 1 if newline >= 0 else self._column + len(block)

    def finish(self, text: str) -> Module:
        """The module, once every block is taken in."""
        if self._held is not None or self._builder.depth:
            raise PtxSyntaxError(_span(text, len(text)), "the file ends inside a function; expected '}'")
        return self._builder.finish()

    def _take(self, shape: Shape, chunk: _Chunk) -> int:
        """Hand the statements of a chunk to the builder; how many lines it took."""
        builder = self._builder
        if self._held is None and (shape.prefix is not None or shape.form is not None):
            try:
                statements = shape.prefix(chunk.words, chunk.base, chunk.line, chunk.column) if shape.prefix else ()
            except IrregularError:
                pass
            else:
                for statement in statements:
                    builder.take(statement)
                if shape.form is not None:
                    entry = chunk.entry(shape.form)
                    builder.add(entry, Span(entry[3], entry[4]))
                return shape.lines(chunk.words, chunk.base)
        return self._ask_grammar(chunk.text(shape), chunk)

    def _ask_grammar(self, text: str, chunk: _Chunk) -> int:
        from ptxlint.parse.syntax import IncompleteError, read_fragment

        newlines = text.count("\n")
        line, column = chunk.line, chunk.column
        if self._held is not None:
            held, line, column = self._held
            text = held + text
            self._held = None
        try:
            statements = read_fragment(text, line, column + 1)
        except IncompleteError:
            if not chunk.end:
                raise
            self._held = text, line, column
        else:
            for statement in statements:
                self._builder.take(statement)
        return newlines


def _shape(blanked: str, words: list[str], base: int, end: str) -> Shape:
    """The shape, learned now unless it is known; kept unless it is too long to be met again."""
    key = blanked if end else blanked + _UNFINISHED
    shape = _shapes.get(key)
    if shape is not None:
        return shape
    if len(blanked) > _LONGEST_SHAPE:
        return opaque(blanked)
    from ptxlint.parse.learn import learn
    from ptxlint.parse.syntax import read_fragment

    inside = words[base : base + blanked.count(BLANK)]
    try:
        statements = read_fragment(interleave(blanked.split(BLANK), inside) + end)
    except PtxSyntaxError:
        return opaque(blanked)
    return _shapes.add(key, learn(blanked, inside, statements))
