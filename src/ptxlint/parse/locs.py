"""`.loc` directives of one function: each instruction's innermost frame with the calls it was inlined through."""

from __future__ import annotations

from ptxlint.parse.nodes import LocMark
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
        caller = self._caller(mark)
        loc = Loc(*mark.position, function=mark.function, inlined_at=caller)
        loc = self._known.setdefault(loc, loc)
        self._by_position[mark.position] = loc
        self._current = loc

    def _caller(self, mark: LocMark) -> Loc | None:
        if mark.inlined_at is None:
            return None
        known = self._by_position.get(mark.inlined_at)
        if known is None or _depth(known) >= _DEEPEST:
            return Loc(*mark.inlined_at)
        return known


def _depth(loc: Loc) -> int:
    depth = 0
    frame: Loc | None = loc
    while frame is not None:
        depth += 1
        frame = frame.inlined_at
    return depth
