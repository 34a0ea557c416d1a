"""Which memory an instruction touches: state spaces, widths and byte counts."""

from __future__ import annotations

import re

from ptxlint.ir import Address, Immediate, Indexed, Instruction, Vector
from ptxlint.isa.operands import roles
from ptxlint.isa.row import Access, Mode
from ptxlint.isa.table import row

SPACES: dict[str, str] = {
    "global": "global",
    "shared": "shared::cta",
    "shared::cta": "shared::cta",
    "shared::cluster": "shared::cluster",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
    "const": "const",
}
"""State space modifiers and the normalised space each names. Source: PTX ISA, *State Spaces*."""

_BITS = re.compile(r"[a-z]+?([0-9]+)(?:x([0-9]+))?$")
_NARROW = {"e4m3": 8, "e5m2": 8, "ue8m0": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4, "ue4m3": 8, "tf32": 32, "pred": 1}
_TYPES = re.compile(r"(?:[bsuf](?:1|2|4|8|16|32|64|128|1024)|bf16|tf32|pred|u?e[0-9]m[0-9])(?:x[0-9]+)?$")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_MATRICES = {"x1": 1, "x2": 2, "x4": 4}
_ROWS = {"m16n16": 16}


def type_width(type_name: str) -> int:
    """The width of a type in bits (`f16x2` is 32, `pred` is 1). Raises ValueError when it is no type."""
    name, _, count = type_name.partition("x")
    if name in _NARROW:
        return _NARROW[name] * int(count or 1)
    found = _BITS.match(type_name)
    if found is None:
        raise ValueError(f"not a PTX type: {type_name}")
    return int(found[1]) * int(found[2] or 1)


def vector_length(instruction: Instruction) -> int:
    """How many elements `.v2`, `.v4` or `.v8` says, 1 without."""
    return next((_VECTORS[modifier] for modifier in instruction.modifiers if modifier in _VECTORS), 1)


def accesses(instruction: Instruction) -> tuple[Access, ...]:
    """The memory accesses of an instruction: those of its row whose operand is there, as the address it expects."""
    known = row(instruction)
    if known is None or not known.accesses:
        return ()
    by_role = roles(instruction)
    return tuple(
        access
        for access in known.accesses
        if access.role in by_role
        and not isinstance(by_role[access.role], Vector)
        and isinstance(by_role[access.role], Address | Indexed) is not (access.is_descriptor or access.is_bare)
    )


def _space_modifiers(instruction: Instruction) -> list[str]:
    found = []
    for modifier in instruction.modifiers:
        name = modifier.partition("[")[0]
        if name in SPACES:
            found.append(SPACES[name])
    return found


def space(instruction: Instruction, access: Access) -> str:
    """The normalised state space of an access; `generic` when neither row nor modifiers say it.

    Copies name the destination's space first and the source's second; an mbarrier lies in the destination's.
    """
    if access.space is not None:
        return access.space
    named = _space_modifiers(instruction)
    if not named:
        return "generic"
    return named[-1] if access.role == "source" else named[0]


def _integer(instruction: Instruction, role: str) -> int | None:
    operand = roles(instruction).get(role)
    return operand.value if isinstance(operand, Immediate) and isinstance(operand.value, int) else None


def _value_type(instruction: Instruction) -> str | None:
    return next((modifier for modifier in reversed(instruction.modifiers) if _TYPES.match(modifier)), None)


def access_bytes(instruction: Instruction, access: Access) -> int | None:
    """How many bytes one thread's access touches; None when the PTX text alone does not say it.

    For `ldmatrix` and `stmatrix` these are the bytes of the row that the thread's address names.
    """
    if access.bytes is not None:
        return access.bytes
    if access.size is not None:
        return _integer(instruction, access.size)
    if access.is_descriptor or access.is_mapped or access.space == "tensor" or access.mode is Mode.OBJECT:
        return None
    if instruction.opcode in {"cp", "wmma", "tex", "tld4", "suld", "sust", "sured"}:
        return None
    type_name = _value_type(instruction)
    return None if type_name is None else vector_length(instruction) * max(type_width(type_name), 8) // 8


def naming_lanes(instruction: Instruction, access: Access) -> int | None:
    """How many lanes of the warp, from lane 0 on, name the bytes of an access; None: all that take part.

    Each matrix has eight rows, one address a lane; `.m16n16` has 16 rows. Source: PTX ISA, *Warp-level matrix load
    instruction: ldmatrix*, *Warp-level matrix store instruction: stmatrix*.
    """
    if not access.is_of_matrices:
        return None
    matrices = next((_MATRICES[modifier] for modifier in instruction.modifiers if modifier in _MATRICES), 1)
    return matrices * next((_ROWS[modifier] for modifier in instruction.modifiers if modifier in _ROWS), 8)
