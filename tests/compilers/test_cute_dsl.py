"""CuTe DSL, the real one, compiling without a GPU while ptxlint watches: in processes, since it reads settings once."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

REASON = "needs CuTe DSL: pip install 'ptxlint[compilers]'"

pytestmark = pytest.mark.skipif(not find_spec("nvidia_cutlass_dsl"), reason=REASON)

PROGRAM = """
import sys
from ptxlint.integrations.cute_dsl import watch
from ptxlint.integrations.watch import KernelError

watching = watch(sys.argv[1])
import cutlass
from cutlass import cute

@cute.kernel
def doubled(source: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    out[thread] = source[thread] * 2

@cute.jit
def launch_doubled(source: cute.Tensor, out: cute.Tensor):
    doubled(source, out).launch(grid=(1, 1, 1), block=(128, 1, 1))

@cute.kernel
def stuck(out: cute.Tensor):
    barrier = cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        cute.arch.mbarrier_init(barrier, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(barrier, 0)
    out[thread] = cutlass.Float32(1)

@cute.jit
def launch_stuck(out: cute.Tensor):
    stuck(out).launch(grid=(1, 1, 1), block=(128, 1, 1))

vector = cute.runtime.make_fake_compact_tensor(cutlass.Float32, (128,), assumed_align=16)
cute.compile(launch_doubled, vector, vector)
assert [kernel.verdict for kernel in watching.reports[0].kernels] == ["clean"], watching.reports
try:
    cute.compile(launch_stuck, vector)
except KernelError as error:
    print("raised", error)
for report in watching.reports:
    for kernel in report.kernels:
        print(kernel.verdict, kernel.name)
watching.stop()
"""


def _run(tmp_path: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(program)
    settings = {"CUTE_DSL_ARCH": "sm_90a", "CUTE_DSL_DISABLE_FILE_CACHING": "1", "CUTE_DSL_LINEINFO": "1"}
    environment = {**os.environ, **settings}
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("reaction", ["collect", "raise"])
def test_each_compiled_kernel_is_linted(tmp_path: Path, reaction: str) -> None:
    done = _run(tmp_path, PROGRAM, reaction)
    assert done.returncode == 0, done.stderr
    assert ("raised" in done.stdout) == (reaction == "raise")
    assert "findings kernel_cutlass_stuck" in done.stdout


def test_too_late_is_said(tmp_path: Path) -> None:
    done = _run(tmp_path, "import cutlass\nfrom ptxlint.integrations.cute_dsl import watch\nwatch()\n")
    assert "watch CuTe DSL before `import cutlass`" in done.stderr
