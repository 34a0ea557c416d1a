"""Linting from Python: `ptxlint.check(path_or_text)`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlint.config import Config
from ptxlint.launch import Launch
from ptxlint.result import Report
from ptxlint.run import Plan, lint_module, reports
from ptxlint.suppression import settled

if TYPE_CHECKING:
    from concurrent.futures import Executor

Input = str | os.PathLike[str]


def check(
    *what: Input,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    launch: Launch | None = None,
    config: Config | None = None,
    executor: Executor | None = None,
    jobs: int = 1,
) -> Report:
    """Lint PTX and return what was found.

    Each input is a path of a file or folder, or PTX itself: a string with a line break in it. No configuration file is
    read; pass `config` (see `ptxlint.config.load`). An `executor` runs the files wherever it likes, as any
    `concurrent.futures.Executor` does; otherwise `jobs` processes do (0: one a core). Input that cannot be read is
    a `problem` in its file's report, never an exception.

    Raises: registry.UnknownSelectorError for a rule that is not there.
    """
    settings = config or Config(cache=False)
    settings = replace(settings, select=tuple(select) or settings.select, ignore=(*settings.ignore, *ignore))
    plan = Plan(settings, launch or Launch())
    texts = [entry for entry in what if isinstance(entry, str) and "\n" in entry]
    paths = [os.fspath(entry) for entry in what if entry not in texts]
    of_texts = (lint_module(text, "<string>", plan.options) for text in texts)
    return settled((*of_texts, *reports(plan.jobs(paths), executor, jobs)))
