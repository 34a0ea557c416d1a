"""The ways to install: wheel, sdist and editable, each in an empty environment, have every rule and every data file."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "src", "grammar", "rules")

QUIETLY = ("--quiet", "--disable-pip-version-check")


def _run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project as git would have it: without build folders and caches."""
    folder = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in PROJECT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def distributions(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--outdir", folder, checkout)
    return folder


@pytest.fixture(scope="module")
def environment(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The programs of an environment that has nothing but ptxlint and what its wheel says that it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", folder)
    _run(folder / "bin" / "pip", "install", *QUIETLY, next(distributions.glob("*.whl")))
    yield folder / "bin"
    shutil.rmtree(folder)


@pytest.fixture(params=["wheel", "sdist", "editable"])
def program(request: pytest.FixtureRequest, environment: Path, checkout: Path, distributions: Path) -> Path:
    """The `ptxlint` of the environment, after ptxlint itself was taken out and installed again in that way."""
    installed: list[str | Path] = ["-e", checkout]
    if request.param != "editable":
        installed = [next(distributions.glob({"wheel": "*.whl", "sdist": "*.tar.gz"}[request.param]))]
    _run(environment / "pip", "uninstall", *QUIETLY, "--yes", "ptxlint")
    assert not (environment / "ptxlint").exists()
    _run(environment / "pip", "install", *QUIETLY, "--no-deps", *installed)
    return environment / "ptxlint"


def test_it_has_every_rule_and_runs(program: Path) -> None:
    names = {line.split()[1].strip("()") for line in _run(program, "rules").splitlines()}
    assert names == {path.stem.replace("_", "-") for path in ROOT.glob("rules/**/*.py") if path.stem != "__init__"}
    assert "tile_store.cu" in _run(program, "demo")


def test_every_package_is_listed() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    roots = {"ptxlint": ROOT / "src/ptxlint", "ptxlint.grammar": ROOT / "grammar", "ptxlint.rules": ROOT / "rules"}
    there = {
        ".".join((name, *path.parent.relative_to(root).parts))
        for name, root in roots.items()
        for path in root.glob("**/*.py")
    }
    assert there == listed


def test_every_package_has_an_init() -> None:
    folders = {path.parent for root in ("src/ptxlint", "grammar", "rules") for path in (ROOT / root).glob("**/*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []
