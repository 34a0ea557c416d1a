"""A run over many inputs: what applies to each, in which processes, and what came out, in the order given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlint import compiler_caches, inputs, registry
from ptxlint.classes import dataclass
from ptxlint.config import Config
from ptxlint.launch import Launch
from ptxlint.lint import Options, lint_text
from ptxlint.result import FileReport
from ptxlint.suppression import suppressed
from ptxlint.unreadable import UnreadableError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pathspec import GitIgnoreSpec

WORTH_A_PROCESS = 1 << 20
"""Bytes of input from which on starting more processes pays."""


@dataclass(frozen=True, slots=True)
class Job:
    """One input and all that linting it needs; it can be sent to another process.

    `flags` are for nvcc; `copies` are files with the same kernel, which are left out.
    """

    path: str
    options: Options
    limit: int = inputs.SIZE_LIMIT
    is_cached: bool = False
    flags: tuple[str, ...] = ()
    stdin_name: str = "<stdin>"
    copies: tuple[str, ...] = ()


class Plan:
    """What to look for in which file: the configuration, after the command line has had its say.

    Raises registry.UnknownSelectorError when the configuration names a rule that is not there.
    """

    def __init__(
        self,
        config: Config,
        launch: Launch,
        limit: int = inputs.SIZE_LIMIT,
        flags: tuple[str, ...] = (),
        stdin_name: str = "<stdin>",
    ) -> None:
        self.config = config
        self.limit = limit
        self.flags = (*config.nvcc_flags, *flags)
        self.stdin_name = stdin_name
        registry.expanded((*config.select, *config.ignore, *config.extend_select))
        severities = {name: level for key, level in config.severity.items() for name in registry.expanded([key])}
        self.selection = registry.Selection(config.select, config.ignore, config.extend_select)
        self.options = Options(
            self.selection,
            launch,
            config.launches,
            severities,
            tuple((pattern, registry.expanded(rules)) for pattern, rules in config.per_kernel_ignores.items()),
        )
        self._ignores = [
            (_spec([pattern]), registry.expanded(rules)) for pattern, rules in config.per_file_ignores.items()
        ]
        self._included = _spec(config.extend_include) if config.extend_include else None
        self._excluded = _spec(config.exclude) if config.exclude else None

    def files(self, paths: Iterable[str]) -> list[str]:
        """The files that the paths stand for. What is named itself is taken even when it is excluded."""
        named = dict.fromkeys(paths)
        found = inputs.expand(named, self._is_included)
        return [path for path in found if path in named or not self._is_excluded(path)]

    def jobs(self, paths: Iterable[str], shard: tuple[int, int] = (1, 1)) -> list[Job]:
        """The jobs for what the paths stand for, or for every n-th of the files for the shard (i, n)."""
        number, count = shard
        chosen = list(compiler_caches.distinct(self.files(paths)).items())[number - 1 :: count]
        return [replace(self.job(path), copies=copies) for path, copies in chosen]

    def job(self, path: str) -> Job:
        """The job for one of the files."""
        relative = self._relative(self.stdin_name if path == inputs.STDIN else path)
        ignored = frozenset(name for spec, names in self._ignores if spec.match_file(relative) for name in names)
        options = replace(self.options, selected=replace(self.selection, without=ignored))
        return Job(path, options, self.limit, self.config.cache, self.flags, self.stdin_name)

    def _is_included(self, path: str) -> bool:
        also = self._included
        return (
            inputs.is_ptx(path)
            or compiler_caches.is_kernel(path)
            or (also is not None and also.match_file(self._relative(path)))
        )

    def _is_excluded(self, path: str) -> bool:
        return self._excluded is not None and self._excluded.match_file(self._relative(path))

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.config.folder)


def reports(jobs: Sequence[Job], executor: Executor | None = None, processes: int = 0) -> Iterator[FileReport]:
    """The report on each input, in order: through the executor, or in as many processes as pay (0: one a core)."""
    if executor is not None:
        yield from _flat(executor.map(lint_input, jobs))
        return
    processes = min(processes or os.cpu_count() or 1, len(jobs))
    if processes < 2 or sum(map(_size, jobs)) < WORTH_A_PROCESS:
        yield from _flat(map(lint_input, jobs))
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(processes) as pool:
        try:
            yield from _flat(pool.map(lint_input, jobs))
        except (KeyboardInterrupt, GeneratorExit):
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def lint_input(job: Job) -> tuple[FileReport, ...]:
    """The reports on one input, whether or not it can be read: one for each PTX module in it."""
    return tuple(_reports_on(job))


def _reports_on(job: Job) -> Iterator[FileReport]:
    entry = compiler_caches.entry(job.path)
    options = replace(job.options, known=entry.launch) if entry else job.options
    try:
        for unit in inputs.units(job.path, job.limit, job.flags, job.stdin_name):
            report = lint_module(unit.text, unit.name, options, is_cached=job.is_cached)
            yield replace(report, origin=entry.origin, copies=job.copies) if entry else report
    except UnreadableError as error:
        shown = job.stdin_name if job.path == inputs.STDIN else job.path
        yield FileReport(shown, problem=error.problem)


def lint_module(text: str, path: str, options: Options, *, is_cached: bool = False) -> FileReport:
    """The report on one module, after the comments that silence findings; from the cache when it is there."""
    report = _from_cache(text, path, options) if is_cached else lint_text(text, path, options)
    return suppressed(report, text, options.rule_names)


def _from_cache(text: str, path: str, options: Options) -> FileReport:
    from ptxlint import cache

    name = cache.key(text, options)
    report = cache.load(name, path)
    if report is None:
        report = lint_text(text, path, options)
        if not report.faults:
            cache.store(name, report)
    return report


def _flat(groups: Iterable[tuple[FileReport, ...]]) -> Iterator[FileReport]:
    return (report for group in groups for report in group)


def _size(job: Job) -> int:
    return os.path.getsize(job.path) if os.path.isfile(job.path) else 0


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)
