"""Exchange between the lanes of a warp, as closures. Source: PTX ISA, the section of each instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ptxlint import isa
from ptxlint.execution.closures import ALL_ONES, slot_of, type_of
from ptxlint.execution.loads import ATOMIC
from ptxlint.execution.program import Slots, Step
from ptxlint.execution.strand import WARP, Strand
from ptxlint.execution.values import spread, uniform
from ptxlint.ir import Instruction, Not, Pair, Register, Sink

MOST_PATTERNS = 256
"""Shuffles whose lanes are kept: reductions repeat a few."""


def _by_warp(strand: Strand) -> list[list[int]]:
    return list(strand.warps().values())


def _leader(strand: Strand, warp: int, mask: int) -> int | None:
    """The first thread of a warp that a member mask names and that has not ended, whether it runs in this strand or
    not."""
    return min((thread for thread in strand.cta.live[warp] if mask >> thread % WARP & 1), default=None)


def _elect(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    """elect.sync: the lowest lane of the mask leads (measured; the ISA says only that the choice is deterministic).

    All lanes of the mask take part, so those that have been parted from the leader elect nobody. Source: PTX ISA,
    *elect.sync*.
    """
    leader, mask = instruction.operands[0], slots.operand(instruction.operands[1], 32)
    parts = (leader.first, leader.second) if isinstance(leader, Pair) else (Sink(), leader)
    number = slots.register(parts[0].name) if isinstance(parts[0], Register) else None
    flag = slots.register(parts[1].name) if isinstance(parts[1], Register) else None

    def run(strand: Strand) -> None:
        chosen = [0] * len(strand.threads)
        lanes = [0] * len(strand.threads)
        masks = spread(strand.registers[mask], len(strand.threads))
        for warp, positions in strand.warps().items():
            leaders = {held: _leader(strand, warp, held) for held in {masks[position] for position in positions}}
            for position in positions:
                first = leaders[masks[position]]
                first = strand.threads[positions[0]] if first is None else first
                chosen[position] = int(strand.threads[position] == first)
                lanes[position] = first % WARP
        if flag is not None:
            strand.registers[flag] = uniform(chosen)
        if number is not None:
            strand.registers[number] = uniform(lanes)

    return run


def _shfl(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    """shfl: a lane that reads from outside its segment, or from one that does not take part, keeps its own value."""
    roles = isa.roles(instruction)
    destination = roles["destination"]
    first, second = (destination.first, destination.second) if isinstance(destination, Pair) else (destination, Sink())
    target = slots.register(first.name) if isinstance(first, Register) else None
    flag = slots.register(second.name) if isinstance(second, Register) else None
    value = slot_of(slots, roles["value"], "b32")  # type: ignore[arg-type]
    lane = slot_of(slots, roles["lane"], "u32")  # type: ignore[arg-type]
    clamp = slot_of(slots, roles["clamp"], "u32")  # type: ignore[arg-type]
    mode = next(m for m in instruction.modifiers if m in ("up", "down", "bfly", "idx"))

    def run(strand: Strand) -> None:
        registers = strand.registers
        held = registers[value]
        if held.__class__ is not tuple and flag is None:
            if target is not None:
                registers[target] = held
            return
        held = spread(held, len(strand.threads))
        wanted, limits = spread(registers[lane], 1), spread(registers[clamp], 1)
        sources, flags = _sources(mode, strand.threads, wanted, limits)
        results = [held[source] for source in sources]
        if target is not None:
            registers[target] = uniform(results)
        if flag is not None:
            registers[flag] = uniform(flags)

    return run


@lru_cache(MOST_PATTERNS)
def _sources(
    mode: str, threads: tuple[int, ...], operands: Sequence[int], clamps: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The position that each reads from, among those that shuffle together, and whether its lane was in range; one
    operand and clamp for all, or one for each."""
    count = len(threads)
    sources, flags = list(range(count)), [1] * count
    at = {thread: position for position, thread in enumerate(threads)}
    wanted, limits = (each if len(each) == count else tuple(each) * count for each in (operands, clamps))
    for position, thread in enumerate(threads):
        own = thread % WARP
        source, valid = _source_lane(mode, own, wanted[position] & 31, limits[position])
        flags[position] = int(valid)
        if valid:
            sources[position] = at.get(thread - own + source, position)
    return sources, flags


