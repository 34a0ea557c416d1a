"""Results of earlier runs, by the content of the file, what was looked for, and the version of everything that looked.

Entries are written beside the final name and moved there, so that runs side by side do not disturb each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from importlib import import_module
from typing import TYPE_CHECKING

from ptxlint import __version__
from ptxlint.registry import Selection
from ptxlint.result import FileReport

if TYPE_CHECKING:
    from ptxlint.lint import Options
    from ptxlint.rule import Rule

SUFFIX = ".ptxlint"
PACKAGES = ("ptxlint", "ptxlint.grammar", "ptxlint.rules")


def folder() -> str:
    """Where the entries are: `PTXLINT_CACHE_DIR`, or the user's cache folder."""
    if chosen := os.environ.get("PTXLINT_CACHE_DIR"):
        return chosen
    from platformdirs import user_cache_dir

    return user_cache_dir("ptxlint", appauthor=False)


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
        with open(os.path.join(folder(), name + SUFFIX), "rb") as file:
            report = pickle.load(file)
    except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, TypeError):
        return None
    return replace(report, path=path) if isinstance(report, FileReport) else None


def store(name: str, report: FileReport) -> None:
    """Keep a report, unless the folder cannot be written."""
    import pickle

    path = os.path.join(folder(), name + SUFFIX)
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(folder(), exist_ok=True)
        with open(temporary, "wb") as file:
            pickle.dump(report, file)
        os.replace(temporary, path)
    except OSError:
        return


def entries() -> Iterator[str]:
    """The paths of all entries, of other versions too, and of what interrupted runs left."""
    if os.path.isdir(folder()):
        with os.scandir(folder()) as found:
            yield from (entry.path for entry in found if SUFFIX in entry.name)


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
