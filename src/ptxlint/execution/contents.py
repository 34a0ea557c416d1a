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
    """

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
        if _is_load(instruction) or any(r in state for r in isa.reads(instruction) if r.type != "pred"):
            return state | results
        return state if instruction.guard else state - results


def by_contents(cfg: Cfg) -> frozenset[tuple[int, bool]]:
    """The instructions that find their place by contents of memory, each with whether it is outside shared memory."""
    return frozenset(
        (point, not isa.space(instruction, access).startswith("shared"))
        for point, instruction, state in solve(cfg, Contents()).steps()
        for access in isa.accesses(instruction)
        if not state.isdisjoint(_within(isa.roles(instruction)[access.role]))
    )


def _is_load(instruction: Instruction) -> bool:
    row = isa.row(instruction)
    if row is None or all(access.mode is Mode.OBJECT for access in row.accesses):
        return False
    return not any(isa.space(instruction, access) in ("param", "const") for access in isa.accesses(instruction))


def _within(operand: Operand) -> Registers:
    base = operand.base if isinstance(operand, Address) else operand
    return frozenset({base}) if isinstance(base, Register) else frozenset()
