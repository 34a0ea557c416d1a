"""The extents of a block whose threads go by rows and layers: what the kernel's own arithmetic says of them.

A kernel that numbers its threads adds `%tid.x` and `%tid.y` times the length of a row, and `%tid.z` times that of a
layer; so does the address of what each thread holds, all scaled alike. The ratios of these factors are the likely
extents; where no sum has both a row and a layer, those of two sums that go alike along a row. Source of the numbering:
PTX ISA, *Special Registers: %tid*.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.execution.strand import WARP
from ptxlint.ir import Immediate, Instruction, Operand, Register, SpecialRegister
from ptxlint.launch import Dimensions

Factors = tuple[int, int, int]
"""What a sum adds for each step of `%tid.x`, `%tid.y` and `%tid.z`."""

NO_FACTORS: Factors = (0, 0, 0)
AXES = {"%tid.x": (1, 0, 0), "%tid.y": (0, 1, 0), "%tid.z": (0, 0, 1)}

TOTALS = (128, 256, 512)
"""Threads of a block, the likeliest first, where nothing says how many."""

MOST_RATIOS = 2
"""How many of the likely lengths of a row, and of a layer, are tried."""

MOST_LENGTH = 256
"""The longest row that a ratio is taken for; larger ones are steps between tiles."""


def reads_rows(cfg: Cfg) -> bool:
    """Whether the kernel asks for the second index of a thread: `.maxntid` does not say how long a row of them is."""
    return _reads(cfg, "%tid.y", "%ntid.y", "%tid.z", "%ntid.z")


def likely_blocks(cfg: Cfg, threads: int | None) -> Iterator[Dimensions]:
    """Extents of a block of at most so many threads, or of a likely number of them, the likeliest first.

    Where no ratio says how long a row is, it is a warp; unless the kernel asks for the length, and may do with any.
    Then the block may also be a single row: whoever looks for the first thread asks for all indices.
    """
    totals = (threads,) if threads else TOTALS
    sums = list(_sums(cfg.body))
    widths = ratios = _ratios([(x, y or z) for x, y, z in sums], least=2)
    heights = _ratios([(y, z) for _, y, z in sums], least=1) if widths else []
    ranks, layers = {(x, y) for x, y, z in sums if x and not z}, {(x, z) for x, y, z in sums if x and not y}
    across = _ratios([(y, z) for x, y in ranks for other, z in layers if x == other], least=2)
    if not _reads(cfg, "%ntid.x"):
        widths = [*widths, WARP]
    by_rows, by_layers = _reads(cfg, "%tid.y", "%ntid.y"), _reads(cfg, "%tid.z", "%ntid.z")
    for width, total in itertools.product(dict.fromkeys(widths), totals):
        rows = total // width
        for height in heights or ((*across, rows, 1, 2) if by_rows else (1,)) if by_layers else (rows,):
            if rows > 1 and rows // height:
                yield (width, height, rows // height)
    if not ratios:
        yield from ((total, 1, 1) for total in totals)
    yield from ((width, height, 1) for width, height in itertools.product(widths, heights))


def _reads(cfg: Cfg, *names: str) -> bool:
    return any(getattr(operand, "name", "") in names for each in cfg.body for operand in each.operands)


def _ratios(pairs: Iterable[tuple[int, int]], least: int) -> list[int]:
    """The whole numbers of times that the second factor holds the first, the most frequent first."""
    ratios = (large // small for small, large in pairs if small > 0 and large > 0 and large % small == 0)
    votes = Counter(ratio for ratio in ratios if least <= ratio <= MOST_LENGTH)
    return [ratio for ratio, _ in votes.most_common(MOST_RATIOS)]


def _sums(body: Sequence[Instruction]) -> Iterator[Factors]:
    """The factors of every sum that depends on the index of the thread, in registers that are written once."""
    written = Counter(register.name for instruction in body for register in isa.writes(instruction))
    known: dict[str, Factors] = {}
    for instruction in body:
        target = instruction.operands[0] if instruction.operands else None
        if isinstance(target, Register) and written[target.name] == 1 and instruction.guard is None:
            factors = _computed(instruction, known)
            if factors != NO_FACTORS:
                known[target.name] = factors
                yield factors


def _computed(instruction: Instruction, known: dict[str, Factors]) -> Factors:
    """The factors of what an instruction computes; none where it is no sum. Disjoint bits are added by `or` too."""

    def of(operand: Operand, times: int = 1) -> Factors:
        if isinstance(operand, SpecialRegister):
            x, y, z = AXES.get(operand.name, NO_FACTORS)
        else:
            x, y, z = known.get(operand.name, NO_FACTORS) if isinstance(operand, Register) else NO_FACTORS
        return x * times, y * times, z * times

    match instruction.opcode, instruction.operands[1:]:
        case "mov" | "cvt" | "cvta", (source,):
            return of(source)
        case "add" | "or", (first, second):
            return _added(of(first), of(second))
        case "shl", (source, Immediate(value=int() as places)):
            return of(source, 1 << places)
        case "mul", (source, Immediate(value=int() as times)):
            return of(source, times)
        case "mad", (source, Immediate(value=int() as times), more):
            return _added(of(source, times), of(more))
    return NO_FACTORS


def _added(first: Factors, second: Factors) -> Factors:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]
