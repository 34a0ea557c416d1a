"""What the grammar has made of shapes, and its own tables, kept in the user's cache folder between runs.

All of it can be worked out again: a folder that cannot be read or written only costs time.
"""

from __future__ import annotations

import atexit
import marshal
import mmap
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from importlib import import_module

from ptxlint import storage
from ptxlint.parse.shapes import Recipe, Shape, opaque, revive

_DIGEST = 16
_LENGTH = 8
_MOST = 4000
_ENOUGH = 64
_SOURCES = ("learn.py", "nodes.py", "shapes.py", "store.py", "syntax.py")


def grammar() -> str:
    """The text of the grammar."""
    folder = os.path.dirname(str(import_module("ptxlint.grammar").__file__))
    with open(os.path.join(folder, "ptx.lark"), encoding="ascii") as file:
        return file.read()


@cache
def version() -> str:
    """Changes with the grammar, with the code that reads shapes, and with the Python that runs it."""
    digest = blake2b(sys.version.encode(), digest_size=_DIGEST)
    digest.update(grammar().encode())
    for name in _SOURCES:
        with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


class ShapeStore:
    """Shapes by their blanked text: those `met` in this process, then those of the file."""

    def __init__(self) -> None:
        self.met: dict[str, Shape] = {}
        self._stored: _Table | None = None
        self._new: dict[bytes, bytes] = {}

    def get(self, blanked: str) -> Shape | None:
        """The shape, if it is known."""
        shape = self.met.get(blanked)
        if shape is None:
            if self._stored is None:
                self._stored = _Table()
                atexit.register(self.save)
            recipe = self._stored.get(_key(blanked))
            if recipe is not None:
                shape = self.met[blanked] = _revived(blanked, recipe)
        return shape

    def add(self, blanked: str, recipe: Recipe | None) -> Shape:
        """Keep what was learned; None for a shape that the grammar must read every time."""
        if len(self.met) >= 5 * _MOST:
            self.met.clear()
        stored = marshal.dumps(tuple(recipe) if recipe is not None else None)
        self._new[_key(blanked)] = stored
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
        merged = {**dict(_Table().items()), **self._new}
        self._new = {}
        for key in list(merged)[: max(0, len(merged) - _MOST)]:
            del merged[key]
        storage.write_bytes(_name(), _packed(merged))


class _Table:
    """The recipes in the file, by the digest of their blanked text; each is read when it is asked for.

    The file holds the digest of the index, its length, the index, then recipes, each behind its digest. The index says
    where behind it they are, and how long.
    """

    def __init__(self) -> None:
        self._index: dict[bytes, tuple[int, int]] = {}
        self._start = 0
        try:
            with open(storage.path(_name()), "rb") as file:
                self._data: bytes | mmap.mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            self._data = b""
        length = int.from_bytes(self._data[_DIGEST : _DIGEST + _LENGTH], "little")
        index = self._data[_DIGEST + _LENGTH : _DIGEST + _LENGTH + length]
        if index and _hash(index) == self._data[:_DIGEST]:
            self._index = marshal.loads(index)
            self._start = _DIGEST + _LENGTH + length

    def get(self, key: bytes) -> bytes | None:
        """The recipe of a shape; None when it is not there or spoilt."""
        if key not in self._index:
            return None
        offset, length = self._index[key]
        begin = self._start + offset
        recipe = self._data[begin + _DIGEST : begin + length]
        return recipe if _hash(recipe) == self._data[begin : begin + _DIGEST] else None

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All recipes, the oldest first."""
        return ((key, recipe) for key in self._index if (recipe := self.get(key)) is not None)


def _packed(recipes: Mapping[bytes, bytes]) -> bytes:
    """The file that holds the recipes."""
    index: dict[bytes, tuple[int, int]] = {}
    pieces: list[bytes] = []
    offset = 0
    for key, recipe in recipes.items():
        index[key] = offset, _DIGEST + len(recipe)
        pieces += (_hash(recipe), recipe)
        offset += _DIGEST + len(recipe)
    head = marshal.dumps(index)
    return b"".join((_hash(head), len(head).to_bytes(_LENGTH, "little"), head, *pieces))


def _key(blanked: str) -> bytes:
    return _hash(blanked.encode("utf-8", "surrogatepass"))


def _hash(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST).digest()


def _name() -> str:
    return f"shapes-{version()}"


def _revived(blanked: str, stored: bytes) -> Shape:
    recipe = marshal.loads(stored)
    return revive(blanked, Recipe(*recipe)) if recipe is not None else opaque(blanked)
