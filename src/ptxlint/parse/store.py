"""What the grammar has made of shapes, and its own tables, kept in the user's cache folder between runs.

All of it can be worked out again: a folder that cannot be read or written only costs time.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from ptxlint.parse.shapes import Recipe, Shape, opaque, revive

_DIGEST = 16
_MOST = 4000
_ENOUGH = 64
_SOURCES = ("learn.py", "nodes.py", "shapes.py", "syntax.py")


def folder() -> str:
    """Where the files are: `PTXLINT_CACHE_DIR`, or the user's cache folder."""
    if chosen := os.environ.get("PTXLINT_CACHE_DIR"):
        return chosen
    from platformdirs import user_cache_dir

    return user_cache_dir("ptxlint", appauthor=False)


@cache
def version() -> str:
    """Changes with the grammar, with the code that reads shapes, and with the Python that runs it."""
    digest = blake2b(sys.version.encode(), digest_size=_DIGEST)
    digest.update(files("ptxlint.grammar").joinpath("ptx.lark").read_bytes())
    for name in _SOURCES:
        digest.update(files("ptxlint.parse").joinpath(name).read_bytes())
    return digest.hexdigest()


class ShapeStore:
    """Shapes by their blanked text: those `met` in this process, then those of the file."""

    def __init__(self) -> None:
        self.met: dict[str, Shape] = {}
        self._stored: dict[str, bytes] | None = None
        self._new: dict[str, bytes] = {}

    def get(self, blanked: str) -> Shape | None:
        """The shape, if it is known."""
        shape = self.met.get(blanked)
        if shape is None:
            if self._stored is None:
                self._stored = _read()
                atexit.register(self.save)
            recipe = self._stored.get(blanked)
            if recipe is not None:
                shape = self.met[blanked] = _revived(blanked, recipe)
        return shape

    def add(self, blanked: str, recipe: Recipe | None) -> Shape:
        """Keep what was learned; None for a shape that the grammar must read every time."""
        if len(self.met) >= 5 * _MOST:
            self.met.clear()
        stored = marshal.dumps(tuple(recipe) if recipe is not None else None)
        self._new[blanked] = stored
        shape = self.met[blanked] = _revived(blanked, stored)
        return shape

    def settle(self) -> None:
        """Write to the file when enough is new."""
        if len(self._new) >= _ENOUGH:
            self.save()

    def save(self) -> None:
        """Add what is new to the file; runs side by side lose at most each other's additions."""
        if not self._new:
            return
        merged = {**_read(), **self._new}
        self._new = {}
        for blanked in list(merged)[: max(0, len(merged) - _MOST)]:
            del merged[blanked]
        content = marshal.dumps(merged)
        write(_path(), lambda name: _write(name, blake2b(content, digest_size=_DIGEST).digest() + content))


def write(path: str, make: Callable[[str], object]) -> None:
    """Let a file be made under another name, then move it to its place; give up quietly when that cannot be done."""
    name = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        make(name)
        os.replace(name, path)
    except OSError:
        return


def _write(name: str, content: bytes) -> None:
    with open(name, "wb") as file:
        file.write(content)


def _path() -> str:
    return os.path.join(folder(), f"shapes-{version()}")


def _read() -> dict[str, bytes]:
    try:
        with open(_path(), "rb") as file:
            content = file.read()
    except OSError:
        return {}
    if blake2b(content[_DIGEST:], digest_size=_DIGEST).digest() != content[:_DIGEST]:
        return {}
    stored: dict[str, bytes] = marshal.loads(content[_DIGEST:])
    return stored


def _revived(blanked: str, stored: bytes) -> Shape:
    recipe = marshal.loads(stored)
    return revive(blanked, Recipe(*recipe)) if recipe is not None else opaque(blanked)
