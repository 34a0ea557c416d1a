"""`.loc` directives of one function: each instruction's innermost frame with the calls it was inlined through."""

from __future__ import annotations

from ptxlint.parse.constants import integer
from ptxlint.parse.nodes import LocMark, Word
from ptxlint.source import Loc

_DEEPEST = 64


class Locs:
    """The `.loc` in force, and the earlier ones that an `inlined_at` may name by their position.

    Measured on nvcc and Triton: `inlined_at f l c` repeats the position of the caller's own `.loc`, which stands
    earlier in the function and names the function that the call was made from.
    """

    def __init__(self) -> None:
        self._current: Loc | None = None
        self._by_position: dict[tuple[int, int, int], Loc] = {}
        self._known: dict[Loc, Loc] = {}

    def current(self) -> Loc | None:
        """What holds for the next instruction."""
        return self._current

    def mark(self, mark: LocMark) -> None:
        """Take in the next `.loc`."""
        position = _integers(mark.position)
        function = (str(mark.function), integer(mark.offset) if mark.offset else 0) if mark.function else None
        loc = Loc(*position, function=function, inlined_at=self._caller(mark))
        loc = self._known.setdefault(loc, loc)
        self._by_position[position] = loc
        self._current = loc

    def _caller(self, mark: LocMark) -> Loc | None:
        if mark.inlined_at is None:
            return None
        position = _integers(mark.inlined_at)
        known = self._by_position.get(position)
        if known is None or _depth(known) >= _DEEPEST:
            return Loc(*position)
        return known


def _integers(words: tuple[Word, Word, Word]) -> tuple[int, int, int]:
    return integer(words[0]), integer(words[1]), integer(words[2])


def _depth(loc: Loc) -> int:
    depth = 0
    frame: Loc | None = loc
    while frame is not None:
        depth += 1
        frame = frame.inlined_at
    return depth
