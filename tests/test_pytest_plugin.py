"""The plugin for pytest, in sessions of their own."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec

import pytest

pytest_plugins = ["pytester"]

WRONG = str(files("ptxlint.demo") / "tile_store.ptx")
CLEAN = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
FIXTURE_TESTS = f"""
from pathlib import Path

CLEAN = {CLEAN!r}
WRONG = Path({WRONG!r})

def test_clean(ptxlint_clean):
    assert [kernel.name for kernel in ptxlint_clean(CLEAN).kernels] == ["k"]

def test_wrong(ptxlint_clean):
    ptxlint_clean(WRONG)

def test_ignored(ptxlint_clean):
    ptxlint_clean(WRONG, ignore=["ALL"])

def test_not_ptx(ptxlint_clean):
    ptxlint_clean("not\\nPTX")

def test_no_kernel(ptxlint_clean):
    ptxlint_clean(object())
"""
TRITON_TESTS = """
import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

@gluon.jit
def stuck(out, LAPS: gluon.language.constexpr):
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    for lap in range(LAPS):
        mbarrier.wait(barrier, lap & 1)

@gluon.jit
def idle(out, LAPS: gluon.language.constexpr):
    pass

@pytest.mark.parametrize(("kernel", "laps"), [(idle, 1), (stuck, 1), (stuck, 2)])
def test_compiles(kernel, laps):
    source = GluonASTSource(kernel, {"out": "*fp32", "LAPS": "constexpr"}, {"LAPS": laps})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))
"""


def test_the_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FIXTURE_TESTS)
    result = pytester.runpytest_subprocess("-rf")
    result.assert_outcomes(passed=2, failed=3)
    text = result.stdout.str()
    assert all(f"::{name}" in text.rpartition("short test summary")[2] for name in ("test_wrong", "test_not_ptx"))
    assert all(part in text for part in ("tile_store.cu:", "error: <string>:1:1", "a object holds no PTX"))


def test_a_session_that_compiles_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    assert "compiled modules" not in pytester.runpytest_subprocess().stdout.str()
    result = pytester.runpytest_subprocess("--ptxlint")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["0 of 0 compiled modules have findings."])


@pytest.mark.skipif(not find_spec("triton"), reason="needs Triton: pip install 'ptxlint[compilers]'")
@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_tests_compile_is_linted(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(pytester.path / "triton"))
    pytester.makepyfile(TRITON_TESTS)
    result = pytester.runpytest_subprocess("--ptxlint", "-n", workers)
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    assert "2 of 3 compiled modules have findings." in text
    assert "test_compiles[stuck-1] compiled:" in text or "test_compiles[kernel1-1] compiled:" in text
