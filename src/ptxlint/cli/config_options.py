"""The options that change the configuration for one run, and the configuration that comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from ptxlint import config, inputs
from ptxlint.cli.launch_options import launch_of
from ptxlint.config import Config
from ptxlint.rule import Severity
from ptxlint.run import Plan

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--select", metavar="RULES", help="Only these rules: names, codes, beginnings of codes (PTX4), ALL."),
    click.option("--extend-select", metavar="RULES", help="These rules too, beside those that are on."),
    click.option("--ignore", metavar="RULES", help="Not these rules."),
    click.option("--extend-include", metavar="GLOBS", help="These files too, beside *.ptx, when a folder is walked."),
    click.option("--exclude", metavar="GLOBS", help="Not these files, when a folder is walked."),
    click.option("--config", "config_path", metavar="FILE", help="Configuration file, instead of the nearest."),
    click.option("--isolated", is_flag=True, help="Read no configuration file."),
    click.option("--stdin-filename", metavar="FILE", default="<stdin>", help="What reports call standard input."),
    click.option("--no-cache", is_flag=True, help="Neither use nor keep results of other runs."),
    click.option(
        "--max-size",
        type=click.IntRange(1),
        default=inputs.SIZE_LIMIT >> 20,
        show_default=True,
        metavar="MIB",
        help="Do not read files larger than this.",
    ),
)


def rule_options(command: Command) -> Command:
    """Add the options; pass all settings to `configured`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def configured(settings: dict[str, Any]) -> tuple[Config, Plan]:
    """The configuration file with the command line's word on top, and the plan that follows from it.

    `--select` replaces what the file says about selection; the other lists add to it.
    """
    found = _file(settings)
    select = _listed(settings["select"])
    ignore, extend = _listed(settings["ignore"]), _listed(settings["extend_select"])
    merged = replace(
        found,
        select=select or found.select,
        ignore=ignore if select else (*found.ignore, *ignore),
        extend_select=extend if select else (*found.extend_select, *extend),
        extend_include=(*found.extend_include, *_listed(settings["extend_include"])),
        exclude=(*found.exclude, *_listed(settings["exclude"])),
        fail_on=Severity(settings.get("fail_on") or found.fail_on),
        strict=found.strict if settings.get("strict") is None else settings["strict"],
        baseline=settings.get("baseline_path") or found.in_folder(found.baseline),
        cache=found.cache and not settings["no_cache"],
        jobs=found.jobs if settings.get("jobs") is None else settings["jobs"],
    )
    flags = click.get_current_context().obj or ()
    return merged, Plan(merged, launch_of(settings), settings["max_size"] << 20, flags, settings["stdin_filename"])


def _file(settings: dict[str, Any]) -> Config:
    if settings["isolated"]:
        return Config()
    return config.load(settings["config_path"]) if settings["config_path"] else config.discover()


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
