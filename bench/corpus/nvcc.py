"""CUDA C++ compiled to PTX by nvcc: what the nvcc projects of the corpus share."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.corpus.produce import Recipe

SECONDS = 1700
"""Time limit of one compiler run."""


class CompileError(Exception):
    """The first complaint of the compiler that refused a module."""


def cuda_recipe(name: str, arch: str, source: str | Path, flags: Sequence[str] = ()) -> Recipe:
    """The recipe of one module; ``source`` is CUDA C++ text, or a file of the repository or of a package."""
    return Recipe(f"{name}.{arch}", arch, partial(compile_cuda, name, arch, source, tuple(flags)))


def compile_cuda(name: str, arch: str, source: str | Path, flags: tuple[str, ...]) -> str:
    """Return the PTX of a source, once ptxas has accepted it. Leaves files in the current folder.

    Raises: CompileError
    """
    if isinstance(source, str):
        text, source = source, Path(f"{name}.cu").absolute()
        source.write_text(text, encoding="utf-8")
    ptx = Path(f"{name}.ptx").absolute()
    lines = [] if {"-G", "-lineinfo"} & set(flags) else ["-lineinfo"]
    virtual = arch.replace("sm_", "compute_")
    run([tool("nvcc"), "-ptx", "-std=c++17", f"-arch={virtual}", *lines, *flags, str(source), "-o", str(ptx)])
    run([tool("ptxas"), f"-arch={arch}", str(ptx), "-o", os.devnull])
    return ptx.read_text(encoding="utf-8", errors="surrogateescape")


def tool(name: str) -> str:
    """The path of a CUDA compiler tool.

    Raises: CompileError when it is nowhere.
    """
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if found is None:
        raise CompileError(f"{name} is not on the PATH: the CUDA toolkit 13.0 has it")
    return found


def run(command: list[str]) -> None:
    """Run a compiler, and the processes that it starts, to their end.

    Raises: CompileError with its first complaint.
    """
    program = Path(command[0]).name
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    ) as running:
        try:
            said, _ = running.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            os.killpg(running.pid, signal.SIGKILL)
            raise CompileError(f"{program}: no result within {SECONDS} s") from error
    if running.returncode:
        print(said)
        complaint = next((line for line in said.splitlines() if re.search(r"\b(error|fatal)\b", line)), "")
        raise CompileError(f"{program}: {complaint or f'exit status {running.returncode}'}")


def yield_to_others() -> None:
    """Run at low priority: these builds take an hour of both cores."""
    os.nice(10)
