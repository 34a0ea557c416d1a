"""Windows of the address space: conversion of addresses, and their CTA, as closures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxlint.execution.closures import address_of, binary, slot_of, unary
from ptxlint.execution.layout import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    OFFSET_MASK,
    PARAMETER_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_SIZE,
)
from ptxlint.execution.program import Slots, Step
from ptxlint.execution.strand import Strand
from ptxlint.execution.values import each
from ptxlint.ir import Instruction


def _cvta(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    target = slots.operand(instruction.operands[0])
    source, offset = address_of(slots, instruction.operands[1])
    window = SHARED_WINDOW if any(m.startswith("shared") for m in instruction.modifiers) else 0
    to_generic = "to" not in instruction.modifiers

    def convert(value: int) -> int:
        value += offset
        if not window:
            return value
        return (
            value + window if to_generic and value < WINDOW_SIZE else value % WINDOW_SIZE if not to_generic else value
        )

    return unary(convert, source, target)


def _mapa(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    target = slots.operand(instruction.operands[0])
    source, offset = address_of(slots, instruction.operands[1])
    rank = slot_of(slots, instruction.operands[2], "u32")  # type: ignore[arg-type]

    def run_one(address: int, number: int) -> int:
        window = address - address % WINDOW_SIZE
        return window + (number << RANK_SHIFT | (address + offset) & OFFSET_MASK)

    return binary(run_one, source, rank, target)


def _getctarank(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    target = slots.operand(instruction.operands[0])
    source, _ = address_of(slots, instruction.operands[1])
    return unary(lambda address: address % WINDOW_SIZE >> RANK_SHIFT, source, target)


def _isspacep(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    target = slots.operand(instruction.operands[0])
    source, _ = address_of(slots, instruction.operands[1])
    space = instruction.modifiers[0]
    if space in ("shared", "shared::cta"):
        return _own_window(source, target)
    bounds = {
        "shared::cluster": (SHARED_WINDOW, SHARED_WINDOW + WINDOW_SIZE),
        "local": (LOCAL_WINDOW, LOCAL_WINDOW + WINDOW_SIZE),
        "param": (PARAMETER_WINDOW, LOCAL_WINDOW),
        "global": (GLOBAL_BASE, PARAMETER_WINDOW),
    }
    low, high = bounds.get(space.partition("::")[0] if space not in bounds else space, (0, 0))
    return unary(lambda address: int(low <= address < high), source, target)


def _own_window(source: int, target: int) -> Step:
    """Whether an address is in the shared memory of the executing CTA."""

    def run(strand: Strand) -> None:
        low = SHARED_WINDOW + (strand.cta.rank << RANK_SHIFT)
        inside = partial(_is_between, low, low + OFFSET_MASK + 1)
        strand.registers[target] = each(inside, strand.registers[source])

    return run


def _is_between(low: int, high: int, address: int) -> int:
    return int(low <= address < high)


MAKERS: dict[str, Callable[[Instruction, Slots, frozenset[str]], Step | None]] = {
    "cvta": _cvta,
    "mapa": _mapa,
    "getctarank": _getctarank,
    "isspacep": _isspacep,
}
"""By opcode."""
