"""`ptxlint demo`: a bundled kernel with a real bug, linted in front of the user."""

from __future__ import annotations

import os
from importlib.resources import files
from typing import Any

import click

from ptxlint.cli.present import format_options, present
from ptxlint.config import Config
from ptxlint.launch import Launch
from ptxlint.result import Report
from ptxlint.run import Plan, lint_input


@click.command()
@format_options
def command(**settings: Any) -> int:
    """Lint a bundled kernel that has a real bug, and show what a user would see."""
    path = str(files("ptxlint.demo") / "tile_store.ptx")
    near = os.path.relpath(path)
    path = path if near.startswith(os.pardir) else near
    report = Report(lint_input(Plan(Config(cache=False), Launch()).job(path)))
    if settings["format_name"] == "full":
        click.echo(f"$ ptxlint check {path}\n")
    present(report, settings)
    return 0 if any(report.findings) else 3
