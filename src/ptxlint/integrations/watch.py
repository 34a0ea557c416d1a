"""Lints each kernel at the moment it is compiled, and does with the findings what the user wants."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from io import StringIO
from types import TracebackType
from typing import Literal

from ptxlint.config import Config
from ptxlint.launch import Launch
from ptxlint.report import Output, writer
from ptxlint.result import FileReport, Report
from ptxlint.run import Plan, lint_module

Reaction = Literal["warn", "raise", "collect"]
"""A `KernelWarning`, a `KernelError` out of the compiler, or nothing: the reports are kept in any case."""

Seen = Callable[[str, str], None]
"""Takes the name of a compiled kernel and its PTX."""


class KernelWarning(UserWarning):
    """A compiled kernel has findings; the text shows them."""


class KernelError(Exception):
    """A compiled kernel has findings; the text shows them, `report` holds them."""

    def __init__(self, report: FileReport) -> None:
        super().__init__(shown(report))
        self.report = report


class Watch:
    """A compiler that is being watched, until `stop`; in a `with` statement, until its end.

    `reports` holds one report for each kernel that was compiled, in order; a kernel that is compiled again unchanged
    is not reported again.
    """

    def __init__(
        self,
        attach: Callable[[Seen], Callable[[], None]],
        reaction: Reaction = "warn",
        config: Config | None = None,
        launch: Launch | None = None,
    ) -> None:
        self.reports: list[FileReport] = []
        self._known: set[str] = set()
        self._reaction = reaction
        self._plan = Plan(config or Config(cache=False), launch or Launch())
        self._detach: Callable[[], None] | None = attach(self._see)

    def stop(self) -> None:
        """Leave the compiler as it was."""
        if self._detach is not None:
            self._detach()
            self._detach = None

    def _see(self, name: str, text: str) -> None:
        if text in self._known:
            return
        self._known.add(text)
        job = self._plan.job(name)
        report = lint_module(text, name, job.options, is_cached=job.is_cached)
        self.reports.append(report)
        if not is_wrong(report):
            return
        if self._reaction == "raise":
            raise KernelError(report)
        if self._reaction == "warn":
            warnings.warn(shown(report), KernelWarning, stacklevel=3)

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def is_wrong(report: FileReport) -> bool:
    """Whether there is anything that a user must see: a finding, PTX that cannot be read, a mistake of our own."""
    return bool(report.findings or report.problem or report.faults)


def shown(report: FileReport) -> str:
    """The report as `ptxlint check` prints it."""
    stream = StringIO()
    writer("full")(Report((report,)), Output(stream))
    return stream.getvalue().rstrip()
