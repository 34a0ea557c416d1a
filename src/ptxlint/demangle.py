"""Readable names for mangled ones."""

from __future__ import annotations

import re
from functools import lru_cache

_FILE_SCOPE = re.compile(r"\b_INTERNAL_\w+::")
_ANONYMOUS = re.compile(r"\b_GLOBAL__N_\w+")
_LOCAL = re.compile(r"E(\d+)(?=[A-Za-z_])")
_DISCRIMINATOR = re.compile(r"(_\d|__\d+_)?")


@lru_cache(maxsize=4096)
def demangled(name: str) -> str:
    """The C++ name with its parameters; the name itself when it is not a mangled one.

    The names that nvcc invents for the scope of a file are left out.
    """
    if not name.startswith("_Z"):
        return name
    local = _local(name)
    if local is not None:
        function, variable = local
        return f"{demangled(function)}::{variable}"
    from itanium_demangler import parse

    try:
        tree = parse(name)
    except NotImplementedError:
        return name
    if tree is None:
        return name
    return _ANONYMOUS.sub("(anonymous namespace)", _FILE_SCOPE.sub("", str(tree)))


def variable_name(name: str) -> str:
    """A variable by the last part of its name, as its author wrote it: without namespaces and function."""
    local = _local(name)
    return local[1] if local else demangled(name).rpartition("::")[2]


def _local(name: str) -> tuple[str, str] | None:
    """A variable of a function: the function's mangled name and the variable's own; None when it is not one.

    The demangler has no local names: `_ZZ`, the function, `E`, the length of the variable's name, the name.
    """
    if not name.startswith("_ZZ"):
        return None
    for match in reversed(list(_LOCAL.finditer(name))):
        rest = name[match.end() :]
        length = int(match[1])
        if length <= len(rest) and _DISCRIMINATOR.fullmatch(rest[length:]):
            return f"_Z{name[3 : match.start()]}", rest[:length]
    return None
