"""The whole table, and how an instruction finds its row in it."""

from __future__ import annotations

from ptxlint.ir import Instruction
from ptxlint.isa import arithmetic, asynchronous, barriers, control, fabric, matrix, mbarrier, memory, tensor, video
from ptxlint.isa.row import Row

ROWS: tuple[Row, ...] = (
    *arithmetic.ROWS,
    *video.ROWS,
    *matrix.ROWS,
    *memory.ROWS,
    *control.ROWS,
    *barriers.ROWS,
    *mbarrier.ROWS,
    *asynchronous.ROWS,
    *tensor.ROWS,
    *fabric.ROWS,
)


def _by_name() -> dict[str, tuple[Row, ...]]:
    """The rows of each name, the most demanding first."""
    names: dict[str, list[Row]] = {}
    for row in ROWS:
        names.setdefault(row.name, []).append(row)
    return {name: tuple(sorted(rows, key=lambda row: -len(row.requires))) for name, rows in names.items()}


_NAMES = _by_name()
_LONGEST = max(name.count(".") for name in _NAMES)
_found: dict[tuple[str, tuple[str, ...]], Row | None] = {}


def _meets(modifiers: tuple[str, ...], requirements: tuple[str, ...]) -> bool:
    return all(any(choice in modifiers for choice in item.split("|")) for item in requirements)


def find(opcode: str, modifiers: tuple[str, ...]) -> Row | None:
    """The row of an opcode with these modifiers, None when the table does not know the opcode.

    The longest name that leads the instruction wins, unless each of its rows requires a modifier that is not there.
    """
    for length in range(min(len(modifiers), _LONGEST), -1, -1):
        for row in _NAMES.get(".".join((opcode, *modifiers[:length])), ()):
            if _meets(modifiers, row.requires):
                return row
    return None


def row(instruction: Instruction) -> Row | None:
    """The row of an instruction, None when the table does not know its opcode."""
    key = (instruction.opcode, instruction.modifiers)
    try:
        return _found[key]
    except KeyError:
        return _found.setdefault(key, find(*key))
