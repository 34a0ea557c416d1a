"""The corpus builder: projects read without importing them, modules built once, failures told apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.corpus.assemble import Verdict  # noqa: E402
from bench.corpus.environment import environment_name  # noqa: E402
from bench.corpus.project import Project, ProjectError, all_projects, read_project  # noqa: E402
from bench.corpus.table import read_row, render  # noqa: E402

SCRIPT = """
import os
from pathlib import Path

from bench.corpus.produce import Recipe, produce


def single():
    with open(os.environ["COUNT"], "a") as count:
        count.write("x")
    return ".version 9.0\\n"


def several():
    return {"one": "1\\n", "two": "2\\n"}


def broken():
    raise ValueError("first line\\nthe cause")


def dying():
    os._exit(7)


def endless():
    while True:
        pass


raise SystemExit(produce([
    Recipe("single", "sm_90a", single), Recipe("several", "sm_80", several), Recipe("broken", "sm_80", broken),
    Recipe("dying", "sm_80", dying), Recipe("endless", "sm_80", endless),
], "pytest", time_limit=2.0))
"""


def run(folder: Path) -> str:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    surroundings = {"PYTHONPATH": str(ROOT), "COUNT": str(folder / "count"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-P", str(script), "--out", str(folder / "out"), "--jobs", "2"]
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True).stdout


def test_a_build_tells_failures_apart_and_resumes(tmp_path: Path) -> None:
    """One recipe may raise, die or hang: the others are built, and what is built is not built again."""
    told = run(tmp_path).splitlines()
    assert "built   single" in told
    assert "failed  broken: ValueError: first line ... the cause" in told
    assert "failed  dying: exit status 7" in told
    assert "failed  endless: time limit" in told
    out = tmp_path / "out"
    assert sorted(path.name for path in out.glob("*.ptx")) == ["several__one.ptx", "several__two.ptx", "single.ptx"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert {(entry["name"], entry["arch"]) for entry in manifest} == {
        ("single", "sm_90a"),
        ("several__one", "sm_80"),
        ("several__two", "sm_80"),
    }
    assert "ValueError" in (out / "failures/broken.log").read_text()
    assert "built" not in run(tmp_path)
    assert (tmp_path / "count").read_text() == "x"


def test_projects_are_read_without_their_packages(tmp_path: Path) -> None:
    """The constants are literals, whatever the script imports."""
    script = tmp_path / "made_up.py"
    script.write_text("import no_such_package\nREQUIREMENTS: tuple[str, ...] = ('a==1',)\nPYTHON = '3.12'\n")
    assert read_project(script) == Project("made_up", script, ("a==1",), "3.12")
    script.write_text("REQUIREMENTS = 'a==1'\n")
    with pytest.raises(ProjectError, match="tuple of strings"):
        read_project(script)


def test_requirements_are_pinned() -> None:
    """What is built next year is what was built today."""
    packages = {each for project in all_projects() for each in project.requirements if not each.startswith("-")}
    assert {each for each in packages if "==" not in each} == set()


def test_equal_requirements_share_an_environment(tmp_path: Path) -> None:
    """Packages of gigabytes are installed once."""
    first, second = (Project(name, tmp_path, ("a==1",), None) for name in ("first", "second"))
    other = Project("other", tmp_path, ("a==2",), None)
    assert environment_name(second, [first, second, other]) == "first"
    assert environment_name(other, [first, second, other]) == "other"


def test_the_table_counts_modules_by_state(tmp_path: Path) -> None:
    """A module for a later ptxas is neither accepted nor a failure."""
    paths = [tmp_path / f"{number}.ptx" for number in range(3)]
    for path in paths:
        path.write_text("a\nb\n")
    states = ("accepted", "newer", "rejected")
    row = read_row("made", tmp_path, {path: Verdict(state, 0.0, "") for path, state in zip(paths, states, strict=True)})
    assert (row.modules, row.accepted, row.newer, row.rejected, row.lines) == (3, 1, 1, 1, 2)
    assert render([row]).splitlines()[1].split() == ["made", "3", "1", "1", "1", "2", "-"]
