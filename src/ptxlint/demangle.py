"""Readable names for mangled ones."""

from __future__ import annotations

import re
from functools import lru_cache

_FILE_SCOPE = re.compile(r"\b_INTERNAL_\w+::")
_ANONYMOUS = re.compile(r"\b_GLOBAL__N_\w+")


@lru_cache(maxsize=4096)
def demangled(name: str) -> str:
    """The C++ name with its parameters; the name itself when it is not a mangled one.

    The names that nvcc invents for the scope of a file are left out.
    """
    if not name.startswith("_Z"):
        return name
    from itanium_demangler import parse

    tree = parse(name)
    if tree is None:
        return name
    return _ANONYMOUS.sub("(anonymous namespace)", _FILE_SCOPE.sub("", str(tree)))
