"""PTX from CUDA C++: runs nvcc with the user's flags and with line numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxlint.unreadable import UnreadableError

MESSAGE_LINES = 6
"""Lines of nvcc's complaint that are passed on."""


def compiled(path: str, flags: Sequence[str]) -> bytes:
    """The PTX of a CUDA source file. Raises UnreadableError."""
    nvcc = _nvcc()
    with tempfile.TemporaryDirectory(prefix="ptxlint-") as folder:
        out = os.path.join(folder, "out.ptx")
        command = [nvcc, "-ptx", "-lineinfo", *flags, "-o", out, path]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode or not os.path.exists(out):
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            raise UnreadableError("is not compiled by nvcc: " + "\n".join(lines[:MESSAGE_LINES]))
        return Path(out).read_bytes()


def _nvcc() -> str:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [os.environ.get("PATH", ""), *(os.path.join(home, "bin") for home in homes if home)]
    found = shutil.which("nvcc", path=os.pathsep.join(places))
    if found is None:
        raise UnreadableError("is CUDA C++, and nvcc is not on PATH nor below CUDA_HOME")
    return found
