"""Shards of a run, and their logs merged again."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ptxlint import cli

DEMO = (files("ptxlint.demo") / "tile_store.ptx").read_text()
CLEAN = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a subfolder of five kernels of which the first and the fourth have a finding."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()
    for number in range(5):
        (tmp_path / "build" / f"{number}.ptx").write_text(DEMO if number % 3 == 0 else CLEAN)
    return tmp_path


def checked(name: str, *options: str) -> int:
    return cli.run(["check", "build", "--format", "sarif", "--output-file", name, *options])


def found_in(name: str) -> list[tuple[str, str]]:
    """Rule and PTX file of each result."""
    (run,) = json.loads(Path(name).read_text())["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    return [(result["ruleId"], _ptx(result)) for result in run["results"]]


def _ptx(result: dict[str, Any]) -> str:
    return str(result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"])


@pytest.mark.usefixtures("folder")
class TestShards:
    """`--shard I/N` and `merge`."""

    def test_together_they_are_the_whole_run(self) -> None:
        assert checked("whole.sarif") == 1
        assert [checked(f"{part}.sarif", "--shard", f"{part}/3") for part in (1, 2, 3)] == [1, 0, 0]
        assert cli.run(["merge", "1.sarif", "2.sarif", "3.sarif", "-o", "merged.sarif"]) == 1
        assert len(found_in("whole.sarif")) == 2
        assert sorted(found_in("merged.sarif")) == sorted(found_in("whole.sarif"))

    def test_a_result_in_two_logs_counts_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        checked("whole.sarif")
        assert cli.run(["merge", "--exit-zero", "whole.sarif", "whole.sarif"]) == 0
        assert len(json.loads(capsys.readouterr().out)["runs"][0]["results"]) == 2

    def test_what_a_shard_could_not_read_is_not_lost(self, folder: Path) -> None:
        (folder / "build" / "1.ptx").write_text("not PTX")
        assert checked("1.sarif", "--shard", "1/2") == 1
        assert checked("2.sarif", "--shard", "2/2") == 2
        assert cli.run(["merge", "1.sarif", "2.sarif", "-o", "merged.sarif"]) == 2

    @pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "a/b", "1/0", "-1/2"])
    def test_a_shard_that_is_none(self, shard: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert checked("x.sarif", "--shard", shard) == 2
        assert "is not a part and a number of parts" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (None, "cannot be read"),
            ("{", "cannot be read"),
            ("[]", "is not a SARIF log"),
            ('{"runs": [{"tool": {"driver": {"name": "other"}}}]}', "that `ptxlint check --format sarif` wrote"),
        ],
    )
    def test_what_cannot_be_merged(self, text: str | None, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
        if text is not None:
            Path("bad.sarif").write_text(text)
        assert cli.run(["merge", "bad.sarif"]) == 2
        assert reason in capsys.readouterr().err

    def test_logs_of_different_versions(self, capsys: pytest.CaptureFixture[str]) -> None:
        checked("1.sarif")
        Path("2.sarif").write_text(Path("1.sarif").read_text().replace('"version": "0.1.0"', '"version": "9.9.9"'))
        assert cli.run(["merge", "1.sarif", "2.sarif"]) == 2
        assert "2.sarif: comes from ptxlint 9.9.9" in capsys.readouterr().err
