"""From what the user names to PTX text: files, folders and standard input, with a clear word on what cannot be read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from ptxlint import compiler_caches
from ptxlint.classes import dataclass
from ptxlint.containers import CONTAINERS
from ptxlint.unreadable import UnreadableError

STDIN = "-"
INSIDE = "!"
"""Stands between a file and what is inside it."""
SOURCES = (".cu", ".cuh")
"""What is compiled before it is linted."""
SIZE_LIMIT = 64 << 20
"""Bytes of PTX that are read without being asked to; the largest module seen in the wild has 60 MB."""

_MAGIC = {
    b"BC\xc0\xde": "LLVM bitcode",
    b"\x1f\x8b": "gzip data",
    b"\xfd7zXZ": "xz data",
    b"\x28\xb5\x2f\xfd": "zstd data",
}


def is_ptx(path: str) -> bool:
    """Whether the file is called as PTX is."""
    return path.endswith(".ptx")


@dataclass(frozen=True, slots=True)
class Unit:
    """One PTX module: what reports call it, and its text."""

    name: str
    text: str


def expand(paths: Iterable[str], is_included: Callable[[str], bool] = is_ptx) -> Iterator[str]:
    """The files that the paths stand for, each once and sorted.

    A folder stands for the files below it that are included, a glob that the shell has not expanded for what it
    matches. What stands for nothing stands for itself, so that reading it says what is wrong.
    """
    seen: set[str] = set()
    for path in paths:
        for file in _meant(path, is_included):
            if file not in seen:
                seen.add(file)
                yield file


def units(path: str, limit: int = SIZE_LIMIT, flags: Sequence[str] = (), stdin_name: str = "<stdin>") -> Iterator[Unit]:
    """The PTX modules that an input holds: one for PTX text, any number for a library, one for what nvcc compiles.

    `limit` is in bytes for each module; `flags` go to nvcc. Raises UnreadableError.
    """
    try:
        if path == STDIN:
            yield Unit(stdin_name, decode(_limited(sys.stdin.buffer.read(limit + 1), limit)))
        elif _head(path).startswith(CONTAINERS):
            yield from _extracted(path, limit)
        elif path.endswith(SOURCES):
            yield Unit(f"{path}{INSIDE}ptx", decode(_limited(_compiled(path, flags), limit)))
        else:
            with open(path, "rb") as file:
                yield Unit(path, decode(_limited(file.read(limit + 1), limit)))
    except OSError as error:
        raise UnreadableError(_reason(error)) from error


def read(path: str, limit: int = SIZE_LIMIT) -> str:
    """The text of an input that holds one module. Raises UnreadableError."""
    found = list(units(path, limit))
    if len(found) > 1:
        names = ", ".join(unit.name for unit in found)
        raise UnreadableError(f"holds {len(found)} modules ({names}); take them out with `ptxlint extract`")
    return found[0].text


def decode(data: bytes) -> str:
    """The text that the bytes hold. Raises UnreadableError when they hold none."""
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            raise UnreadableError(f"is {kind}, not PTX text")
    text = data.rstrip(b"\0")
    if b"\0" in text:
        raise UnreadableError("is binary, not PTX text")
    if not text.strip():
        raise UnreadableError("is empty")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise UnreadableError(f"is not UTF-8 text: byte 0x{text[error.start]:02x}", line, column) from error


def _meant(path: str, is_included: Callable[[str], bool]) -> list[str]:
    if path == STDIN or os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        return _below(path, is_included)
    if not any(magic in path for magic in "*?["):
        return [path]
    from glob import glob

    matches = sorted(glob(path, recursive=True))
    return [file for match in matches for file in _meant(match, is_included)] or [path]


def _below(folder: str, is_included: Callable[[str], bool]) -> list[str]:
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [path for name in names if is_included(path := os.path.join(root, name))]
    return sorted(found) or [folder]


def _extracted(path: str, limit: int) -> Iterator[Unit]:
    from ptxlint.binary import extract

    count = 0
    for module in extract(path, limit):
        count += 1
        yield Unit(f"{path}{INSIDE}{module.name}", decode(_limited(module.data, limit)))
    if not count:
        raise UnreadableError("holds no PTX")


def _compiled(path: str, flags: Sequence[str]) -> bytes:
    if compiler_caches.is_kernel(path):
        return compiler_caches.ptx(path, flags)
    from ptxlint.compile import compiled

    return compiled(path, flags)


def _head(path: str) -> bytes:
    if os.path.isdir(path):
        raise UnreadableError("is a folder without any .ptx file; --extend-include adds other files")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UnreadableError("is not a regular file")
    with open(path, "rb") as file:
        return file.read(16)


def _limited(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise UnreadableError(f"is larger than {limit >> 20} MiB; raise --max-size to read it")
    return data


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied"
    return f"cannot be read: {error.strerror or error}"
