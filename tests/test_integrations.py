"""Other people's tools: GitHub's runner and a dask cluster; tests/test_recipes.py has more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

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
