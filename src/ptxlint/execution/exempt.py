"""Conflicts that are none: of loads that are over since their results were used, and of places that are guessed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.execution.clock import TENSOR_LOAD
from ptxlint.execution.conflict import Access, Conflict, Space
from ptxlint.execution.contents import by_contents
from ptxlint.execution.trace import Event
from ptxlint.execution.ways import is_by, origin, path, warps_of
from ptxlint.ir import Instruction, Register


class Exemptions:
    """The conflicts of one kernel that are none; `points` synchronize."""

    def __init__(self, cfg: Cfg, points: frozenset[int]) -> None:
        self.cfg = cfg
        self.points = points

    @cached_property
    def guessed(self) -> Collection[tuple[int, bool]]:
        """The instructions whose places are guesses, as `by_contents` has them."""
        return by_contents(self.cfg)

    def real(self, conflicts: Sequence[Conflict], events: Sequence[Event]) -> tuple[Conflict, ...]:
        """The conflicts of a run with these events, without those that are none."""
        return tuple(
            conflict
            for conflict in conflicts
            if not _is_consumed(conflict, self.cfg, self.points, events) and not _is_guess(conflict, self.guessed)
        )


def _is_consumed(conflict: Conflict, cfg: Cfg, points: frozenset[int], events: Sequence[Event]) -> bool:
    """Whether the first access is a load whose warp has used what it loaded before it released anything.

    A use of the registers waits for them, so nothing of the load is left. Source: PTX ISA, *tcgen05.ld*. A `mov` is no
    use: it gives the registers other names, and ptxas makes no instruction of it.
    """
    first = conflict.first
    if first.moment.line[0] != TENSOR_LOAD:
        return False
    if not origin(first).isdisjoint(warps_of(conflict.second.agent)):
        return True
    way = path(conflict, events)
    return bool(way) and _is_used(cfg, points, events, first, way[0])


def _is_used(cfg: Cfg, points: frozenset[int], events: Sequence[Event], load: Access, release: Event) -> bool:
    """Whether every way from a load to a release, over back edges too, leads over a use of what was loaded.

    A way over synchronization at which the warp has not been meanwhile is not that of the run.
    """
    own = origin(load)
    visited = {event.point for event in events[load.when : release.order + 1] if is_by(event, own)}
    ends = {point for point in points - visited if cfg.body[point].guard is None} | {release.point}
    block = cfg.block_of[load.point]
    waiting = [(block, load.point + 1, frozenset(isa.writes(cfg.body[load.point])))]
    seen: set[tuple[int, frozenset[Register]]] = set()
    while waiting:
        block, start, held = waiting.pop()
        end = next((point for point in range(start, cfg.blocks[block].stop) if point in ends), None)
        left = _unused(cfg.body[start : cfg.blocks[block].stop if end is None else end], held)
        if left is not None and end == release.point:
            return False
        for edge in cfg.blocks[block].successors if end is None else ():
            if left is not None and (edge.target, left) not in seen:
                seen.add((edge.target, left))
                waiting.append((edge.target, cfg.blocks[edge.target].start, left))
    return True


def _unused(run: Iterable[Instruction], held: frozenset[Register]) -> frozenset[Register] | None:
    """The registers that hold loaded values after a run of instructions; None when one of these uses a value."""
    for instruction in run:
        is_read = not held.isdisjoint(isa.reads(instruction))
        if is_read and instruction.opcode != "mov":
            return None
        written = frozenset(isa.writes(instruction))
        held = held | written if is_read else held - written
    return held


def _is_guess(conflict: Conflict, guessed: Collection[tuple[int, bool]]) -> bool:
    """Whether one of the accesses finds its place by contents of memory; `guessed` as `by_contents` has it."""
    return any((access.point, access.space is Space.GLOBAL) in guessed for access in (conflict.first, conflict.second))
