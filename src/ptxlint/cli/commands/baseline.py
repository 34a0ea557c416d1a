"""`ptxlint baseline`: accept today's findings, so that only new ones count."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from ptxlint.baseline import Known, known_in, read, write
from ptxlint.cli.commands.check import linted
from ptxlint.cli.config_options import configured, rule_options
from ptxlint.cli.launch_options import launch_options
from ptxlint.cli.unusable import UnusableError
from ptxlint.config import discover

DEFAULT = "ptxlint-baseline.json"

_file_option = click.option(
    "--baseline", "baseline_path", metavar="FILE", help=f"The baseline file.  [configured, else {DEFAULT}]"
)


@click.group()
def command() -> None:
    """Accept today's findings: `check --baseline FILE` hides them and reports new ones only."""


def _linting(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("paths", nargs=-1, metavar="[PATH]...")(_file_option(rule_options(launch_options(function))))


@command.command("write")
@_linting
def write_command(paths: tuple[str, ...], **settings: Any) -> None:
    """Write a new baseline with all findings in the paths."""
    file, found = _findings(paths, settings)
    if os.path.exists(file):
        raise UnusableError(f"{file} exists; `ptxlint baseline update` replaces it")
    write(file, found)
    click.echo(f"{file}: {len(found)} findings accepted.")


@command.command("update")
@_linting
def update_command(paths: tuple[str, ...], **settings: Any) -> None:
    """Replace the baseline by the findings in the paths, and say what changed."""
    file, found = _findings(paths, settings)
    before = {entry.fingerprint for entry in read(file)} if os.path.exists(file) else set()
    after = {entry.fingerprint for entry in found}
    write(file, found)
    click.echo(f"{file}: {len(found)} findings accepted, {len(after - before)} new, {len(before - after)} gone.")


@command.command("show")
@_file_option
def show_command(baseline_path: str | None) -> None:
    """Print what the baseline accepts."""
    found = discover()
    for entry in read(baseline_path or found.in_folder(found.baseline) or DEFAULT):
        click.echo(f"{entry.fingerprint}  {entry.rule}  {entry.path}  {entry.kernel}: {entry.message}")


def _findings(paths: tuple[str, ...], settings: dict[str, Any]) -> tuple[str, tuple[Known, ...]]:
    """The baseline file and the findings. Raises UnusableError when some of the input could not be linted."""
    config, plan = configured(settings)
    report = linted(plan, paths)
    for file in report.files:
        if file.problem:
            raise UnusableError(f"{file.path}: {file.problem.message}; nothing was written")
    for fault in report.faults:
        raise UnusableError(f"ptxlint itself failed: {fault}; nothing was written")
    return config.baseline or DEFAULT, known_in(report)
