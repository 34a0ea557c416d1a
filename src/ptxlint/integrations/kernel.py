"""The PTX of a compiled kernel, whichever compiler made the object."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any


def ptx_of(kernel: Any) -> str:
    """The PTX of the kernel: PTX itself, a path, or what Triton, CuTe DSL or TileLang gave for a compiled kernel.

    Raises TypeError for anything else, and for a kernel of CuTe DSL that was compiled without CUTE_DSL_KEEP=ptx.
    """
    if isinstance(kernel, str) and "\n" in kernel:
        return kernel
    if isinstance(kernel, (str, os.PathLike)):
        return Path(kernel).read_text()
    if "ptx" in getattr(kernel, "asm", ()):
        return str(kernel.asm["ptx"])
    if isinstance(text := getattr(kernel, "__ptx__", None), str):
        return text.rstrip("\0")
    if hasattr(kernel, "export_ptx"):
        with tempfile.TemporaryDirectory(prefix="ptxlint-") as folder:
            kernel.export_ptx(os.path.join(folder, "kernel.ptx"))
            return Path(folder, "kernel.ptx").read_text()
    raise TypeError(f"a {type(kernel).__name__} holds no PTX")
