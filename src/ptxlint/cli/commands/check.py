"""`ptxlint check`: lint files and report what is wrong."""

from __future__ import annotations

import re
from typing import Any

import click

from ptxlint import baseline
from ptxlint.cli.config_options import configured, rule_options
from ptxlint.cli.launch_options import launch_options
from ptxlint.cli.present import format_options, present
from ptxlint.cli.progress import tracked
from ptxlint.config import Config
from ptxlint.result import Report, Verdict
from ptxlint.rule import Severity
from ptxlint.run import Plan, reports
from ptxlint.suppression import settled

_RANKS = (Severity.INFO, Severity.WARNING, Severity.ERROR)


def part(ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, int]:
    """`I/N` as the two numbers, from 1."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise click.BadParameter(f"{text!r} is not a part and a number of parts, such as 2/5", ctx, param)
    return number, count


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@rule_options
@format_options
@click.option(
    "--fail-on",
    type=click.Choice([str(level) for level in Severity]),
    help="Exit with 1 from this severity on.  [warning]",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when there are findings.")
@click.option("--strict/--no-strict", default=None, help="Exit with 1 when a kernel could not be analysed.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing when nothing is wrong.")
@click.option("--baseline", "baseline_path", metavar="FILE", help="Hide the findings that are in this baseline.")
@click.option("--jobs", "-j", type=click.IntRange(0), metavar="N", help="Processes; 0, the default, for one a core.")
@click.option(
    "--shard", default="1/1", callback=part, metavar="I/N", help="Only part I of N of the files; see `ptxlint merge`."
)
@click.option("--debug", is_flag=True, help="Print the tracebacks of internal errors.")
@launch_options
def command(paths: tuple[str, ...], **settings: Any) -> int:
    """Lint PTX: files, folders of them, or standard input (-); without PATH, the working folder.

    Objects, libraries, executables, fatbins, static archives and wheels are searched for the PTX in them. CUDA C++ is
    compiled with nvcc first, with the flags that stand after --: `ptxlint check kernel.cu -- -arch=sm_90a`.

    Exit status: 0 clean, 1 findings, 2 usage or unreadable input, 3 internal error.
    """
    config, plan = configured(settings)
    known = baseline.read(config.baseline) if config.baseline else ()
    report = linted(plan, paths, settings["shard"])
    report, stale = baseline.unknown_in(report, known)
    status = exit_status(report, config, is_lenient=settings["exit_zero"])
    if not settings["quiet"] or status or any(report.findings):
        present(report, settings)
    if stale and not settings["quiet"]:
        message = f"{len(stale)} findings of the baseline are gone; `ptxlint baseline update` drops them."
        click.echo(message, err=True)
    if settings["debug"]:
        for fault in report.faults:
            click.echo(fault.traceback, err=True)
    return status


def linted(plan: Plan, paths: tuple[str, ...], shard: tuple[int, int] = (1, 1)) -> Report:
    """The report on the files that the paths stand for, or on every n-th of them for the shard (i, n)."""
    jobs = plan.jobs(paths or (".",), shard)
    return settled(tracked(reports(jobs, processes=plan.config.jobs), len(jobs)))


def exit_status(report: Report, config: Config, *, is_lenient: bool) -> int:
    """3 for a mistake of ours, 2 for an input that could not be read, 1 for findings, 0 for none."""
    if any(report.faults):
        return 3
    if any(file.problem for file in report.files):
        return 2
    failing = _RANKS[_RANKS.index(config.fail_on) :]
    is_found = any(finding.severity in failing for finding in report.findings) and not is_lenient
    is_missed = config.strict and any(kernel.verdict is Verdict.NOT_ANALYSED for kernel in report.kernels)
    return int(is_found or is_missed)
