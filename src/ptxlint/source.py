"""Positions in PTX text, and the user's source positions that `.loc` attaches to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ptxlint.classes import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Where a piece of PTX begins: line and column, both from 1."""

    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Loc:
    """One `.loc` as written: a `.file` index, a line and a column from 1, and the call that was inlined here.

    Line 0 means that the compiler gave no line. `function` is the label (plus byte offset) of the name in
    `.section .debug_str`; None when the directive has no `function_name`.
    Source: PTX ISA, *Debugging Directives: .loc*.
    """

    file: int
    line: int
    column: int
    function: tuple[str, int] | None = None
    inlined_at: Loc | None = None


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in the user's source: innermost frame, with the chain of calls that were inlined into it.

    `function` is demangled; None where the PTX names no function.
    """

    file: str
    line: int
    column: int
    function: str | None = None
    inlined_at: SourceLocation | None = None

    def frames(self) -> Iterator[SourceLocation]:
        """This frame, then its callers, innermost first."""
        frame: SourceLocation | None = self
        while frame is not None:
            yield frame
            frame = frame.inlined_at

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def located(
    loc: Loc, files: Mapping[int, str], strings: Mapping[tuple[str, int], str], readable: Callable[[str], str]
) -> SourceLocation:
    """Where a `.loc` points, with its chain of callers.

    `files` and `strings` are the module's; `readable` turns a mangled name into one for people. A file or function
    that the module does not name is `?` or None.
    """
    frames = []
    frame: Loc | None = loc
    while frame is not None:
        frames.append(frame)
        frame = frame.inlined_at
    location: SourceLocation | None = None
    for frame in reversed(frames):
        name = strings.get(frame.function) if frame.function is not None else None
        function = readable(name) if name else None
        location = SourceLocation(files.get(frame.file, "?"), frame.line, frame.column, function, location)
    assert location is not None
    return location


class PtxSyntaxError(Exception):
    """The user's PTX is not PTX: where, and what was expected instead."""

    def __init__(self, span: Span, message: str) -> None:
        super().__init__(f"{span}: {message}")
        self.span = span
        self.message = message
