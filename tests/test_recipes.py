"""The recipes of docs/ci.md, each run as it stands there, by the real tools: pip, pre-commit, CMake, a shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "ci.md").read_text()
SOURCE = Path(str(files("ptxlint.demo") / "tile_store.cu"))
PTX = SOURCE.with_suffix(".ptx").read_text()
CLEAN = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
PROGRAM = Path(sys.executable).parent / "ptxlint"

LISTS = """
cmake_minimum_required(VERSION 3.24)
project(demo LANGUAGES CXX CUDA)
add_library(my_kernels STATIC k.cu)
set_target_properties(my_kernels PROPERTIES CUDA_ARCHITECTURES 80)
target_compile_definitions(my_kernels PRIVATE kTileSize=1024)
"""

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="needs git")


def recipes(heading: str) -> list[str]:
    """The blocks of code below a heading of the page."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^```\w+\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def run(*command: str | Path, cwd: Path, first: Path = PROGRAM.parent) -> subprocess.CompletedProcess[str]:
    """A command with `first` in front of PATH."""
    environment = {**os.environ, "PATH": f"{first}{os.pathsep}{os.environ['PATH']}"}
    given = [str(part) for part in command]
    return subprocess.run(given, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300)


def git(*arguments: str, cwd: Path) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main")
    done = run("git", *identity, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def copied(folder: Path) -> Path:
    """A copy of what of this checkout is installed."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in ("src", "grammar", "rules"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", ".pre-commit-hooks.yaml", "action.yml"):
        shutil.copy(ROOT / name, folder)
    return folder


def test_no_address_is_made_up() -> None:
    assert "OWNER" not in PAGE
    assert not re.findall(r"pip install ptxlint\b", PAGE)


def test_github(tmp_path: Path) -> None:
    """The step of the recipe with the inputs that it sets, run as a runner would."""
    (recipe,) = recipes("GitHub")
    (use,) = (step for step in yaml.safe_load(recipe) if step.get("uses", "").startswith("./"))
    action = yaml.safe_load((copied(tmp_path / use["uses"]) / "action.yml").read_text())
    given = {name: declared["default"] for name, declared in action["inputs"].items()}
    assert given.keys() >= use["with"].keys()
    given |= use["with"]
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "bad.ptx").write_text(PTX)
    (lint,) = (step for step in action["runs"]["steps"] if "PATHS" in step.get("env", ()))
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: str(given[match[1]]), value)
        for name, value in lint["env"].items()
    }
    assigned = [f"{name}={value}" for name, value in environment.items()]
    done = run("env", *assigned, "bash", "-eo", "pipefail", "-c", lint["run"], cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "::error file=build/bad.ptx" in done.stdout
    assert json.loads((tmp_path / use["with"]["sarif-file"]).read_text())["runs"][0]["results"]


def test_gitlab(tmp_path: Path) -> None:
    """In an environment of its own, from the folder that the recipe names."""
    (recipe,) = recipes("GitLab")
    job = yaml.safe_load(recipe)["ptxlint"]
    copied(tmp_path / job["variables"]["PTXLINT"])
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "bad.ptx").write_text(PTX)
    subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=tmp_path, check=True, timeout=120)
    assigned = [f"{name}={value}" for name, value in job["variables"].items()]
    script = "\n".join(job["script"])
    done = run("env", *assigned, "bash", "-e", "-c", script, cwd=tmp_path, first=tmp_path / "venv" / "bin")
    assert done.returncode == 1, done.stderr
    (issue, *_) = json.loads((tmp_path / job["artifacts"]["reports"]["codequality"]).read_text())
    assert issue["location"]["path"].startswith("build/bad.ptx")


@needs_git
class TestPreCommit:
    """Both forms stop a commit with a bad kernel, and let a clean one pass."""

    def project(self, folder: Path, recipe: str) -> Path:
        project = folder / "project"
        project.mkdir()
        git("init", cwd=project)
        (project / ".pre-commit-config.yaml").write_text(recipe)
        return project

    def check(self, project: Path, *, has_cuda: bool = False) -> None:
        command = (sys.executable, "-m", "pre_commit", "run", "--all-files")
        (project / "bad.ptx").write_text(PTX)
        (project / "notes.txt").write_text("not PTX")
        git("add", "--all", cwd=project)
        stopped = run(*command, cwd=project)
        assert stopped.returncode == 1, f"{stopped.stdout}{stopped.stderr}"
        assert "bad.ptx:70:2" in stopped.stdout
        assert "notes.txt" not in stopped.stdout
        assert ("k.cu!ptx" in stopped.stdout) == has_cuda
        (project / "bad.ptx").write_text(CLEAN)
        (project / "k.cu").unlink(missing_ok=True)
        git("add", "--all", cwd=project)
        passed = run(*command, cwd=project)
        assert passed.returncode == 0, f"{passed.stdout}{passed.stderr}"

    def test_the_ptxlint_that_is_there(self, tmp_path: Path) -> None:
        self.check(self.project(tmp_path, recipes("pre-commit")[0]))

    def test_a_clone(self, tmp_path: Path) -> None:
        hooks = copied(tmp_path / "hooks")
        git("init", cwd=hooks)
        git("add", "--all", cwd=hooks)
        git("commit", "-q", "-m", "hooks", cwd=hooks)
        git("tag", "v0.1.0", cwd=hooks)
        recipe = recipes("pre-commit")[1]
        assert "/path/to/ptxlint" in recipe
        recipe = recipe.replace("/path/to/ptxlint", str(hooks))
        has_cuda = shutil.which("nvcc") is not None
        project = self.project(tmp_path, recipe + "      - id: ptxlint-cuda\n" if has_cuda else recipe)
        if has_cuda:
            (project / "ptxlint.toml").write_text('nvcc-flags = ["-arch=sm_90a"]\n')
            shutil.copy(SOURCE, project / "k.cu")
        self.check(project, has_cuda=has_cuda)


@pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("nvcc"), reason="needs cmake and nvcc")
def test_cmake(tmp_path: Path) -> None:
    (recipe,) = recipes("CMake")
    (tmp_path / "CMakeLists.txt").write_text(LISTS + recipe)
    (tmp_path / "k.cu").write_text(SOURCE.read_text().replace("kTile = 1024", "kTile = kTileSize"))
    configured = run("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
    assert configured.returncode == 0, configured.stderr
    built = run("cmake", "--build", "build", "--target", "my_kernels_ptxlint", cwd=tmp_path)
    assert built.returncode != 0
    assert f"{tmp_path}/k.cu:24:13" in built.stdout


def test_many_machines(tmp_path: Path) -> None:
    (recipe,) = recipes("Many machines")
    shard, merge = recipe.strip().split("\n")
    (tmp_path / "build").mkdir()
    for number in range(12):
        (tmp_path / "build" / f"{number}.ptx").write_text(PTX if number % 3 == 0 else CLEAN)
    for number in range(1, 6):
        line = shard.replace("2/5", f"{number}/5").replace("ptxlint-2", f"ptxlint-{number}")
        assert run("bash", "-c", line, cwd=tmp_path).returncode == 0
    assert run("bash", "-c", merge, cwd=tmp_path).returncode == 1
    whole = "ptxlint check build/ --format sarif --output-file whole.sarif"
    assert run("bash", "-c", whole, cwd=tmp_path).returncode == 1
    assert _results(tmp_path / "ptxlint.sarif") == _results(tmp_path / "whole.sarif")


def test_a_gate(tmp_path: Path) -> None:
    (recipe,) = recipes("A gate over compiled kernels")
    write, check = recipe.strip().split("\n")
    (tmp_path / "dist").mkdir()

    def build(**modules: str) -> None:
        with zipfile.ZipFile(tmp_path / "dist" / "k.whl", "w") as wheel:
            for name, text in modules.items():
                wheel.writestr(f"{name}.ptx", text)

    build(known=PTX)
    assert run("bash", "-c", write, cwd=tmp_path).returncode == 0
    assert run("bash", "-c", check, cwd=tmp_path).returncode == 0
    build(known=PTX, new=PTX.replace("double_tiles", "other_tiles"))
    done = run("bash", "-c", check, cwd=tmp_path)
    assert done.returncode == 1
    assert "in kernel other_tiles" in done.stdout
    assert "in kernel double_tiles" not in done.stdout


def _results(path: Path) -> list[Any]:
    (log,) = json.loads(path.read_text())["runs"]
    return sorted((result["ruleId"], json.dumps(result["locations"])) for result in log["results"])
