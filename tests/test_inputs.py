"""Files that hold PTX without being PTX: real ones, made by nvcc and read by cuobjdump, and hostile ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import tracemalloc
import zipfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from ptxlint import binary, cli, inputs, registry
from ptxlint.lint import Options, lint_text
from ptxlint.unreadable import UnreadableError

SOURCE = Path(str(files("ptxlint.demo") / "tile_store.cu"))
PTX = SOURCE.with_suffix(".ptx").read_text()

needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTXLINT_CACHE_DIR", str(tmp_path / ".cache"))
    return tmp_path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that nvcc makes of the demo kernel."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copy(SOURCE, folder)
    both = "-gencode=arch=compute_90,code=[sm_90,compute_90] -gencode=arch=compute_100,code=compute_100"
    for command in (
        f"nvcc {both} -lineinfo -c tile_store.cu -o tile.o",
        "nvcc -arch=compute_90 -fatbin tile_store.cu -o tile.fatbin",
        "nvcc -arch=sm_90 -cubin tile_store.cu -o tile.cubin",
        "nvcc -arch=sm_90 -lineinfo -ptx tile_store.cu -o lines.ptx",
        "nvcc -arch=sm_90 -lineinfo -cubin tile_store.cu -o lines.cubin",
        "nvcc -gencode=arch=compute_90,code=sm_90 -lineinfo -c tile_store.cu -o machine.o",
        "nvcc -arch=compute_90 --shared -Xcompiler -fPIC tile_store.cu -o libtile.so",
        "ar rcs libtile.a tile.o",
    ):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True, timeout=120)
    with zipfile.ZipFile(folder / "tile-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.write(folder / "libtile.so", "tile/libtile.so")
        wheel.write(folder / "libtile.a", "tile/libtile.a")
        wheel.write(SOURCE, "tile/tile_store.cu")
        wheel.writestr("tile/kernel.ptx", PTX)
    return folder


def names(path: Path | str) -> list[str]:
    return [unit.name.removeprefix(f"{path}!") for unit in inputs.units(str(path))]


@needs_nvcc
class TestContainers:
    """PTX in what nvcc builds."""

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("tile.o", ["tile_store.sm_100.ptx", "tile_store.sm_90.ptx"]),
            ("tile.fatbin", ["tile.1.sm_90.ptx"]),
            ("libtile.so", ["libtile.1.sm_90.ptx"]),
            ("libtile.a", ["tile.o!tile_store.sm_100.ptx", "tile.o!tile_store.sm_90.ptx"]),
            (
                "tile-1.0-py3-none-any.whl",
                [
                    "tile/libtile.so!1.sm_90.ptx",
                    "tile/libtile.a!tile.o!tile_store.sm_100.ptx",
                    "tile/libtile.a!tile.o!tile_store.sm_90.ptx",
                    "tile/kernel.ptx",
                ],
            ),
        ],
    )
    def test_every_module_is_found(self, built: Path, name: str, expected: list[str]) -> None:
        assert names(built / name) == expected
        assert all(".entry double_tiles" in unit.text for unit in inputs.units(str(built / name)))

    def test_they_are_linted(self, built: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert cli.run(["check", "--format", "concise", str(built / "tile.o")]) == 1
        out = capfd.readouterr().out
        assert "tile.o!tile_store.sm_100.ptx:" in out
        assert "tile.o!tile_store.sm_90.ptx:" in out

    def test_a_cubin_holds_none(self, built: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert cli.run(["check", str(built / "tile.cubin")]) == 2
        assert "tile.cubin: holds no PTX" in capfd.readouterr().out

    @pytest.mark.parametrize(("name", "module"), [("lines.cubin", "ptx"), ("machine.o", "tile_store.sm_90")])
    def test_the_ptx_that_a_cubin_keeps(self, built: Path, name: str, module: str) -> None:
        """With the same lines as the file that it was assembled from."""
        assert names(built / name) == [module]
        (unit,) = inputs.units(str(built / name))
        original = (built / "lines.ptx").read_text()
        found, expected = (lint_text(text, "", Options(registry.select())) for text in (unit.text, original))
        assert [(item.rule, item.line) for item in found.findings] == [(i.rule, i.line) for i in expected.findings]
        assert found.findings

    @pytest.mark.parametrize("length", [20, 63, 64, 500, 1900, 5000])
    def test_a_truncated_cubin(self, built: Path, length: int) -> None:
        Path("t.cubin").write_bytes((built / "lines.cubin").read_bytes()[:length])
        with pytest.raises(UnreadableError, match="holds no PTX"):
            names("t.cubin")

    def test_extract(self, built: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert cli.run(["extract", "-d", "out", str(built / "tile.o")]) == 0
        written = capfd.readouterr().out.split()
        assert written == ["out/tile.o_tile_store.sm_100.ptx", "out/tile.o_tile_store.sm_90.ptx"]
        assert all(".entry double_tiles" in (folder / path).read_text() for path in written)
        assert cli.run(["extract", "-d", "out", str(built / "tile.o")]) == 2
        assert "exists; --force replaces it" in capfd.readouterr().err
        assert cli.run(["extract", "--force", "-d", "out", str(built / "tile.o")]) == 0

    def test_without_cuobjdump(self, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr("sys.path", [])
        with pytest.raises(UnreadableError, match=r"pip install 'ptxlint\[binary\]'"):
            names(built / "tile.o")

    @pytest.mark.parametrize("length", [4, 100, 5000])
    def test_a_truncated_object(self, built: Path, length: int) -> None:
        Path("t.o").write_bytes((built / "tile.o").read_bytes()[:length])
        with pytest.raises(UnreadableError, match="holds no PTX"):
            names("t.o")


@needs_nvcc
class TestCuda:
    """CUDA C++ goes through nvcc, with the flags after `--`."""

    def test_it_is_compiled_with_line_numbers(self, capfd: pytest.CaptureFixture[str]) -> None:
        shutil.copy(SOURCE, "k.cu")
        assert cli.run(["check", "--format", "concise", "k.cu", "--", "-arch=sm_90a"]) == 1
        assert "/k.cu:24:13]" in capfd.readouterr().out

    def test_the_flags_arrive(self, capfd: pytest.CaptureFixture[str]) -> None:
        shutil.copy(SOURCE, "k.cu")
        assert cli.run(["extract", "k.cu", "--", "-arch=sm_100a"]) == 0
        assert ".target sm_100a" in Path(capfd.readouterr().out.strip()).read_text()

    def test_what_nvcc_says_is_passed_on(self, capfd: pytest.CaptureFixture[str]) -> None:
        Path("k.cu").write_text("__global__ void k() { nonsense; }")
        assert cli.run(["check", "k.cu"]) == 2
        out = capfd.readouterr().out
        assert "is not compiled by nvcc" in out
        assert "nonsense" in out

    def test_without_nvcc(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        Path("k.cu").touch()
        Path("k.cu").write_text("x")
        monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
        assert cli.run(["check", "k.cu"]) == 2
        assert "nvcc is not on PATH" in capfd.readouterr().out


class TestHostile:
    """Archives that mean harm, or are broken: one clear line, nothing written outside, a bound on what is unpacked."""

    def archive(self, **members: bytes) -> str:
        with zipfile.ZipFile("a.whl", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return "a.whl"

    def test_a_bomb(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(binary, "LIMIT", 1 << 20)
        with pytest.raises(UnreadableError, match="unpacks to more than"):
            names(self.archive(**{"a.ptx": PTX.encode(), "b.ptx": b" " * (2 << 20)}))

    def test_what_cannot_hold_ptx_is_not_unpacked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(binary, "LIMIT", 1 << 20)
        assert names(self.archive(**{"a.ptx": PTX.encode(), "weights.bin": b" " * (2 << 20)})) == ["a.ptx"]

    def test_a_large_module_is_not_read_whole(self) -> None:
        """Neither from disk nor into memory beyond what `--max-size` allows."""
        path = self.archive(**{"a.ptx": b" " * (64 << 20)})
        tracemalloc.start()
        with pytest.raises(UnreadableError, match="is larger than 1 MiB"):
            list(inputs.units(path, limit=1 << 20))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()

    def test_a_name_that_leads_outside(self, folder: Path) -> None:
        before = set(folder.parent.iterdir())
        assert names(self.archive(**{"../../evil.ptx": PTX.encode(), "/tmp/evil.ptx": PTX.encode()}))
        assert cli.run(["extract", "-d", "out", "a.whl"]) == 2
        assert set(folder.parent.iterdir()) == before
        assert os.listdir("out") == ["evil.ptx"]

    def test_a_truncated_zip(self) -> None:
        path = Path(self.archive(**{"a.ptx": PTX.encode()}))
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(UnreadableError, match="is not a zip archive that can be read"):
            names(path)

    def test_a_damaged_member(self) -> None:
        path = Path(self.archive(**{"a.ptx": PTX.encode() * 100}))
        data = bytearray(path.read_bytes())
        data[60:200] = bytes(140)
        path.write_bytes(data)
        with pytest.raises(UnreadableError, match="is not a zip archive that can be read"):
            names(path)

    @pytest.mark.parametrize(
        "damage",
        [lambda data: data[:30], lambda data: data.replace(b"`\n", b"xx"), lambda data: data[:56] + b"x" * 40],
    )
    def test_a_damaged_static_archive(self, damage: Callable[[bytes], bytes]) -> None:
        header = b"a.ptx/".ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"644".ljust(8) + b"9999".ljust(10) + b"`\n"
        Path("a.a").write_bytes(damage(b"!<arch>\n" + header + b"rest"))
        with pytest.raises(UnreadableError):
            names("a.a")

    def test_two_members_of_one_name(self) -> None:
        member = PTX.encode()
        header = b"a.ptx/".ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"644".ljust(8)
        header += str(len(member)).encode().ljust(10) + b"`\n"
        padding = b"\n" * (len(member) % 2)
        Path("a.a").write_bytes(b"!<arch>\n" + (header + member + padding) * 2)
        assert names("a.a") == ["a.ptx", "a.ptx"]


class TestStandardInput:
    """`-`, and what reports call it."""

    def test_its_name(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], folder: Path) -> None:
        (folder / "input").write_text(PTX)
        with open("input") as stream:
            monkeypatch.setattr("sys.stdin", stream)
            assert cli.run(["check", "-", "--stdin-filename", "real.ptx", "--format", "concise"]) == 1
        assert capfd.readouterr().out.startswith("real.ptx:")
