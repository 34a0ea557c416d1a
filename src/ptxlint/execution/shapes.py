"""Launch shapes that the PTX and the user leave open: which blocks and clusters to try, the likeliest first."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.execution.rows import likely_blocks, reads_rows
from ptxlint.execution.slice import Slice
from ptxlint.execution.strand import WARP
from ptxlint.ir import Immediate, Instruction, Register
from ptxlint.launch import Dimensions, Launch

LIKELY_THREADS = (128, 256, 384, 32, 64, 96, 160, 192, 224, 288, 320, 416, 512, 640, 768, 1024)


MOST_THREADS = 1024


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes to try for a function, given what is stated of its launch."""

    cfg: Cfg
    slice: Slice
    launch: Launch

    def __iter__(self) -> Iterator[tuple[Dimensions, Dimensions]]:
        """Block and cluster extents, the likeliest first."""
        blocks = [self.launch.block] if self.launch.block else list(self._blocks())
        clusters = [self.launch.cluster] if self.launch.cluster else list(self._clusters())
        for cluster in clusters:
            for block in blocks:
                yield block, cluster

    def by_rows(self) -> Iterator[Dimensions]:
        """Likely block extents of a kernel whose threads go by rows."""
        bound = self.cfg.function.directive("maxntid")
        if reads_rows(self.cfg):
            yield from likely_blocks(self.cfg, math.prod(bound.integers()) if bound else None)

    def _blocks(self) -> Iterator[Dimensions]:
        bound = self.cfg.function.directive("maxntid")
        if bound is not None:
            yield from dict.fromkeys((*self.by_rows(), (math.prod(bound.integers()), 1, 1)))
            return
        least = self._least_threads()
        flat = ((threads, 1, 1) for threads in (max(least, LIKELY_THREADS[0]), least, *LIKELY_THREADS))
        yield from (block for block in dict.fromkeys((*self.by_rows(), *flat)) if math.prod(block) >= least)

    def _least_threads(self) -> int:
        """The smallest block, in whole warps, in which no comparison of the thread or warp index is idle."""
        scales = self._thread_scales()
        least = 1
        for point in self.slice.points:
            instruction = self.cfg.body[point]
            if instruction.opcode != "setp":
                continue
            left, right = instruction.operands[1:3]
            if isinstance(left, Register) and isinstance(right, Immediate) and isinstance(right.value, int):
                scale = scales.get(left.name)
                if scale is not None and 0 <= right.value * scale < MOST_THREADS:
                    least = max(least, _threads_that_differ(instruction.modifiers[0], right.value, scale))
        return min(-(-least // WARP) * WARP, MOST_THREADS)

    def _thread_scales(self) -> dict[str, int]:
        """For registers that hold the index of the thread, or of its warp or larger group: threads per step."""
        scales: dict[str, int] = {}
        for point in sorted(self.slice.points):
            instruction = self.cfg.body[point]
            if not instruction.operands or not isinstance(instruction.operands[0], Register):
                continue
            target, sources = instruction.operands[0].name, instruction.operands[1:]
            if instruction.opcode == "mov" and str(sources[0]) == "%tid.x":
                scales[target] = 1
            elif isinstance(sources[0] if sources else None, Register) and str(sources[0]) in scales:
                scale = scales[str(sources[0])]
                if instruction.opcode in ("mov", "shfl", "cvt"):
                    scales[target] = scale
                elif instruction.opcode == "shr" and isinstance(sources[1], Immediate):
                    scales[target] = scale << int(sources[1].value)
        return scales

    def _clusters(self) -> Iterator[Dimensions]:
        yield (1, 1, 1)
        if any(concerns_cluster(self.cfg.body[point]) for point in self.slice.points):
            yield from ((2, 1, 1), (1, 2, 1), (4, 1, 1), (2, 2, 1))


def _threads_that_differ(comparison: str, value: int, scale: int) -> int:
    """The smallest block in which a comparison of an index with a value does not come out alike for all.

    An equality asks for the whole group of `scale` threads that has the value.
    """
    match comparison:
        case "eq" | "ne":
            return (value + 1) * scale
        case "gt" | "le" | "hi" | "ls":
            return (value + 1) * scale + 1
        case _:
            return value * scale + 1


def concerns_cluster(instruction: Instruction) -> bool:
    """Whether what an instruction does depends on the cluster."""
    return (
        instruction.opcode in ("mapa", "getctarank")
        or instruction.modifiers[:1] == ("cluster",)
        or "multicast::cluster" in instruction.modifiers
        or any(getattr(operand, "name", "").startswith("%cluster") for operand in instruction.operands)
    )
