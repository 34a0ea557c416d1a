"""Puts a report on the terminal in the format asked for."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

import click

from ptxlint.cli.unusable import UnusableError
from ptxlint.report import Output, formats, writer
from ptxlint.result import Report

Command = TypeVar("Command", bound=Callable[..., Any])


_OPTIONS = (
    click.option(
        "--format",
        "format_name",
        type=click.Choice(formats()),
        default="full",
        show_default=True,
        help="Output format.",
    ),
    click.option("--output-file", "-o", metavar="FILE", help="Write the report there."),
    click.option("--statistics", is_flag=True, help="Print how often each rule fired instead of the findings."),
    click.option(
        "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="When to use colours."
    ),
)


def format_options(command: Command) -> Command:
    """Add the options; pass all settings to `present`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def present(report: Report, settings: dict[str, Any]) -> None:
    """Write the report to the file named, or to standard output."""
    write = _statistics(settings["format_name"]) if settings["statistics"] else writer(settings["format_name"])
    if settings["output_file"]:
        try:
            with open(settings["output_file"], "w", encoding="utf-8", errors="backslashreplace") as file:
                write(report, Output(file, settings["color"] == "always"))
        except OSError as error:
            raise UnusableError(f"{settings['output_file']} cannot be written: {error.strerror or error}") from error
        return
    stream = sys.stdout
    width = shutil.get_terminal_size().columns if stream.isatty() or "COLUMNS" in os.environ else None
    write(report, Output(stream, is_coloured(settings["color"], stream), width))


def _statistics(format_name: str) -> Callable[[Report, Output], None]:
    """Writes how often each rule fired: as JSON where the format is, else as lines."""
    return _statistics_as_json if format_name == "json" else _statistics_as_lines


def _statistics_as_lines(report: Report, output: Output) -> None:
    for code, rule, count in _counts(report):
        output.stream.write(f"{count:>6}  {code}  {rule}\n")


def _statistics_as_json(report: Report, output: Output) -> None:
    import json

    json.dump([{"code": code, "rule": rule, "count": count} for code, rule, count in _counts(report)], output.stream)
    output.stream.write("\n")


def _counts(report: Report) -> list[tuple[str, str, int]]:
    """Code, name and number of findings of each rule that fired, the most frequent first."""
    counts = Counter((finding.code, finding.rule) for finding in report.findings)
    return [(*rule, count) for rule, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))]


def is_coloured(choice: str, stream: TextIO) -> bool:
    """Whether the stream gets colours: NO_COLOR and dumb terminals do not, FORCE_COLOR does."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()
