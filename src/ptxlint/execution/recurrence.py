"""What a register carries from lap to lap: counters and phases, and the loop that begins them anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.ir import Register

LOADS = frozenset({"ld", "atom"})


def begins_anew(cfg: Cfg, definitions: Mapping[str, Sequence[int]], point: int, register: Register) -> bool:
    """Whether all that counts laps in a register, as it is read at a point, begins anew in a loop around the point.

    False where nothing in it counts, and where some count is begun outside all loops and goes on through them. What
    the register is computed from is followed back to loads.
    """
    sources = _sources(cfg, definitions, register.name)
    around = [cfg.loop_blocks(loop) for loop in cfg.enclosing_loops(cfg.block_of[point])]
    counts = [name for name in sources if name in _reachable(sources, name)]
    for name in counts:
        cycle = {other for other in counts if other in _reachable(sources, name) and name in _reachable(sources, other)}
        for place in (place for member in cycle for place in definitions.get(member, ())):
            instruction = cfg.body[place]
            is_entry = cycle.isdisjoint(read.name for read in isa.reads(instruction))
            if is_entry and not any(cfg.block_of[place] in blocks for blocks in around):
                return False
    return bool(counts)


def _sources(cfg: Cfg, definitions: Mapping[str, Sequence[int]], name: str) -> dict[str, set[str]]:
    """The registers that a register is computed from, directly or not, each with its own direct sources."""
    found: dict[str, set[str]] = {}
    left = [name]
    while left:
        current = left.pop()
        if current in found:
            continue
        places = [cfg.body[place] for place in definitions.get(current, ())]
        direct = {read.name for each in places if each.opcode not in LOADS for read in isa.reads(each)}
        found[current] = direct
        left += direct
    return found


def _reachable(sources: Mapping[str, set[str]], name: str) -> set[str]:
    """The registers on which a register depends; itself only when it does so by way of its definitions."""
    found: set[str] = set()
    left = [*sources[name]]
    while left:
        current = left.pop()
        if current not in found:
            found.add(current)
            left += sources[current]
    return found
