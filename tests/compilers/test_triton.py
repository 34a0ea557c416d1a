"""Triton, the real one, compiling without a GPU while ptxlint watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton: pip install 'ptxlint[compilers]'")

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

import ptxlint
from ptxlint.integrations.triton import watch
from ptxlint.integrations.watch import KernelError, KernelWarning

HOPPER = GPUTarget("cuda", 90, 32)


@triton.jit
def doubled(source, out, count, SIZE: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, 2 * tl.load(source + at, mask=at < count), mask=at < count)


@gluon.jit
def stuck(out):
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    mbarrier.wait(barrier, 0)
    gl.store(out, 1.0)


@gluon.jit
def excused(out):
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    mbarrier.wait(barrier, 0)  # ptxlint: ignore[wait-without-arrival] nothing else is tested
    gl.store(out, 1.0)


def compile_clean() -> triton.compiler.CompiledKernel:
    source = ASTSource(doubled, {"source": "*fp32", "out": "*fp32", "count": "i32"}, {"SIZE": 128})
    return triton.compile(source, target=HOPPER)


def compile_wrong() -> triton.compiler.CompiledKernel:
    return triton.compile(GluonASTSource(stuck, {"out": "*fp32"}, {}), target=HOPPER)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[None]:
    """A cache of Triton's for each test."""
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(tmp_path / "triton")
        yield


def test_each_compiled_kernel_is_linted() -> None:
    with watch("collect") as watching:
        compile_clean()
        compile_wrong()
    clean, wrong = watching.reports
    assert [(kernel.name, kernel.verdict) for kernel in clean.kernels] == [("doubled", ptxlint.Verdict.CLEAN)]
    assert [kernel.name for kernel in wrong.kernels] == ["stuck"]
    line = Path(__file__).read_text().split("\n").index("    mbarrier.wait(barrier, 0)") + 1
    (source,) = {finding.source for finding in wrong.findings}
    assert source is not None
    assert source.file == __file__
    assert source.line == line


def test_a_comment_beside_the_line_silences() -> None:
    with watch("collect") as watching:
        triton.compile(GluonASTSource(excused, {"out": "*fp32"}, {}), target=HOPPER)
    (report,) = watching.reports
    assert (report.findings, report.suppressed) == ((), 1)


def test_it_warns() -> None:
    with watch(), pytest.warns(KernelWarning, match="stuck"):
        compile_wrong()


def test_it_raises_also_on_a_cached_kernel() -> None:
    compile_wrong()
    with watch("raise"), pytest.raises(KernelError, match="stuck") as raised:
        compile_wrong()
    assert raised.value.report.findings


def test_its_cache(tmp_path: Path) -> None:
    compile_clean()
    compile_wrong()
    lines = Path(__file__).read_text().split("\n")
    found = {file.kernels[0].name: file for file in ptxlint.check(tmp_path / "triton").files}
    for name in ("doubled", "stuck"):
        origin = found[name].origin
        assert origin is not None
        assert origin.compiler == f"Triton {triton.__version__}"
        assert origin.source is not None
        assert origin.source.file == __file__
        assert lines[origin.source.line - 1].startswith(f"def {name}(")
    assert found["stuck"].findings
    assert not found["doubled"].findings


def test_a_listener_that_is_there_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bool] = []
    monkeypatch.setattr(triton.knobs.compilation, "listener", lambda *, cache_hit, **_: heard.append(cache_hit))
    before = triton.knobs.compilation.listener
    with watch("collect") as watching:
        compile_clean()
        compile_clean()
    assert heard == [False, True]
    assert len(watching.reports) == 1
    assert triton.knobs.compilation.listener is before


def test_the_fixture_takes_a_compiled_kernel(ptxlint_clean: Callable[..., ptxlint.Report]) -> None:
    ptxlint_clean(compile_clean())
    with pytest.raises(pytest.fail.Exception, match="stuck"):
        ptxlint_clean(compile_wrong())
