"""Addresses computed from contents of memory, which a run guesses: what it shows of them is no fact."""

from __future__ import annotations

from typing import TypeAlias

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.dataflow import Analysis, solve
from ptxlint.ir import Address, Instruction, Operand, Register
from ptxlint.isa import Mode

Registers: TypeAlias = frozenset[Register]


class Contents(Analysis[Registers]):
    """Which registers may hold what memory held, or a number computed from it.

    State     those registers; others hold nothing of the kind
    Order     more registers
    Entry     none: parameters are no contents
    Transfer  a load, or an operation on such registers, makes its results such; any other frees them

    With `trusts_shared` loads from shared memory are no contents: the run gives back what it has stored there.
    """

    def __init__(self, *, trusts_shared: bool) -> None:
        self.trusts_shared = trusts_shared

    def boundary(self) -> Registers:
        """No register."""
        return frozenset()

    def join(self, first: Registers, second: Registers) -> Registers:
        """Those of either path."""
        return first | second

    def transfer(self, index: int, instruction: Instruction, state: Registers) -> Registers:
        """Follow results; predicates are not numbers."""
        del index
        results = frozenset(isa.writes(instruction))
        if not results:
            return state
        if self._is_load(instruction) or any(r in state for r in isa.reads(instruction) if r.type != "pred"):
            return state | results
        return state if instruction.guard else state - results

    def _is_load(self, instruction: Instruction) -> bool:
        row = isa.row(instruction)
        if row is None or all(access.mode is Mode.OBJECT for access in row.accesses):
            return False
        spaces = [isa.space(instruction, access) for access in isa.accesses(instruction)]
        if self.trusts_shared and all(space.startswith("shared") for space in spaces):
            return False
        return not any(space in ("param", "const") for space in spaces)


def by_contents(cfg: Cfg) -> frozenset[tuple[int, bool]]:
    """The instructions that find their place by contents of memory, each with whether it is outside shared memory.

    A pointer that roles hand on through shared memory is known, and so is where it points to outside; a place within
    shared memory that comes from there is more often an index among data.
    """
    return frozenset(
        (point, is_outside)
        for is_outside in (False, True)
        for point, instruction, state in solve(cfg, Contents(trusts_shared=is_outside)).steps()
        for access in isa.accesses(instruction)
        if isa.space(instruction, access).startswith("shared") is not is_outside
        if not state.isdisjoint(_within(isa.roles(instruction)[access.role]))
    )


def _within(operand: Operand) -> Registers:
    base = operand.base if isinstance(operand, Address) else operand
    return frozenset({base}) if isinstance(base, Register) else frozenset()
