"""Results of earlier runs, by the file's content, what was looked for, and the version of everything that looked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING

from ptxlint import __version__, storage
from ptxlint.registry import Selection
from ptxlint.result import FileReport

if TYPE_CHECKING:
    from ptxlint.lint import Options
    from ptxlint.rule import Rule

SUFFIX = ".ptxlint"
PARSER = ("grammar-", "shapes-")
"""How the files begin that the parser keeps in the same folder."""
PACKAGES = ("ptxlint", "ptxlint.grammar", "ptxlint.rules")


def key(text: str, options: Options) -> str:
    """The name of the entry for a text under those options."""
    looked_for = (
        _selected(options.selected),
        options.launch,
        options.launches,
        options.known,
        sorted(options.severities.items()),
        [(pattern, sorted(names)) for pattern, names in options.kernel_ignores],
    )
    digest = blake2b(digest_size=20)
    for part in (__version__, _code(), repr(looked_for), text):
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()


def load(name: str, path: str) -> FileReport | None:
    """The stored report under the name that the file has now; None when there is none that can be read."""
    import pickle

    try:
        with open(storage.path(name + SUFFIX), "rb") as file:
            report = pickle.load(file)
    except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, TypeError):
        return None
    return replace(report, path=path) if isinstance(report, FileReport) else None


def store(name: str, report: FileReport) -> None:
    """Keep a report, unless the folder cannot be written."""
    import pickle

    storage.write_bytes(name + SUFFIX, pickle.dumps(report))


def entries() -> Iterator[str]:
    """The paths of all entries, of other versions too, what interrupted runs left, and what the parser keeps."""
    if os.path.isdir(storage.folder()):
        with os.scandir(storage.folder()) as found:
            yield from (entry.path for entry in found if SUFFIX in entry.name or entry.name.startswith(PARSER))


def _selected(selected: tuple[type[Rule], ...] | Selection) -> str:
    if isinstance(selected, Selection):
        return repr(replace(selected, without=frozenset())) + repr(sorted(selected.without))
    return repr([f"{rule.__module__}.{rule.__name__}" for rule in selected])


@cache
def _code() -> str:
    """Sizes and times of all files that a result depends on, rules of other packages included."""
    from ptxlint import registry

    folders = {os.path.dirname(str(import_module(package).__file__)) for package in PACKAGES}
    folders |= set(registry.homes())
    return repr(sorted(_stamp(path) for each in folders for path in _sources(each)))


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path)
            elif entry.name.endswith((".py", ".lark")):
                yield entry


def _stamp(entry: os.DirEntry[str]) -> tuple[str, int, int]:
    status = entry.stat()
    return entry.path, status.st_size, status.st_mtime_ns
