"""Lines of text to show beside a finding: the user's source when it can be read, cut to what a terminal holds."""

from __future__ import annotations

import os
from functools import lru_cache

from ptxlint.source import SourceLocation

SOURCE_LIMIT = 8 << 20
"""Bytes of a source file that are read to show a line of it."""


def source_line(location: SourceLocation, ptx: str) -> str:
    """The text of the source line, or nothing when its file cannot be read.

    A relative name is looked for in the working folder, then beside the PTX file.
    """
    for folder in ("", os.path.dirname(ptx)):
        lines = _lines(os.path.join(folder, location.file))
        if 0 < location.line <= len(lines):
            return lines[location.line - 1]
    return ""


def cropped(text: str, column: int, width: int) -> tuple[str, int]:
    """At most `width` columns of the text around the column, tabs as blanks, and where the column is in that.

    Columns count from 1. Indentation is kept unless it pushes the column out of sight.
    """
    flat = "".join(character if character.isprintable() else " " for character in text.rstrip())
    column = min(max(column, 1), len(flat) + 1)
    column = max(column, len(flat) - len(flat.lstrip()) + 1) if flat.strip() else column
    start = max(0, column - width * 2 // 3) if len(flat) > width else 0
    end = start + width
    shown = flat[start:end]
    if start:
        shown = "..." + shown[3:]
    if end < len(flat):
        shown = shown[:-3] + "..."
    return shown, column - start


@lru_cache(maxsize=64)
def _lines(path: str) -> tuple[str, ...]:
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return ()
    with open(path, encoding="utf-8", errors="replace") as file:
        return tuple(file.read(SOURCE_LIMIT).splitlines())
