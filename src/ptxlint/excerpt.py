"""The user's source files, when they can be found: the line to point at, and text cut to what a terminal holds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

from ptxlint.result import Diagnosis
from ptxlint.source import SourceLocation

_ASSEMBLY = re.compile(r"""\basm\b|^\s*["':]""")
"""A statement of inline assembly, or a further line of one."""

_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl")

SOURCE_LIMIT = 8 << 20
"""Bytes of a source file that are read to show a line of it."""


def source_file(location: SourceLocation, ptx: str) -> str | None:
    """The path of the source file, or None when it is not on this machine.

    A relative name is looked for in the working folder, then beside the PTX file and in the folders above it; so are
    the last folder and the name of a file that is not where it was, because all was compiled on another machine.
    """
    return next((path for path in _candidates(location.file, ptx) if os.path.isfile(path)), None)


def source_line(location: SourceLocation, ptx: str) -> str:
    """The text of the source line, or nothing when its file cannot be read."""
    path = source_file(location, ptx)
    lines = source_lines(path) if path else ()
    return lines[location.line - 1] if 0 < location.line <= len(lines) else ""


def split(location: SourceLocation, ptx: str) -> tuple[tuple[SourceLocation, ...], tuple[SourceLocation, ...]]:
    """The frames in two parts, each innermost first: the wrappers of an instruction, and the frames of interest.

    The second part is never empty; it begins with the line that a reader wants to see first. That is the innermost one
    in the file of the kernel, or, when the kernel is a header's, the innermost one that is not inline assembly.
    """
    frames = tuple(location.frames())
    is_header = os.path.splitext(frames[-1].file)[1] in _HEADERS
    of_interest = (
        number
        for number, frame in enumerate(frames)
        if (not _is_assembly(frame, ptx) if is_header else frame.file == frames[-1].file and frame.line)
    )
    first = next(of_interest, 0)
    return frames[:first], frames[first:]


def _is_assembly(frame: SourceLocation, ptx: str) -> bool:
    return _ASSEMBLY.search(source_line(frame, ptx)) is not None


@lru_cache(maxsize=64)
def source_lines(path: str) -> tuple[str, ...]:
    """The lines of a source file as far as they are read; none when it cannot be."""
    if not os.access(path, os.R_OK):
        return ()
    with open(path, encoding="utf-8", errors="replace") as file:
        return tuple(file.read(SOURCE_LIMIT).split("\n"))


def anchor(finding: Diagnosis, ptx: str) -> tuple[str, int, int]:
    """Where a review tool hangs the finding: file, line and column.

    The innermost source frame of interest whose file lies in the working folder, as a path relative to it, else the
    PTX line.
    """
    wrappers, frames = split(finding.source, ptx) if finding.source else ((), ())
    for frame in (*frames, *wrappers):
        path = source_file(frame, ptx)
        if path and frame.line and not (near := os.path.relpath(path)).startswith(os.pardir):
            return near.replace(os.sep, "/"), frame.line, max(frame.column, 1)
    return ptx.removeprefix("./"), finding.line, finding.column


def cropped(text: str, column: int, width: int) -> tuple[str, int]:
    """At most `width` columns of the text around the column, tabs as blanks, and where the column is in that.

    Columns count from 1. A column in the indentation means the first character after it.
    """
    flat = "".join(character if character.isprintable() else " " for character in text.rstrip())
    column = min(max(column, len(flat) - len(flat.lstrip()) + 1), len(flat) + 1)
    start = max(0, min(column - width * 2 // 3, len(flat) - width))
    shown = flat[start : start + width]
    if start:
        shown = "..." + shown[3:]
    if start + width < len(flat):
        shown = shown[:-3] + "..."
    return shown, column - start


def _candidates(name: str, ptx: str) -> Iterator[str]:
    yield name
    if os.path.isabs(name):
        name = os.path.join(*name.split(os.sep)[-2:])
    folder = os.path.dirname(os.path.abspath(ptx))
    while True:
        yield os.path.join(folder, name)
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above
