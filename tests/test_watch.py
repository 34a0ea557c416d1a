"""What happens to the kernels of a compiler that is being watched, shown with the smallest compiler there is.

`tests/compilers` has the real ones.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest

import ptxlint
from ptxlint.config import Config
from ptxlint.integrations.kernel import ptx_of
from ptxlint.integrations.watch import KernelError, KernelWarning, Seen, Watch

WRONG = (files("ptxlint.demo") / "tile_store.ptx").read_text()
CLEAN = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"


class Compiler:
    """Tells whoever attached what it compiles."""

    def __init__(self) -> None:
        self.listeners: list[Seen] = []

    def attach(self, seen: Seen) -> Callable[[], None]:
        self.listeners.append(seen)
        return lambda: self.listeners.remove(seen)

    def compile(self, *texts: str) -> None:
        for number, text in enumerate(texts):
            for listener in self.listeners:
                listener(f"k{number}.ptx", text)


@pytest.fixture
def compiler() -> Compiler:
    return Compiler()


def test_collecting(compiler: Compiler) -> None:
    with Watch(compiler.attach, "collect") as watch:
        compiler.compile(CLEAN, WRONG, CLEAN, "not PTX")
    compiler.compile(WRONG.replace("double_tiles", "later"))
    assert [report.path for report in watch.reports] == ["k0.ptx", "k1.ptx", "k3.ptx"]
    assert [bool(report.findings) for report in watch.reports] == [False, True, False]
    assert watch.reports[2].problem is not None


def test_warning(compiler: Compiler, recwarn: pytest.WarningsRecorder) -> None:
    with Watch(compiler.attach):
        compiler.compile(CLEAN)
        assert not recwarn
        compiler.compile(WRONG)
    (warning,) = recwarn
    assert warning.category is KernelWarning
    assert "in kernel double_tiles" in str(warning.message)


def test_raising_leaves_the_watch_usable(compiler: Compiler) -> None:
    with Watch(compiler.attach, "raise") as watch:
        with pytest.raises(KernelError, match="in kernel double_tiles") as raised:
            compiler.compile(WRONG)
        compiler.compile(CLEAN)
    assert raised.value.report == watch.reports[0]
    assert len(watch.reports) == 2


def test_stopping_twice(compiler: Compiler) -> None:
    watch = Watch(compiler.attach)
    watch.stop()
    watch.stop()
    assert compiler.listeners == []


def test_the_configuration_counts(compiler: Compiler) -> None:
    config = Config(cache=False, per_kernel_ignores={"double_*": ("ALL",)})
    with Watch(compiler.attach, "raise", config) as watch:
        compiler.compile(WRONG)
    (report,) = watch.reports
    assert [kernel.verdict for kernel in report.kernels] == [ptxlint.Verdict.CLEAN]


def exporting(path: str) -> None:
    Path(path).write_text(CLEAN)


@pytest.mark.parametrize(
    "kernel",
    [
        CLEAN,
        SimpleNamespace(asm={"ptx": CLEAN, "cubin": b""}),
        SimpleNamespace(__ptx__=CLEAN + "\0"),
        SimpleNamespace(export_ptx=exporting),
    ],
    ids=["text", "triton", "cute", "tilelang"],
)
def test_the_ptx_of_a_kernel(kernel: object) -> None:
    assert ptx_of(kernel) == CLEAN


def test_the_ptx_at_a_path(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(CLEAN)
    assert ptx_of(path) == ptx_of(str(path)) == CLEAN


@pytest.mark.parametrize("kernel", [None, 3, SimpleNamespace(asm={"amdgcn": ""}), SimpleNamespace(__ptx__=None)])
def test_what_holds_no_ptx(kernel: object) -> None:
    with pytest.raises(TypeError, match="holds no PTX"):
        ptx_of(kernel)
