"""What an instruction orders: semantics, scopes, and the proxies that a fence joins."""

from __future__ import annotations

from ptxlint.classes import dataclass
from ptxlint.ir import Instruction
from ptxlint.isa.row import Proxy
from ptxlint.isa.table import row

_SCOPES = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "sys": "sys", "gl": "gpu"}
_SEMANTICS = {
    "weak": "weak",
    "relaxed": "relaxed",
    "acquire": "acquire",
    "release": "release",
    "acq_rel": "acq_rel",
    "sc": "sc",
    "volatile": "relaxed",
    "mmio": "relaxed",
}
_EVERYWHERE = frozenset({"global", "shared::cta", "shared::cluster", "local", "const", "param"})
_SHARED_CTA = frozenset({"shared::cta"})
_SHARED = frozenset({"shared::cta", "shared::cluster"})
_SPACES = {"global": frozenset({"global"}), "shared::cta": _SHARED_CTA, "shared::cluster": _SHARED}


def scope(instruction: Instruction) -> str | None:
    """The scope `cta`, `cluster`, `gpu` or `sys` of an instruction's ordering; None when it has none.

    Written, or the ISA's default; `.volatile` counts as system scope.
    """
    for modifier in instruction.modifiers:
        if modifier in _SCOPES and not (modifier == "cta" and instruction.opcode in {"bar", "barrier"}):
            return _SCOPES[modifier]
    if "volatile" in instruction.modifiers:
        return "sys"
    known = row(instruction)
    return known.scope if known else None


def is_aligned(instruction: Instruction) -> bool:
    """Whether whole warps must run an instruction together. Source: PTX ISA, *bar, barrier* (`bar` is aligned)."""
    known = row(instruction)
    return "aligned" in instruction.modifiers or (known is not None and known.is_aligned)


def aborts(instruction: Instruction) -> bool:
    """Whether an instruction ends the kernel with an error."""
    known = row(instruction)
    return known is not None and known.aborts


def semantics(instruction: Instruction) -> str:
    """`weak`, `relaxed`, `acquire`, `release`, `acq_rel` or `sc`; empty for what has no place in the memory model.

    Written, or the ISA's default. `.volatile` and `.mmio` are relaxed. Source: PTX ISA, *Memory Consistency Model*.
    """
    for modifier in instruction.modifiers:
        if modifier in _SEMANTICS:
            return _SEMANTICS[modifier]
    known = row(instruction)
    return known.semantics if known else ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a proxy fence joins: accesses by `before`, made earlier, with accesses by `after`, made later.

    direction: `both`, `release` (before a synchronization) or `acquire` (after one). A fence of direction `both` also
    orders accesses by `after` made earlier with accesses by `before` made later.
    spaces: the state spaces whose objects are covered. scope: None where the fence acts within its thread.
    """

    before: Proxy
    after: Proxy
    direction: str
    spaces: frozenset[str]
    scope: str | None = None


_TENSORMAP = "tensormap::generic"


def covers(instruction: Instruction) -> Coverage | None:
    """What a proxy fence covers, None for any other instruction. Source: PTX ISA, *membar/fence*.

    The fabric fences of PTX ISA 9.3 are not covered: None.
    """
    modifiers = instruction.modifiers
    if instruction.opcode == "tensormap" and modifiers[:1] == ("cp_fenceproxy",):
        return Coverage(Proxy.GENERIC, Proxy.TENSORMAP, "release", frozenset({"global"}), scope(instruction))
    if instruction.opcode not in {"fence", "membar"} or modifiers[:1] != ("proxy",):
        return None
    direction = next((modifier for modifier in modifiers if modifier in {"acquire", "release"}), "both")
    reach = scope(instruction) if direction != "both" else None
    if "alias" in modifiers:
        return Coverage(Proxy.GENERIC, Proxy.ALIAS, direction, _EVERYWHERE, reach)
    if _TENSORMAP in modifiers:
        return Coverage(Proxy.GENERIC, Proxy.TENSORMAP, direction, _EVERYWHERE, reach)
    if "async" not in modifiers and "async::generic" not in modifiers:
        return None
    spaces = next((_SPACES[modifier] for modifier in modifiers if modifier in _SPACES), _EVERYWHERE)
    if "sync_restrict::shared::cta" in modifiers:
        spaces = _SHARED_CTA
    elif any(modifier.startswith("sync_restrict::shared::cluster") for modifier in modifiers):
        spaces = _SHARED
    return Coverage(Proxy.GENERIC, Proxy.ASYNC, direction, spaces, reach)
