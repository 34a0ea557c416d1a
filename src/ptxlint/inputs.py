"""From what the user names to PTX text: files, folders and standard input, with a clear word on what cannot be read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ptxlint.result import Problem

STDIN = "-"
SIZE_LIMIT = 64 << 20
"""Bytes of PTX that are read without being asked to; the largest module seen in the wild has 60 MB."""

_MAGIC = {
    b"\x7fELF": "an ELF file (object, library, executable or cubin)",
    b"\x50\xed\x55\xba": "a fatbin",
    b"PK\x03\x04": "a zip archive or wheel",
    b"!<arch>\n": "a static archive",
    b"BC\xc0\xde": "LLVM bitcode",
    b"\x1f\x8b": "gzip data",
}


class UnreadableError(Exception):
    """An input that gives no text, and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def expand(paths: Iterable[str]) -> Iterator[str]:
    """The files that the paths stand for, each once: a folder stands for the `*.ptx` files below it, sorted.

    A folder without any, and a path that is not there, stand for themselves, so that reading them says what is wrong.
    """
    seen: set[str] = set()
    for path in paths:
        for file in _below(path) if path != STDIN and os.path.isdir(path) else [path]:
            if file not in seen:
                seen.add(file)
                yield file


def read(path: str, limit: int = SIZE_LIMIT) -> str:
    """The text of the file, or of standard input for `-`. Raises UnreadableError."""
    try:
        data = _bytes(path, limit)
    except OSError as error:
        raise UnreadableError(Problem(_reason(error))) from error
    if len(data) > limit:
        raise UnreadableError(Problem(f"is larger than {limit >> 20} MiB; raise --max-size to read it"))
    return decode(data)


def decode(data: bytes) -> str:
    """The text that the bytes hold. Raises UnreadableError when they hold none."""
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            raise UnreadableError(Problem(f"is {kind}, not PTX text"))
    text = data.rstrip(b"\0")
    if b"\0" in text:
        raise UnreadableError(Problem("is binary, not PTX text"))
    if not text.strip():
        raise UnreadableError(Problem("is empty"))
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise UnreadableError(Problem(f"is not UTF-8 text: byte 0x{text[error.start]:02x}", line, column)) from error


def _below(folder: str) -> list[str]:
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(root, name) for name in names if name.endswith(".ptx")]
    return sorted(found) or [folder]


def _bytes(path: str, limit: int) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read(limit + 1)
    if os.path.isdir(path):
        raise UnreadableError(Problem("is a folder without any .ptx file"))
    if not Path(path).is_file() and Path(path).exists():
        raise UnreadableError(Problem("is not a regular file"))
    with open(path, "rb") as file:
        return file.read(limit + 1)


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied"
    return f"cannot be read: {error.strerror or error}"
