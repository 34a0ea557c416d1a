"""Virtual environments: made once for each set of requirements, and again when the set changes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from bench.corpus.project import Project

_STAMP = "requirements.installed"


class MissingPythonError(RuntimeError):
    """No interpreter of the version that a project asks for is on the PATH."""


def environment_name(project: Project, projects: Iterable[Project]) -> str:
    """The first project that needs the same packages: its environment serves all of them."""
    needs = (project.python, project.requirements)
    return min(each.name for each in [project, *projects] if (each.python, each.requirements) == needs)


def ensure_environment(project: Project, folder: Path) -> Path:
    """Return the environment's interpreter, with the project's requirements installed.

    Raises: MissingPythonError, subprocess.CalledProcessError
    """
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / _STAMP
    wanted = "\n".join(project.requirements)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    if not python.exists():
        subprocess.run([_interpreter(project), "-m", "venv", str(folder)], check=True)
    if project.requirements:
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([str(python), "-m", "pip", "install", *quiet, *project.requirements], check=True)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def _interpreter(project: Project) -> str:
    if project.python is None or project.python == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{project.python}")
    if found is None:
        raise MissingPythonError(f"{project.name} needs python{project.python}, which is not on the PATH")
    return found
