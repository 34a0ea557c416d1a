"""Programmatic dependent launch: where the kernels before this one are known to be complete, and what reads before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.analyses.threads import depends_on_thread
from ptxlint.classes import dataclass
from ptxlint.dataflow import Analysis
from ptxlint.ir import Instruction
from ptxlint.isa import Mode

if TYPE_CHECKING:
    from ptxlint.facts import Facts

WAIT = "griddepcontrol.wait"
LAUNCH = "griddepcontrol.launch_dependents"


@dataclass(frozen=True, slots=True)
class Waited:
    """Whether griddepcontrol.wait has been run: by this thread on every path, by some thread on some path."""

    surely: bool
    maybe: bool


class Waits(Analysis[Waited]):
    """Whether the grids before this one are complete.

    State     see `Waited`
    Order     less sure, more possible
    Entry     neither
    Transfer  the wait makes it sure; a barrier of the CTA makes sure what some thread has done
    """

    def __init__(self, facts: Facts) -> None:
        del facts

    def boundary(self) -> Waited:
        return Waited(False, False)

    def join(self, first: Waited, second: Waited) -> Waited:
        return Waited(first.surely and second.surely, first.maybe or second.maybe)

    def transfer(self, index: int, instruction: Instruction, state: Waited) -> Waited:  # noqa: ARG002
        row = isa.row(instruction)
        if row is None:
            return state
        if row.name == WAIT:
            return Waited(instruction.guard is None or state.surely, True)
        is_barrier = "barrier" in isa.roles(instruction) and "arrive" not in instruction.modifiers
        return Waited(state.maybe, state.maybe) if is_barrier else state


def early_reads(facts: Facts) -> Iterator[int]:
    """Reads of global memory that run before the wait and can hardly be meant to.

    Those that some threads run without having waited and others after it; those of an address that is read after the
    wait too; all of them, where nothing is read after the wait.
    """
    steps = [(index, i, state) for index, i, state in facts.solve(Waits).steps() if _touches_global(i)]
    late = [index for index, i, state in steps if state.maybe and _reads_global(i)]
    again = {facts.values.role(index, "address") for index in late} - {None}
    is_split = any(_is_by_some_threads(facts, wait) for wait in waits(facts))
    for index, instruction, state in steps:
        if state.surely or not _is_plain_load(instruction):
            continue
        is_behind = state.maybe and is_split and not _leads_to(facts, index, waits(facts))
        if is_behind or not late or facts.values.role(index, "address") in again:
            yield index


def waits(facts: Facts) -> list[int]:
    """The places of griddepcontrol.wait."""
    rows = ((index, isa.row(instruction)) for index, instruction in enumerate(facts.cfg.body))
    return [index for index, row in rows if row is not None and row.name == WAIT]


def _is_by_some_threads(facts: Facts, point: int) -> bool:
    """Whether a branch by the number of the thread decides if an instruction is run."""
    cfg = facts.cfg
    block = cfg.block_of[point]
    branch = cfg.immediate_dominators[block]
    while branch is not None and cfg.post_dominates(block, branch):
        branch = cfg.immediate_dominators[branch]
    literals = [] if branch is None else [facts.values.along(edge) for edge in cfg.blocks[branch].successors]
    return any(literal is not None and depends_on_thread(literal[0]) for literal in literals)


def writes_after(facts: Facts, launch: int) -> int | None:
    """A write to global memory that can run after an instruction."""
    body = facts.cfg.body
    seen: set[int] = set()
    block = facts.cfg.block_of[launch]
    waiting = [edge.target for edge in facts.cfg.blocks[block].successors]
    points = list(range(launch + 1, facts.cfg.blocks[block].stop))
    while True:
        for point in points:
            if _writes_global(body[point]):
                return point
        if not waiting:
            return None
        block = waiting.pop()
        points = [] if block in seen else list(facts.cfg.blocks[block].points)
        if block not in seen:
            seen.add(block)
            waiting += [edge.target for edge in facts.cfg.blocks[block].successors]


def _leads_to(facts: Facts, start: int, goals: list[int]) -> bool:
    """Whether control can come from one instruction to any of others."""
    cfg = facts.cfg
    targets = {cfg.block_of[goal] for goal in goals}
    if any(cfg.block_of[goal] == cfg.block_of[start] and goal > start for goal in goals):
        return True
    seen: set[int] = set()
    waiting = [cfg.block_of[start]]
    while waiting:
        new = {edge.target for edge in cfg.blocks[waiting.pop()].successors} - seen
        if new & targets:
            return True
        seen |= new
        waiting += new
    return False


def _is_plain_load(instruction: Instruction) -> bool:
    return instruction.opcode == "ld" and "nc" not in instruction.modifiers


def _touches_global(instruction: Instruction) -> bool:
    return any(isa.space(instruction, access) == "global" for access in isa.accesses(instruction))


def _reads_global(instruction: Instruction) -> bool:
    return _touches(instruction, Mode.READ) or _touches(instruction, Mode.UPDATE)


def _writes_global(instruction: Instruction) -> bool:
    return _touches(instruction, Mode.WRITE) or _touches(instruction, Mode.UPDATE)


def _touches(instruction: Instruction, mode: Mode) -> bool:
    return any(a.mode is mode and isa.space(instruction, a) == "global" for a in isa.accesses(instruction))
