"""A source of PTX: one script in ``projects/``, with the packages that it needs.

The script starts with the constant ``REQUIREMENTS`` (pinned packages) and perhaps ``PYTHON = "3.12"``. It runs in its
own virtual environment as ``python -P projects/NAME.py --out FOLDER --jobs N`` (``-P``: a script named like a package
must not shadow it), writes ``FOLDER/*.ptx`` and ``FOLDER/manifest.json``, and skips the modules that are there.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "projects"


class ProjectError(ValueError):
    """A project script lacks a constant, or a constant is not a literal of the right type."""


@dataclass(frozen=True, slots=True)
class Project:
    """What the framework must know before it can run a project's script."""

    name: str
    script: Path
    requirements: tuple[str, ...]
    python: str | None
    """Minor version of Python that the packages need (``"3.12"``); none: the one that runs the framework."""


def read_project(script: Path) -> Project:
    """Read the constants of a script without importing it: its packages need not be installed here.

    Raises: ProjectError
    """
    constants = dict(_constants(ast.parse(script.read_text(encoding="utf-8"))))
    requirements, python = constants.get("REQUIREMENTS"), constants.get("PYTHON")
    if not isinstance(requirements, tuple) or not all(isinstance(each, str) for each in requirements):
        raise ProjectError(f"{script}: REQUIREMENTS must be a tuple of strings")
    if python is not None and not isinstance(python, str):
        raise ProjectError(f"{script}: PYTHON must be a string")
    return Project(script.stem, script, requirements, python)


def _constants(module: ast.Module) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in {"REQUIREMENTS", "PYTHON"}:
                found.append((name, ast.literal_eval(value)))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name in {
                "REQUIREMENTS",
                "PYTHON",
            }:
                found.append((name, ast.literal_eval(value)))
    return found


def all_projects() -> list[Project]:
    """Every project, by name."""
    return [read_project(script) for script in sorted(SCRIPTS.glob("*.py")) if not script.name.startswith("_")]