def _source_lane(mode: str, own: int, operand: int, clamp: int) -> tuple[int, bool]:
    """The lane that is read, and whether it is in range. Source: PTX ISA, *shfl.sync*."""
    limit, segment = clamp & 31, clamp >> 8 & 31
    highest = own & segment | limit & ~segment & 31
    lowest = own & segment
    match mode:
        case "up":
            source = own - operand
            return source, source >= highest
        case "down":
            source = own + operand
        case "bfly":
            source = own ^ operand
        case _:
            source = lowest | operand & ~segment & 31
    return source, source <= highest


def _vote(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    destination = instruction.operands[0]
    target = slots.register(destination.name) if isinstance(destination, Register) else slots.register("_")
    source = instruction.operands[1]
    negated = isinstance(source, Not)
    value = slots.operand(source.operand if isinstance(source, Not) else source)
    mode = next((m for m in instruction.modifiers if m in ("all", "any", "uni", "ballot")), "any")

    def run(strand: Strand) -> None:
        held = [bool(v) is not negated for v in spread(strand.registers[value], len(strand.threads))]
        results = [0] * len(held)
        for positions in _by_warp(strand):
            votes = [held[p] for p in positions]
            if mode == "ballot":
                found = sum(1 << strand.threads[p] % WARP for p in positions if held[p])
            elif mode == "uni":
                found = int(all(votes) or not any(votes))
            else:
                found = int(all(votes) if mode == "all" else any(votes))
            for position in positions:
                results[position] = found
        strand.registers[target] = uniform(results)

    return run


def _redux(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step | None:
    kind = next((m for m in instruction.modifiers if m in ("add", "min", "max", "and", "or", "xor")), None)
    type_name = type_of(instruction)
    if kind is None or type_name.startswith("f"):
        return None
    target, source = slots.operand(instruction.operands[0]), slots.operand(instruction.operands[1])
    sign = 1 << 31 if type_name == "s32" else 0

    def combine(values: list[int]) -> int:
        if kind in ("min", "max"):
            numbers = [(v ^ sign) - sign for v in values]
            return (min(numbers) if kind == "min" else max(numbers)) & ALL_ONES
        result = values[0]
        for item in values[1:]:
            result = ATOMIC[kind](result, item, ALL_ONES)
        return result

    def run(strand: Strand) -> None:
        held = spread(strand.registers[source], len(strand.threads))
        results = list(held)
        for positions in _by_warp(strand):
            found = combine([held[p] for p in positions])
            for position in positions:
                results[position] = found
        strand.registers[target] = uniform(results)

    return run


def _match(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    destination = instruction.operands[0]
    first, second = (destination.first, destination.second) if isinstance(destination, Pair) else (destination, Sink())
    target = slots.register(first.name) if isinstance(first, Register) else slots.register("_")
    flag = slots.register(second.name) if isinstance(second, Register) else None
    source = slots.operand(instruction.operands[1])
    everyone = "all" in instruction.modifiers

    def run(strand: Strand) -> None:
        held = spread(strand.registers[source], len(strand.threads))
        results = [0] * len(held)
        for positions in _by_warp(strand):
            for position in positions:
                same = [p for p in positions if held[p] == held[position]]
                agree = len(same) == len(positions)
                mask = sum(1 << strand.threads[p] % WARP for p in same)
                results[position] = mask if agree or not everyone else 0
        strand.registers[target] = uniform(results)
        if flag is not None:
            strand.registers[flag] = uniform([int(mask != 0) for mask in results])

    return run


def _activemask(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    target = slots.operand(instruction.operands[0])

    def run(strand: Strand) -> None:
        results = [0] * len(strand.threads)
        for positions in _by_warp(strand):
            mask = sum(1 << strand.threads[p] % WARP for p in positions)
            for position in positions:
                results[position] = mask
        strand.registers[target] = uniform(results)

    return run


MAKERS: dict[str, Callable[[Instruction, Slots, frozenset[str]], Step | None]] = {
    "elect": _elect,
    "shfl": _shfl,
    "vote": _vote,
    "redux": _redux,
    "match": _match,
    "activemask": _activemask,
}
"""By opcode."""
