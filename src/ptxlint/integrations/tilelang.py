"""TileLang: every kernel that it generates CUDA C++ for, compiled to PTX with nvcc and linted."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ptxlint.compile import compiled
from ptxlint.config import Config
from ptxlint.integrations.watch import KernelWarning, Reaction, Seen, Watch
from ptxlint.launch import Launch
from ptxlint.unreadable import UnreadableError

HOOK = "tilelang_callback_cuda_postproc"


def watch(reaction: Reaction = "warn", config: Config | None = None, launch: Launch | None = None) -> Watch:
    """Lint what TileLang generates from now on, through its CUDA post-processing callback; one there already stays.

    nvcc runs once more for each kernel. TVM passes what is raised on as a RuntimeError with the same text.
    """
    return Watch(_attach, reaction, config, launch)


def _attach(seen: Seen) -> Callable[[], None]:
    import tvm_ffi
    from tilelang.contrib import nvcc
    from tilelang.env import CUTLASS_INCLUDE_DIR, TILELANG_TEMPLATE_PATH

    before = tvm_ffi.get_global_func(HOOK, allow_missing=True)

    def lint(code: str, target: Any) -> str:
        if before is not None:
            code = str(before(code, target))
        arch, _ = nvcc.get_target_arch_and_code(target)
        flags = (f"-arch=sm_{arch}", "-std=c++20", f"-I{TILELANG_TEMPLATE_PATH}", f"-I{CUTLASS_INCLUDE_DIR}")
        with tempfile.TemporaryDirectory(prefix="ptxlint-tilelang-") as folder:
            source = Path(folder, "kernel.cu")
            source.write_text(code)
            try:
                text = compiled(str(source), flags).decode()
            except UnreadableError as error:
                warnings.warn(f"not linted: a kernel of TileLang {error.problem.message}", KernelWarning, stacklevel=2)
                return code
        seen("kernel.cu!ptx", text)
        return code

    def unchanged(code: str, target: Any) -> str:  # noqa: ARG001
        return code

    tvm_ffi.register_global_func(HOOK, f=lint, override=True)
    return lambda: tvm_ffi.register_global_func(HOOK, f=before or unchanged, override=True)
