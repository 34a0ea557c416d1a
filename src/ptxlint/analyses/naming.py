"""What messages call the objects that an instruction touches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.analyses.values import base_symbol, location
from ptxlint.demangle import demangled

if TYPE_CHECKING:
    from ptxlint.facts import Facts

_FUNCTION_SCOPE = re.compile(r"^.*\)(?: const)?::|^.*::(?=[^:]+$)")


def symbol_name(symbol: str) -> str:
    """A variable as its author wrote it: demangled, without the function it is local to."""
    return _FUNCTION_SCOPE.sub("", demangled(symbol))


def object_name(facts: Facts, index: int, role: str) -> str:
    """The variable that an operand addresses, with a constant offset in bytes; the operand itself when not known."""
    value = facts.values.role(index, role)
    place = location(value)
    if place is not None:
        name, offset = place
        return f"`{symbol_name(name)}{f'{offset:+d}' if offset else ''}`"
    base = base_symbol(value)
    if base is not None:
        return f"`{symbol_name(base)}`"
    return f"`{isa.roles(facts.cfg.body[index])[role]}`"
