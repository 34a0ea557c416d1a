"""Accepting findings: what a baseline hides, what it does not, and the commands around it."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from ptxlint import baseline, check, cli
from ptxlint.baseline import BaselineError, known_in, unknown_in

DEMO = (files("ptxlint.demo") / "tile_store.ptx").read_text()
FILE = "ptxlint-baseline.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTXLINT_CACHE_DIR", str(tmp_path / ".cache"))
    Path("k.ptx").write_text(DEMO)
    return tmp_path


def renumbered(text: str) -> str:
    """The same kernel with other registers, labels and lines."""
    moved = (
        text.replace("%r<23>", "%r<99>")
        .replace("%rd", "%xx")
        .replace("%r2", "%q2")
        .replace("%r1", "%r2")
        .replace("%q2", "%r1")
    )
    return moved.replace("%xx", "%rd").replace("$L__BB0_", "$L__BB7_").replace(".entry", "\n\n.entry", 1)


def test_a_known_finding_is_hidden_and_counted() -> None:
    report = check(DEMO)
    left, stale = unknown_in(report, known_in(report))
    assert not list(left.findings)
    assert left.files[0].known == len(list(report.findings)) > 0
    assert not stale


def test_it_outlives_renumbering() -> None:
    report = check(renumbered(DEMO))
    assert list(report.findings)
    left, stale = unknown_in(report, known_in(check(DEMO)))
    assert not list(left.findings)
    assert not stale


def test_another_kernel_is_not_hidden() -> None:
    left, stale = unknown_in(check(DEMO.replace("double_tiles", "triple_tiles")), known_in(check(DEMO)))
    assert list(left.findings)
    assert stale


def test_an_entry_hides_one_finding() -> None:
    twice = check(DEMO, DEMO)
    left, _ = unknown_in(twice, known_in(check(DEMO)))
    assert len(list(left.findings)) * 2 == len(list(twice.findings))


def test_writing_and_reading_gives_the_entries_back() -> None:
    known = known_in(check("k.ptx"))
    baseline.write("b.json", known)
    assert baseline.read("b.json") == known
    assert [path.name for path in Path().glob("b.json*")] == ["b.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"ptxlint-baseline": 1}', '{"ptxlint-baseline": 1, "findings": [{}]}']
)
def test_a_file_that_is_not_a_baseline(text: str) -> None:
    Path("b.json").write_text(text)
    with pytest.raises(BaselineError, match=r"b\.json: is not a baseline"):
        baseline.read("b.json")


def test_a_later_format() -> None:
    Path("b.json").write_text('{"ptxlint-baseline": 2}')
    with pytest.raises(BaselineError, match="is of format 2"):
        baseline.read("b.json")


class TestCommands:
    """`ptxlint baseline`, and `check --baseline`."""

    def test_write_then_check(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert cli.run(["check", "k.ptx"]) == 1
        assert cli.run(["baseline", "write", "k.ptx"]) == 0
        assert "findings accepted" in capfd.readouterr().out
        assert cli.run(["check", "--baseline", FILE, "k.ptx"]) == 0
        Path("ptxlint.toml").write_text(f'baseline = "{FILE}"')
        assert cli.run(["check", "k.ptx"]) == 0

    def test_nothing_is_overwritten_without_being_asked(self, capfd: pytest.CaptureFixture[str]) -> None:
        Path(FILE).write_text("mine")
        assert cli.run(["baseline", "write", "k.ptx"]) == 2
        assert "exists" in capfd.readouterr().err
        assert Path(FILE).read_text() == "mine"

    def test_update_says_what_changed(self, capfd: pytest.CaptureFixture[str]) -> None:
        cli.run(["baseline", "write", "k.ptx"])
        Path("k.ptx").write_text(DEMO.replace("double_tiles", "triple_tiles"))
        capfd.readouterr()
        assert cli.run(["baseline", "update", "k.ptx"]) == 0
        count = len(json.loads(Path(FILE).read_text())["findings"])
        assert capfd.readouterr().out == f"{FILE}: {count} findings accepted, {count} new, {count} gone.\n"

    def test_entries_that_are_gone_are_mentioned(self, capfd: pytest.CaptureFixture[str]) -> None:
        cli.run(["baseline", "write", "k.ptx"])
        Path("k.ptx").write_text(DEMO.replace("double_tiles", "triple_tiles"))
        capfd.readouterr()
        assert cli.run(["check", "--baseline", FILE, "k.ptx"]) == 1
        assert "of the baseline are gone" in capfd.readouterr().err

    def test_show(self, capfd: pytest.CaptureFixture[str]) -> None:
        cli.run(["baseline", "write", "k.ptx"])
        capfd.readouterr()
        assert cli.run(["baseline", "show"]) == 0
        assert "k.ptx  double_tiles:" in capfd.readouterr().out

    def test_nothing_is_written_from_unreadable_input(self, capfd: pytest.CaptureFixture[str]) -> None:
        Path("bad.ptx").write_text("nonsense")
        assert cli.run(["baseline", "write", "k.ptx", "bad.ptx"]) == 2
        assert "nothing was written" in capfd.readouterr().err
        assert not Path(FILE).exists()

    def test_a_missing_baseline(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert cli.run(["check", "--baseline", "nowhere.json", "k.ptx"]) == 2
        assert "nowhere.json: cannot be read" in capfd.readouterr().err
