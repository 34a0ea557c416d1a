"""Runs over many files: order, processes, executors, the cache, and the Python API."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path

import pytest

import ptxlint
from ptxlint import cache, lint, run
from ptxlint.config import Config
from ptxlint.launch import Launch
from ptxlint.result import FileReport, Report
from ptxlint.run import Plan, reports

DEMO = (files("ptxlint.demo") / "tile_store.ptx").read_text()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTXLINT_CACHE_DIR", str(tmp_path / ".cache"))
    return tmp_path


@pytest.fixture
def paths() -> list[str]:
    """Twelve files, some of which cannot be read."""
    names = [f"k{number:02}.ptx" for number in range(12)]
    for number, name in enumerate(names):
        Path(name).write_text(DEMO.replace("double_tiles", f"tiles_{number}") if number % 4 else "nonsense")
    return names


def plan(*, is_cached: bool = False) -> Plan:
    return Plan(Config(cache=is_cached), Launch())


class TestOrder:
    """Whoever does the work, the reports come in the order of the files."""

    def expected(self, paths: list[str]) -> list[FileReport]:
        found = [report for path in paths for report in run.lint_input(plan().job(path))]
        assert [report.path for report in found] == paths
        assert [bool(report.problem) for report in found] == [number % 4 == 0 for number in range(12)]
        assert all(report.findings for report in found if not report.problem)
        return found

    def test_one_process(self, paths: list[str]) -> None:
        assert list(reports([plan().job(path) for path in paths])) == self.expected(paths)

    def test_processes(self, paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(run, "WORTH_A_PROCESS", 0)
        assert list(reports([plan().job(path) for path in paths], processes=2)) == self.expected(paths)

    @pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
    def test_any_executor(self, paths: list[str], kind: type[ThreadPoolExecutor] | type[ProcessPoolExecutor]) -> None:
        with kind(2) as executor:
            assert list(reports([plan().job(path) for path in paths], executor)) == self.expected(paths)


class TestCache:
    """Results are kept by content, and by all that decides what is found in it."""

    def lint(self, text: str = DEMO, path: str = "k.ptx", **changes: object) -> FileReport:
        options = replace(plan().options, **changes)  # type: ignore[arg-type]
        return run.lint_module(text, path, options, is_cached=True)

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The paths that were linted in earnest."""
        seen: list[str] = []

        def recorded(text: str, path: str, options: lint.Options) -> FileReport:
            seen.append(path)
            return lint.lint_text(text, path, options)

        monkeypatch.setattr(run, "lint_text", recorded)
        return seen

    def test_the_second_time_nothing_is_linted(self, calls: list[str]) -> None:
        first = self.lint()
        assert self.lint(path="other.ptx") == replace(first, path="other.ptx")
        assert calls == ["k.ptx"]

    def test_content_rules_and_launch_count(self, calls: list[str]) -> None:
        self.lint()
        self.lint(DEMO + "\n")
        self.lint(selected=plan().options.rules[1:])
        self.lint(launch=Launch((64, 1, 1)))
        self.lint(launches=(("*", Launch((64, 1, 1))),))
        assert len(calls) == 5

    def test_the_code_counts(self, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.lint()
        monkeypatch.setattr(cache, "_code", lambda: "changed")
        self.lint()
        assert len(calls) == 2

    @pytest.mark.parametrize("damage", [b"", b"\x80\x04", b"garbage", b"\x80\x04N."])
    def test_a_damaged_entry_is_replaced(self, calls: list[str], damage: bytes) -> None:
        expected = self.lint()
        (entry,) = cache.entries()
        Path(entry).write_bytes(damage)
        assert self.lint() == self.lint() == expected
        assert len(calls) == 2

    def test_comments_are_heeded_whatever_is_kept(self) -> None:
        first = self.lint()
        assert first.findings
        source = Path("tile_store.cu")
        source.write_text(f"// ptxlint: ignore-file[{first.findings[0].rule}] demo\n" + "\n" * 40)
        assert len(self.lint(path=str(source.with_suffix(".ptx"))).findings) < len(first.findings)

    def test_a_folder_that_cannot_be_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("file").touch()
        monkeypatch.setenv("PTXLINT_CACHE_DIR", "file/cache")
        assert self.lint().findings


class TestApi:
    """`ptxlint.check`."""

    def test_text_and_paths(self, paths: list[str]) -> None:
        report = ptxlint.check(DEMO, Path(paths[1]), paths[2])
        assert isinstance(report, Report)
        assert [file.path for file in report.files] == ["<string>", paths[1], paths[2]]
        assert all(file.findings for file in report.files)

    def test_a_folder(self, paths: list[str]) -> None:
        assert len(ptxlint.check(".").files) == len(paths)

    def test_what_cannot_be_read_is_a_problem(self) -> None:
        (file,) = ptxlint.check("nowhere.ptx").files
        assert file.problem is not None

    def test_selection_and_launch(self) -> None:
        codes = {finding.code for finding in ptxlint.check(DEMO).findings}
        assert not list(ptxlint.check(DEMO, ignore=codes).findings)
        assert ptxlint.check(DEMO, select=codes, launch=Launch((256, 1, 1))).verdicts()[ptxlint.Verdict.FINDINGS] == 1

    def test_the_names_that_are_offered_are_there(self) -> None:
        for name in ptxlint.__all__:
            assert getattr(ptxlint, name) is not None
        with pytest.raises(AttributeError, match="no_such_name"):
            ptxlint.no_such_name  # noqa: B018

    def test_importing_it_imports_next_to_nothing(self) -> None:
        script = "import sys; before = set(sys.modules); import ptxlint; print(len(set(sys.modules) - before))"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert int(done.stdout) < 10


def test_interrupting_leaves_at_once() -> None:
    """Ctrl-C ends the program with 130 and one line; the first result in the cache shows that it is at work.

    A shell that runs the tests in the background lets them ignore the signal, which the program must not inherit.
    """
    Path("many").mkdir()
    for number in range(400):
        Path(f"many/{number}.ptx").write_text(DEMO.replace("double_tiles", f"tiles_{number}"))
    command = [sys.executable, "-m", "ptxlint", "check", "--jobs", "1", "many"]
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeding)
    while not any(cache.entries()):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted" in err
    assert "Traceback" not in err
