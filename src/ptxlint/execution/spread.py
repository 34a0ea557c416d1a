"""How far the results of some instructions reach in a body, over data and control."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.ir import Instruction
from ptxlint.isa import Flow

if TYPE_CHECKING:
    from ptxlint.execution.slice import Slicer


def spread(
    slicer: Slicer, is_source: Callable[[Instruction], bool], *, over_control: bool = True
) -> tuple[frozenset[str], frozenset[int]]:
    """The registers that depend on the results of some instructions, and the blocks that run or not by such a one;
    over data alone where it is not `over_control`.
    """
    cfg, passable = slicer.cfg, slicer.passable
    pending: list[str] = []
    reached: set[str] = set()

    def mark(point: int) -> None:
        for name in slicer.results[point]:
            if name not in reached:
                reached.add(name)
                pending.append(name)

    for index in passable:
        for point in cfg.blocks[index].points:
            if is_source(cfg.body[point]):
                mark(point)
    deciding: set[int] = set()
    inside: set[int] = set()
    while pending:
        for point in slicer.uses.get(pending.pop(), ()):
            mark(point)
            block = cfg.block_of[point]
            if not over_control or point != cfg.blocks[block].stop - 1 or not branches(cfg.body[point]):
                continue
            region = [block]
            while region:
                decider = region.pop()
                if decider not in deciding:
                    deciding.add(decider)
                    found = [inner for inner in slicer.controlled.get(decider, ()) if inner in passable]
                    region += found
                    for inner in found:
                        if inner not in inside:
                            inside.add(inner)
                            for member in cfg.blocks[inner].points:
                                mark(member)
    return frozenset(reached), frozenset(inside)


def uses_of(cfg: Cfg, passable: frozenset[int]) -> dict[str, list[int]]:
    """Where each register is read."""
    found: dict[str, list[int]] = {}
    for index in passable:
        for point in cfg.blocks[index].points:
            for register in isa.reads(cfg.body[point]):
                found.setdefault(register.name, []).append(point)
    return found


def inverted(controllers: Mapping[int, set[int]]) -> dict[int, list[int]]:
    """For each block those whose running its last branch decides."""
    found: dict[int, list[int]] = {}
    for block, deciders in controllers.items():
        for decider in deciders:
            found.setdefault(decider, []).append(block)
    return found


def branches(instruction: Instruction) -> bool:
    """Whether control may go on elsewhere after an instruction."""
    row = isa.row(instruction)
    return row is not None and row.flow is not Flow.NEXT and row.flow is not Flow.CALL
