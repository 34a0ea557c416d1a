"""`ptxlint check`: lint files and report what is wrong."""

from __future__ import annotations

from typing import Any

import click

from ptxlint import inputs, registry
from ptxlint.cli.launch_options import launch_of, launch_options
from ptxlint.cli.present import format_option, present
from ptxlint.cli.progress import tracked
from ptxlint.lint import Options, lint_text
from ptxlint.result import FileReport, Report, Verdict
from ptxlint.rule import Severity

_RANKS = (Severity.INFO, Severity.WARNING, Severity.ERROR)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--select", metavar="RULES", help="Only these rules: names, codes, beginnings of codes (PTX4) or ALL.")
@click.option("--extend-select", metavar="RULES", help="These rules too, beside those that are on.")
@click.option("--ignore", metavar="RULES", help="Not these rules.")
@format_option
@click.option(
    "--fail-on",
    type=click.Choice([str(rank) for rank in _RANKS]),
    default="warning",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when there are findings.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a kernel could not be analysed.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing when nothing is wrong.")
@click.option(
    "--max-size",
    type=click.IntRange(1),
    default=inputs.SIZE_LIMIT >> 20,
    show_default=True,
    metavar="MIB",
    help="Do not read files larger than this.",
)
@click.option("--debug", is_flag=True, help="Print the tracebacks of internal errors.")
@launch_options
def command(paths: tuple[str, ...], **settings: Any) -> int:
    """Lint PTX files, folders of them, or standard input (-); without PATH, the working folder.

    Exit status: 0 clean, 1 findings, 2 usage or unreadable input, 3 internal error.
    """
    options = Options(
        registry.select(*(_listed(settings[name]) for name in ("select", "ignore", "extend_select"))),
        launch_of(settings),
    )
    files = list(inputs.expand(paths or (".",)))
    limit = settings["max_size"] << 20
    report = Report(tuple(check_file(path, options, limit) for path in tracked(files)))
    status = exit_status(report, settings["fail_on"], is_strict=settings["strict"], is_lenient=settings["exit_zero"])
    if not (settings["quiet"] and status == 0 and not any(report.findings)):
        present(report, settings)
    if settings["debug"]:
        for fault in report.faults:
            click.echo(fault.traceback, err=True)
    return status


def check_file(path: str, options: Options, limit: int = inputs.SIZE_LIMIT) -> FileReport:
    """The report on a file, whether or not it can be read."""
    shown = "<stdin>" if path == inputs.STDIN else path
    try:
        text = inputs.read(path, limit)
    except inputs.UnreadableError as error:
        return FileReport(shown, problem=error.problem)
    return lint_text(text, shown, options)


def exit_status(report: Report, fail_on: str, *, is_strict: bool, is_lenient: bool) -> int:
    """3 for a mistake of ours, 2 for an input that could not be read, 1 for findings, 0 for none."""
    if any(report.faults):
        return 3
    if any(file.problem for file in report.files):
        return 2
    failing = _RANKS[_RANKS.index(Severity(fail_on)) :]
    is_found = any(finding.severity in failing for finding in report.findings) and not is_lenient
    is_missed = is_strict and any(kernel.verdict is Verdict.NOT_ANALYSED for kernel in report.kernels)
    return int(is_found or is_missed)


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
