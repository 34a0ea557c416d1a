"""Arrivals at mbarriers of other CTAs, as the run shows whom they reach."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.execution.engine import Execution
from ptxlint.execution.layout import RANK_SHIFT
from ptxlint.execution.trace import Kind
from ptxlint.ir import Instruction


def narrow_arrivals(execution: Execution) -> Iterator[int]:
    """Places that arrive at another CTA with the scope of their own, where generic accesses are handed over.

    A kernel that stores to the other CTA hands that over; a slot read by ordinary loads in the same loop is handed
    back, which counts where the scope is written and not merely the default.
    """
    stores = any(_stores_remotely(instruction) for instruction in execution.body)
    seen: set[int] = set()
    for event in execution.runs[0].machine.events if execution.runs else ():
        if event.kind is not Kind.ARRIVE or event.agent is None or event.object is None or event.point in seen:
            continue
        instruction = execution.body[event.point]
        is_release = isa.semantics(instruction) == "release" and isa.scope(instruction) == "cta"
        if (
            event.object >> RANK_SHIFT != event.agent.rank
            and is_release
            and (stores or ("cta" in instruction.modifiers and _loads_beside(execution, event.point)))
        ):
            seen.add(event.point)
            yield event.point


def _stores_remotely(instruction: Instruction) -> bool:
    is_store = instruction.opcode == "st" and "async" not in instruction.modifiers
    return is_store and "shared::cluster" in instruction.modifiers


def _loads_beside(execution: Execution, point: int) -> bool:
    """Whether the innermost loop around an instruction has an ordinary load from shared memory."""
    cfg = execution.cfg
    loop = next(iter(cfg.enclosing_loops(cfg.block_of[point])), None)
    if loop is None:
        return False
    points = (p for block in cfg.loop_blocks(loop) for p in cfg.blocks[block].points)
    return any(execution.body[p].opcode == "ld" and "shared" in execution.body[p].modifiers for p in points)
