"""Puts a report on the terminal in the format asked for."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

import click

from ptxlint.report import Output, formats, writer
from ptxlint.result import Report

Command = TypeVar("Command", bound=Callable[..., Any])


def format_option(command: Command) -> Command:
    """Add `--format` and `--color`; `present` reads them."""
    colour = click.option(
        "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours: for terminals, or."
    )
    chosen = click.option(
        "--format",
        "format_name",
        type=click.Choice(formats()),
        default="full",
        show_default=True,
        help="Output format.",
    )
    return chosen(colour(command))


def present(report: Report, settings: dict[str, Any]) -> None:
    """Write the report to standard output."""
    stream = sys.stdout
    width = shutil.get_terminal_size().columns if stream.isatty() or "COLUMNS" in os.environ else None
    output = Output(stream, is_coloured(settings["color"], stream), width)
    writer(settings["format_name"])(report, output)


def is_coloured(choice: str, stream: TextIO) -> bool:
    """Whether the stream gets colours: NO_COLOR and dumb terminals do not, FORCE_COLOR does."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()
