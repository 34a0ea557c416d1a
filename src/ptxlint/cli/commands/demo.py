"""`ptxlint demo`: a bundled kernel with a real bug, linted in front of the user."""

from __future__ import annotations

import os
from importlib.resources import files
from typing import Any

import click

from ptxlint import registry
from ptxlint.cli.commands.check import check_file
from ptxlint.cli.present import format_option, present
from ptxlint.lint import Options
from ptxlint.result import Report


@click.command()
@format_option
def command(**settings: Any) -> int:
    """Lint a bundled kernel that has a real bug, and show what a user would see."""
    path = str(files("ptxlint.demo") / "tile_store.ptx")
    near = os.path.relpath(path)
    path = path if near.startswith(os.pardir) else near
    report = Report((check_file(path, Options(registry.select())),))
    if settings["format_name"] == "full":
        click.echo(f"$ ptxlint check {path}\n")
    present(report, settings)
    return 0 if any(report.findings) else 3
