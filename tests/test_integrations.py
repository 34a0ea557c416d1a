"""Other people's tools, the real ones: CMake, pre-commit, a dask cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from distributed import Client, LocalCluster

import ptxlint
from ptxlint.config import Config
from ptxlint.launch import Launch
from ptxlint.run import Plan, reports

ROOT = Path(__file__).parent.parent
SOURCE = Path(str(files("ptxlint.demo") / "tile_store.cu"))
PTX = SOURCE.with_suffix(".ptx").read_text()
CLEAN = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
PROGRAM = Path(sys.executable).parent / "ptxlint"

LISTS = """
cmake_minimum_required(VERSION 3.24)
project(demo LANGUAGES CXX CUDA)
execute_process(COMMAND ${PTXLINT_EXECUTABLE} cmake-dir OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE)
list(APPEND CMAKE_MODULE_PATH "${folder}")
include(PtxlintCheck)
add_library(kernels STATIC k.cu)
set_target_properties(kernels PROPERTIES CUDA_ARCHITECTURES 90a)
target_compile_definitions(kernels PRIVATE kTileSize=1024)
ptxlint_check(kernels OPTIONS --format concise)
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("nvcc"), reason="needs cmake and nvcc")
def test_cmake(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(LISTS)
    (tmp_path / "k.cu").write_text(SOURCE.read_text().replace("kTile = 1024", "kTile = kTileSize"))
    configured = run("cmake", "-S", ".", "-B", "build", f"-DPTXLINT_EXECUTABLE={PROGRAM}", cwd=tmp_path)
    assert configured.returncode == 0, configured.stderr
    built = run("cmake", "--build", "build", "--target", "kernels_ptxlint", cwd=tmp_path)
    assert built.returncode != 0
    assert f"[{tmp_path}/k.cu:24:13]" in built.stdout


def test_the_github_action(tmp_path: Path) -> None:
    """Its last step, run as a runner would: annotations, a SARIF file, and the status of `check`."""
    (step,) = (
        step
        for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
        if "PATHS" in step.get("env", ())
    )
    for name, text in (("bad.ptx", PTX), ("clean.ptx", CLEAN)):
        (tmp_path / name).write_text(text)

    def action(paths: str, sarif: str) -> subprocess.CompletedProcess[str]:
        given = {"PATHS": paths, "ARGUMENTS": "--isolated", "FORMAT": "github", "SARIF": sarif}
        assert given.keys() == step["env"].keys()
        environment = {**os.environ, **given, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    wrong = action("bad.ptx clean.ptx", "out.sarif")
    assert wrong.returncode == 1, wrong.stderr
    assert "::error " in wrong.stdout or "::warning " in wrong.stdout
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert action("clean.ptx", "").returncode == 0
    assert action("nowhere.ptx", "out.sarif").returncode == 2


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_pre_commit(tmp_path: Path) -> None:
    """The hook is installed from a copy of this checkout, and stops a commit."""
    git = ("git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main")
    hooks, project = tmp_path / "hooks", tmp_path / "project"
    hooks.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in ("src", "grammar", "rules"):
        shutil.copytree(ROOT / name, hooks / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, hooks)
    project.mkdir()
    for folder in (hooks, project):
        run(*git, "init", cwd=folder)
    run(*git, "add", "--all", cwd=hooks)
    assert run(*git, "commit", "-q", "-m", "hooks", cwd=hooks).returncode == 0
    revision = run(*git, "rev-parse", "HEAD", cwd=hooks).stdout.strip()
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n  - id: ptxlint\n"
    )
    (project / "bad.ptx").write_text(PTX)
    (project / "notes.txt").write_text("not PTX")
    run(*git, "add", "--all", cwd=project)
    pre_commit = (sys.executable, "-m", "pre_commit", "run", "--all-files")
    stopped = run(*pre_commit, cwd=project)
    assert stopped.returncode == 1, f"{stopped.stdout}{stopped.stderr}"
    assert "bad.ptx:70:2" in stopped.stdout
    assert "notes.txt" not in stopped.stdout
    (project / "bad.ptx").write_text(CLEAN)
    run(*git, "add", "--all", cwd=project)
    passed = run(*pre_commit, cwd=project)
    assert passed.returncode == 0, f"{passed.stdout}{passed.stderr}"


def test_a_dask_cluster(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.ptx").write_text(PTX.replace("double_tiles", f"tiles_{number}"))
    paths = sorted(map(str, tmp_path.iterdir()))
    plan = Plan(Config(cache=False), Launch())
    expected = list(reports([plan.job(path) for path in paths]))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
        client.get_executor() as executor,
    ):
        report = ptxlint.check(*paths, executor=executor)
    assert list(report.files) == expected
    assert all(file.findings for file in report.files)
