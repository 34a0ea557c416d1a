"""Places of a kernel in short: the line of the PTX, and the lines of the source that it comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ptxlint.ir import Instruction, Module
from ptxlint.source import Loc

FRAMES = 3


def place(module: Module, body: Sequence[Instruction], point: int) -> str:
    """`74 ring.cu:140`: the PTX line, then the source; `a.cuh:9 < b.cu:3` where a.cuh was inlined at b.cu:3."""
    instruction = body[point]
    source = " < ".join(_frames(module, instruction.loc))
    return f"{instruction.span.line} {source}".rstrip()


def _frames(module: Module, loc: Loc | None) -> Iterator[str]:
    """The frames from the innermost one on, of calls within one file only the outermost; the last ones when many."""
    found: list[tuple[int, int]] = []
    while loc is not None:
        if found and found[-1][0] == loc.file:
            found.pop()
        found.append((loc.file, loc.line))
        loc = loc.inlined_at
    for file, line in found[-FRAMES:]:
        yield f"{os.path.basename(module.files.get(file, '?'))}:{line}"
