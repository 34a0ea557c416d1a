"""`.loc` directives of one function: each instruction's innermost frame with the calls it was inlined through."""

from __future__ import annotations

from functools import lru_cache

from ptxlint.parse.constants import number
from ptxlint.parse.nodes import LocMark
from ptxlint.parse.scopes import NAME, NUMBER
from ptxlint.source import Loc, PtxSyntaxError, Span

_DEEPEST = 64


class Locs:
    """The `.loc` in force, and the earlier ones that an `inlined_at` may name by their position.

    Measured on nvcc and Triton: `inlined_at f l c` repeats the position of the caller's own `.loc`, which stands
    earlier in the function and names the function that the call was made from.
    """

    def __init__(self) -> None:
        self._current: Loc | None = None
        self._by_position: dict[tuple[str, str, str], Loc] = {}
        self._known: dict[tuple[tuple[str, str, str], str | None, str | None, int], Loc] = {}

    def current(self) -> Loc | None:
        """What holds for the next instruction."""
        return self._current

    def mark(self, mark: LocMark) -> Loc:
        """Take in the next `.loc`: what it says."""
        caller = self._caller(mark) if mark.inlined_at is not None else None
        key = (mark.position, mark.function, mark.offset, id(caller))
        loc = self._known.get(key)
        if loc is None:
            loc = self._known[key] = _loc(mark, caller)
        self._by_position[mark.position] = loc
        self._current = loc
        return loc

    def _caller(self, mark: LocMark) -> Loc:
        assert mark.inlined_at is not None
        known = self._by_position.get(mark.inlined_at)
        if known is None or _depth(known) >= _DEEPEST:
            known = self._by_position[mark.inlined_at] = Loc(*_integers(mark.inlined_at, mark))
        return known


def _loc(mark: LocMark, caller: Loc | None) -> Loc:
    function = None
    if mark.function is not None:
        if NAME.fullmatch(mark.function) is None:
            raise PtxSyntaxError(Span(mark.line, mark.column), f"'{mark.function}' is not a name")
        function = str(mark.function), _integer(mark.offset, mark) if mark.offset is not None else 0
    return Loc(*_integers(mark.position, mark), function=function, inlined_at=caller)


def _integers(words: tuple[str, str, str], mark: LocMark) -> tuple[int, int, int]:
    return _integer(words[0], mark), _integer(words[1], mark), _integer(words[2], mark)


def _integer(word: str, mark: LocMark) -> int:
    value = _whole(word)
    if value is None:
        raise PtxSyntaxError(Span(mark.line, mark.column), f"'{word}' is not a whole number")
    return value


@lru_cache(maxsize=10_000)
def _whole(word: str) -> int | None:
    value = number(word) if NUMBER.fullmatch(word) else None
    return value if isinstance(value, int) else None


def _depth(loc: Loc) -> int:
    depth = 0
    frame: Loc | None = loc
    while frame is not None:
        depth += 1
        frame = frame.inlined_at
    return depth
