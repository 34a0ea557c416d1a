"""Arrivals at mbarriers of other CTAs, as the run shows whom they reach."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.execution.engine import Execution
from ptxlint.execution.layout import RANK_SHIFT
from ptxlint.execution.trace import Kind
from ptxlint.ir import Instruction
from ptxlint.isa.row import Mode, Proxy


def narrow_arrivals(execution: Execution) -> Iterator[int]:
    """Places that arrive at another CTA with the scope of their own, where generic accesses are handed over.

    A kernel that stores to the other CTA hands that over, and one that reads the other CTA's memory, what is written to
    shared memory in the same loop; a slot read by ordinary loads in the same loop is handed back, which counts where
    the scope is written and not merely the default.
    """
    stores = any(_is_remote(instruction, "st") for instruction in execution.body)
    reads = any(_is_remote(instruction, "ld") for instruction in execution.body)
    seen: set[int] = set()
    for event in execution.runs[0].machine.events if execution.runs else ():
        if event.kind is not Kind.ARRIVE or event.agent is None or event.object is None or event.point in seen:
            continue
        instruction = execution.body[event.point]
        is_release = isa.semantics(instruction) == "release" and isa.scope(instruction) == "cta"
        if (
            event.object >> RANK_SHIFT != event.agent.rank
            and is_release
            and (
                stores
                or (reads and any(_writes_shared(each) for each in _beside(execution, event.point)))
                or ("cta" in instruction.modifiers and any(map(_loads_shared, _beside(execution, event.point))))
            )
        ):
            seen.add(event.point)
            yield event.point


def _is_remote(instruction: Instruction, opcode: str) -> bool:
    is_access = instruction.opcode == opcode and "async" not in instruction.modifiers
    return is_access and "shared::cluster" in instruction.modifiers


def _writes_shared(instruction: Instruction) -> bool:
    written = [access for access in isa.accesses(instruction) if access.mode in (Mode.WRITE, Mode.UPDATE)]
    return any(
        access.proxy is Proxy.GENERIC and isa.space(instruction, access) in ("shared", "shared::cta")
        for access in written
    )


def _loads_shared(instruction: Instruction) -> bool:
    return instruction.opcode == "ld" and "shared" in instruction.modifiers


def _beside(execution: Execution, point: int) -> Iterator[Instruction]:
    """The innermost loop around an instruction, nothing when it stands in none."""
    cfg = execution.cfg
    loop = next(iter(cfg.enclosing_loops(cfg.block_of[point])), None)
    if loop is not None:
        yield from (execution.body[p] for block in cfg.loop_blocks(loop) for p in cfg.blocks[block].points)
