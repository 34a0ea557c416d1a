"""Registers that warps claim and give back with setmaxnreg, as the run shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ptxlint.classes import dataclass
from ptxlint.execution.engine import Execution
from ptxlint.execution.trace import Kind
from ptxlint.ir import Function
from ptxlint.source import Span

FILE = 65536
"""Registers of an SM. Source: CUDA C++ Programming Guide, *Compute Capabilities* (9.0 and later)."""

UNIT = 8
"""Registers of a thread come in multiples of it. Source: PTX ISA, *setmaxnreg*."""

MOST = 255
WARPS_OF_GROUP = 4
WARP = 32


@dataclass(frozen=True, slots=True)
class Claim:
    """One setmaxnreg by one warp: its point in the body, the count, whether it raises it, and when in the run."""

    point: int
    warp: int
    registers: int
    is_raise: bool
    order: int


@dataclass(frozen=True, slots=True)
class Claims:
    """What the warps of the first CTA asked for, in the order of the run; `ends` says when each warp exited."""

    execution: Execution
    made: tuple[Claim, ...]
    ends: dict[int, int]

    @staticmethod
    def of(execution: Execution) -> Claims:
        """The claims of a kernel; none where it did not run cleanly."""
        made = []
        ends: dict[int, int] = {}
        for event in execution.events:
            if event.agent is None or event.agent.rank:
                continue
            warps = dict.fromkeys(thread // WARP for thread in event.agent.threads)
            if event.kind is Kind.EXIT:
                ends.update(dict.fromkeys(warps, event.order))
            instruction = execution.body[event.point] if event.point >= 0 else None
            if event.kind is Kind.OTHER and instruction is not None and instruction.opcode == "setmaxnreg":
                is_raise = "inc" in instruction.modifiers
                made += [Claim(event.point, warp, event.amount, is_raise, event.order) for warp in warps]
        return Claims(execution, tuple(made), ends)

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        return self.execution.runs[0].binding.threads // WARP if self.execution.runs else 0

    def of_warp(self, warp: int) -> Sequence[Claim]:
        """What one warp asked for, in order."""
        return [claim for claim in self.made if claim.warp == warp]

    def warpgroups(self) -> Iterator[tuple[int, range]]:
        """The complete warpgroups of which some warp asked for registers, with their warps."""
        for group in range(self.warps // WARPS_OF_GROUP):
            warps = range(group * WARPS_OF_GROUP, (group + 1) * WARPS_OF_GROUP)
            if any(claim.warp in warps for claim in self.made):
                yield group, warps

    def are_equal(self, warps: range) -> bool:
        """Whether the warps of a warpgroup all asked for the same."""
        return len({tuple(claim.registers for claim in self.of_warp(warp)) for warp in warps}) == 1

    def span(self, claim: Claim) -> Span:
        """Where a claim stands."""
        return self.execution.body[claim.point].span


def at_entry(function: Function, threads: int) -> int | None:
    """Registers of a thread when the kernel begins; None where nothing says it.

    Inferred: with `.maxntid` or `.reqntid` and `.minnctapersm` ptxas gives each thread its share of the register file,
    rounded down to a multiple of 8, so that setmaxnreg has a count to begin with.
    """
    bound = function.directive("maxnreg")
    if bound is not None:
        return bound.integers()[0]
    extents = function.directive("reqntid") or function.directive("maxntid")
    ctas = function.directive("minnctapersm")
    if extents is None or ctas is None:
        return None
    most = max(threads, prod(extents.integers()))
    share = FILE // (most * max(ctas.integers()[0], 1)) // UNIT * UNIT
    return share if share < MOST else None
