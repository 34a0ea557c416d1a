"""The caches of Triton, TorchInductor and TileLang, laid out as they lay them out; tests/compilers has real ones."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ptxlint import check, cli, compiler_caches
from ptxlint.compiler_caches import triton as triton_cache
from ptxlint.result import FileReport, Origin, Report, Verdict
from ptxlint.source import SourceLocation

PTX = Path(str(files("ptxlint.demo") / "tile_store.ptx")).read_text()
KERNEL = "double_tiles"
MLIR = f"""\
#loc1 = loc("/home/me/kernels.py":20:1)
#loc13 = loc("out"(#loc1))
module attributes {{"ttg.num-warps" = 4 : i32}} {{
  tt.func private @helper() attributes {{noinline = false}} {{
    tt.return loc(#loc2)
  }} loc(#loc2)
  tt.func public @{KERNEL}(%out: !tt.ptr<f32> loc("out"(#loc1))) attributes {{noinline = false}} {{
    tt.return loc(#loc3)
  }} loc(#loc1)
}} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("/home/me/kernels.py":15:1)
#loc3 = loc("/home/me/kernels.py":25:5)
"""
PLAIN = """\
extern "C" __global__ void __launch_bounds__(128, 1) copied_kernel(float* out, const float* source) {
  out[threadIdx.x] = source[threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTXLINT_CACHE_DIR", str(tmp_path / ".ptxlint"))
    return tmp_path


def triton(folder: Path, ptx: str = PTX, mlir: str = MLIR, **metadata: Any) -> Path:
    """A kernel in a cache of Triton's; its PTX."""
    folder.mkdir(parents=True)
    described = {"target": {"backend": "cuda", "arch": 90}, "num_warps": 4, "triton_version": "3.9.0", "name": KERNEL}
    (folder / f"{KERNEL}.json").write_text(json.dumps({**described, **metadata}))
    (folder / f"__grp__{KERNEL}.json").write_text('{"child_paths": {}}')
    (folder / f"{KERNEL}.source").write_text(mlir)
    (folder / f"{KERNEL}.ptx").write_text(ptx)
    return folder / f"{KERNEL}.ptx"


def only(report: Report) -> FileReport:
    (found,) = report.files
    return found


class TestTriton:
    """A folder for each kernel, with its metadata beside the PTX."""

    def test_where_the_kernel_comes_from(self, folder: Path) -> None:
        path = triton(folder / "cache" / "AAAA")
        report = only(check("cache"))
        assert report.path == str(path.relative_to(folder))
        assert report.origin == Origin("Triton 3.9.0", SourceLocation("/home/me/kernels.py", 20, 1, KERNEL))

    def test_the_report_shows_it(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        triton(folder / "cache" / "AAAA")
        assert cli.run(["check", "cache"]) == 1
        assert "  = compiled by Triton 3.9.0 from /home/me/kernels.py:20\n" in capfd.readouterr().out

    def test_a_kernel_is_linted_once(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """Of settings that do not change the PTX, such as the number of stages of a kernel without loops."""
        for number, name in enumerate("ABC", 2):
            triton(folder / "cache" / name, num_stages=number)
        triton(folder / "cache" / "D", PTX.replace("mov.u32", "mov.b32"))
        assert cli.run(["check", "--format", "json", "cache"]) == 1
        found = json.loads(capfd.readouterr().out)["files"]
        assert [(file["path"], file["copies"]) for file in found] == [
            (f"cache/A/{KERNEL}.ptx", [f"cache/B/{KERNEL}.ptx", f"cache/C/{KERNEL}.ptx"]),
            (f"cache/D/{KERNEL}.ptx", []),
        ]
        cli.run(["check", "cache"])
        assert "Left out as copies of others: 2 files." in capfd.readouterr().out

    def test_copies_outside_of_caches_are_linted(self, folder: Path) -> None:
        for name in ("a.ptx", "b.ptx"):
            (folder / name).write_text(PTX)
        assert [file.copies for file in check(".").files] == [(), ()]

    @pytest.mark.parametrize(
        ("metadata", "mlir", "source"),
        [({}, MLIR.replace("@double", "@other"), None), ({"name": None}, MLIR, None), ({}, "", None)],
    )
    def test_what_is_not_said(self, folder: Path, metadata: dict[str, Any], mlir: str, source: None) -> None:
        triton(folder / "cache" / "A", mlir=mlir, **metadata)
        assert only(check("cache")).origin == Origin("Triton 3.9.0", source)

    @pytest.mark.parametrize("metadata", ["", "{", "[]", "{}", '{"target": 1}', "\xff"])
    def test_metadata_of_somebody_else(self, folder: Path, metadata: str) -> None:
        path = triton(folder / "cache" / "A")
        path.with_suffix(".json").write_text(metadata)
        report = only(check("cache"))
        assert report.origin is None
        assert report.findings

    def test_shared_memory_of_the_launch(self, folder: Path) -> None:
        path = triton(folder / "cache" / "A", shared=4096)
        entry = compiler_caches.entry(str(path))
        assert entry is not None
        assert entry.launch.dynamic_shared == 4096
        (folder / "B").mkdir()
        assert compiler_caches.entry(str(shutil.copy(path, folder / "B"))) is None


class TestInductor:
    """A cache of Triton's inside of another, with the Python that was generated, and its wrapper."""

    @pytest.fixture
    def root(self, folder: Path) -> Path:
        root = folder / "torchinductor_me"
        for below in ("gu", "za"):
            (root / below).mkdir(parents=True)
        (root / "gu" / "cgu1.py").write_text("def double_tiles(): pass\n")
        (root / "za" / "cza2.py").write_text(
            f"# kernel path: {root}/gu/cgu1.py\n"
            "# Topologically Sorted Source Nodes: [sin, z], Original ATen: [aten.sin, aten.add]\n"
            "# Source node to ATen node mapping:\n"
            f"{KERNEL} = async_compile.triton('{KERNEL}', '''\n"
        )
        triton(root / "triton" / "0" / "AAAA", mlir=MLIR.replace("/home/me/kernels.py", f"{root}/gu/cgu1.py"))
        return root

    def test_what_the_kernel_is_for(self, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
        origin = only(check(root)).origin
        assert origin is not None
        assert origin.source == SourceLocation(f"{root}/gu/cgu1.py", 20, 1, KERNEL)
        assert origin.purpose == "sin, z (aten.sin, aten.add)"
        assert cli.run(["check", str(root)]) == 1
        assert "gu/cgu1.py:20, generated for sin, z (aten.sin, aten.add)\n" in capfd.readouterr().out

    def test_a_kernel_that_the_tuner_compiled(self, root: Path) -> None:
        """From another file than the wrapper names; its name says what it is for, unless that is ambiguous."""
        mlir = MLIR.replace("/home/me/kernels.py", f"{root}/gu/cgu9.py")
        path = triton(root / "triton" / "0" / "BBBB", mlir=mlir)
        assert only(check(path)).origin == Origin(
            "Triton 3.9.0", SourceLocation(f"{root}/gu/cgu9.py", 20, 1, KERNEL), "sin, z (aten.sin, aten.add)"
        )
        other = (root / "za" / "cza2.py").read_text().replace("gu/cgu1.py", "gu/cgu2.py").replace("sin, z", "cos")
        (root / "za" / "cza3.py").write_text(other)
        triton_cache._purposes.cache_clear()
        assert only(check(path)).origin == Origin("Triton 3.9.0", SourceLocation(f"{root}/gu/cgu9.py", 20, 1, KERNEL))

    def test_a_kernel_that_no_wrapper_calls(self, root: Path) -> None:
        """A candidate of the tuner, say."""
        (root / "za" / "cza2.py").unlink()
        origin = only(check(root)).origin
        assert origin is not None
        assert origin.purpose == ""


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
class TestTileLang:
    """CUDA C++ beside a library that holds a cubin."""

    @pytest.fixture
    def entry(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        entry = folder / "cache" / "0.1.15" / "linux-x86_64" / "kernels" / "3c63"
        entry.mkdir(parents=True)
        (entry / "device_kernel.cu").write_text(PLAIN)
        (entry / "host_kernel.cu").write_text("not for nvcc")
        (entry / "params.json").write_text("{}")
        command = ["nvcc", "-arch=sm_90a", "-lineinfo", "-cubin", "device_kernel.cu", "-o", "device.cubin"]
        subprocess.run(command, cwd=entry, check=True, timeout=120)
        cubin = (entry / "device.cubin").read_bytes()
        (entry / "executable.so").write_bytes(b"\x7fELF" + bytes(100) + cubin)
        (entry / "device.cubin").unlink()
        monkeypatch.setenv("TL_TEMPLATE_PATH", str(folder))
        monkeypatch.setenv("TL_CUTLASS_PATH", str(folder))
        return entry

    def test_lines_of_the_generated_source(self, entry: Path) -> None:
        report = only(check("cache"))
        assert report.origin == Origin("TileLang 0.1.15")
        (kernel,) = report.kernels
        assert (kernel.name, kernel.verdict) == ("copied_kernel", Verdict.CLEAN)
        assert kernel.source is not None
        assert (kernel.source.file, kernel.source.line) == (str(entry / "device_kernel.cu"), 1)

    def test_without_what_nvcc_needs(self, entry: Path) -> None:
        (entry / "device_kernel.cu").write_text("#include <tl_templates/cuda/reduce.h>\n" + PLAIN)
        (kernel,) = only(check("cache")).kernels
        assert (kernel.name, kernel.verdict, kernel.source) == ("copied_kernel", Verdict.CLEAN, None)

    def test_without_anything(self, entry: Path) -> None:
        (entry / "device_kernel.cu").write_text("#include <tl_templates/cuda/reduce.h>\n" + PLAIN)
        (entry / "executable.so").unlink()
        problem = only(check("cache")).problem
        assert problem is not None
        assert "install it beside ptxlint, or set TL_TEMPLATE_PATH" in problem.message

    def test_a_kernel_is_linted_once(self, entry: Path) -> None:
        shutil.copytree(entry, entry.parent / "4d74")
        assert only(check("cache")).copies == ("cache/0.1.15/linux-x86_64/kernels/4d74/device_kernel.cu",)

    def test_other_cuda_is_not_taken(self, entry: Path) -> None:
        (entry / "params.json").unlink()
        assert only(check("cache")).problem is not None
