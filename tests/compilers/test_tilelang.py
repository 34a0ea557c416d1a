"""TileLang, the real one, generating CUDA C++ without a GPU while ptxlint watches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("tilelang", reason="needs TileLang: pip install 'ptxlint[compilers]'")
if not shutil.which("nvcc"):
    pytest.skip("needs nvcc", allow_module_level=True)

import tilelang
import tilelang.language as T  # noqa: N812
import tvm_ffi

import ptxlint
from ptxlint.integrations.tilelang import HOOK, watch
from ptxlint.result import Origin

STUCK = """
    __shared__ unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at) : "memory");
    __syncthreads();
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra WAIT; }"
                 :: "r"(at) : "memory");
"""


@T.prim_func
def copied(source: T.Tensor((1024,), "float32"), out: T.Tensor((1024,), "float32")):
    with T.Kernel(8, threads=128) as block:
        T.copy(source[block * 128], out[block * 128 : block * 128 + 128])


def lower() -> str:
    target = tilelang.tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
    with target:
        lowered = tilelang.lower(copied, target=target, enable_host_codegen=False, enable_device_compile=False)
    return str(lowered.kernel_source)


def make_it_wrong(code: str, target: object) -> str:  # noqa: ARG001
    head, brace, body = code.partition(") {\n")
    assert brace
    return head + brace + STUCK + body


@pytest.fixture
def wrong() -> Iterator[None]:
    """A callback of the user's own, which puts a wait that never ends into each kernel."""
    tvm_ffi.register_global_func(HOOK, f=make_it_wrong, override=True)
    yield
    tvm_ffi.register_global_func(HOOK, f=lambda code, _: code, override=True)


def test_each_generated_kernel_is_linted() -> None:
    with watch("collect") as watching:
        lower()
    (report,) = watching.reports
    assert [kernel.verdict for kernel in report.kernels] == [ptxlint.Verdict.CLEAN]


@pytest.mark.usefixtures("wrong")
def test_after_the_callback_that_is_there() -> None:
    with watch("collect") as watching:
        assert STUCK in lower()
    assert STUCK in lower()
    (report,) = watching.reports
    assert [finding.kernel for finding in report.findings]


PROGRAM = """
import tilelang
import tilelang.language as T

@T.prim_func
def copied(source: T.Tensor((1024,), "float32"), out: T.Tensor((1024,), "float32")):
    with T.Kernel(8, threads=128) as block:
        T.copy(source[block * 128], out[block * 128 : block * 128 + 128])

tilelang.compile(copied, target=tilelang.tvm.target.Target({"kind": "cuda", "arch": "sm_90a"}))
"""


@pytest.mark.parametrize("has_headers", [True, False])
def test_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_headers: bool) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    settings = {"TILELANG_CACHE_DIR": str(tmp_path / "cache"), "TILELANG_DISABLE_CACHE": "0"}
    command = [sys.executable, str(tmp_path / "program.py")]
    subprocess.run(command, env={**os.environ, **settings}, check=True, capture_output=True, timeout=300)
    if not has_headers:
        monkeypatch.setenv("TL_TEMPLATE_PATH", str(tmp_path))
    (report,) = ptxlint.check(tmp_path / "cache").files
    assert report.origin == Origin(f"TileLang {tilelang.__version__}")
    (kernel,) = report.kernels
    assert (kernel.name, kernel.verdict) == ("copied_kernel", ptxlint.Verdict.CLEAN)
    source = kernel.source.file if kernel.source else None
    assert source == (report.path.removesuffix("!ptx") if has_headers else None)


@pytest.mark.usefixtures("wrong")
def test_it_raises() -> None:
    """TVM makes a RuntimeError of what a callback raises."""
    with watch("raise"), pytest.raises(RuntimeError, match="copied_kernel"):
        lower()
