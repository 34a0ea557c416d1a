"""TileLang's cache: a folder for each kernel, with the CUDA C++ that was generated for it and a library of its cubin.

The PTX is made again from the CUDA C++, which gives its lines, if nvcc and TileLang's headers are there; else it is
what the cubin keeps of its own. Measured on TileLang 0.1.15.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ptxlint.unreadable import UnreadableError

_SOURCES = ("device_kernel.cu", "kernel.cu")
_PARAMETERS = ("params.json", "params.pkl")
_TARGET = re.compile(rb"^\.target\s+(\w+)", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+[\w.+]*")


def is_source(path: str) -> bool:
    """Whether the file is the CUDA C++ of a kernel in the cache."""
    folder, name = os.path.split(path)
    return name in _SOURCES and any(os.path.isfile(os.path.join(folder, other)) for other in _PARAMETERS)


def compiler(path: str) -> str:
    """TileLang, with the version that the folders of the cache are named after."""
    version = next((part for part in path.split(os.sep)[::-1] if _VERSION.fullmatch(part)), "")
    return f"TileLang {version}".rstrip()


def ptx(path: str, flags: Sequence[str]) -> bytes:
    """The PTX of the kernel; `flags` are the user's for nvcc. Raises UnreadableError."""
    from ptxlint.compile import compiled

    kept = _kept(os.path.dirname(path))
    target = _TARGET.search(kept) if kept else None
    architecture = (f"-arch={target[1].decode()}",) if target else ()
    try:
        return compiled(path, (*architecture, "-std=c++20", *(f"-I{folder}" for folder in _headers()), *flags))
    except UnreadableError as error:
        if kept is not None:
            return kept
        advice = "it needs the headers of TileLang: install it beside ptxlint, or set TL_TEMPLATE_PATH, TL_CUTLASS_PATH"
        raise UnreadableError(f"{error.problem.message}\n{advice}") from error


def _headers() -> list[str]:
    """The folders with the headers that the generated code includes, as far as they are known."""
    from importlib.util import find_spec

    package = find_spec("tilelang")
    home = package.submodule_search_locations[0] if package and package.submodule_search_locations else None
    own = (("TL_TEMPLATE_PATH", "src"), ("TL_CUTLASS_PATH", os.path.join("3rdparty", "cutlass", "include")))
    found = (os.environ.get(variable) or (home and os.path.join(home, below)) for variable, below in own)
    return [folder for folder in found if folder]


def _kept(folder: str) -> bytes | None:
    """The PTX that a cubin of the kernel keeps."""
    from glob import escape, glob

    from ptxlint import embedded

    for ending in ("cubin", "so"):
        for path in sorted(glob(os.path.join(escape(folder), f"*.{ending}"))):
            if (found := next(embedded.kept(path), None)) is not None:
                return found
    return None
