"""What ptxlint says of one module, and what ptxas spends on it beside it."""

import os
import pickle
import re
import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path

from bench.corpus.assemble import assemble
from ptxlint.cache import key
from ptxlint.lint import Options
from ptxlint.result import Diagnosis, FileReport
from ptxlint.run import lint_module

_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|weak)[ \t]+)?\.entry[ \t]+([\w$%]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """A module to lint; `is_timed` has ptxas assemble it beside."""

    path: Path
    is_timed: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, with what triage and the table need of it. `source` is `file:line` of each frame, innermost first."""

    kernel: str
    rule: str
    severity: str
    line: int
    source: tuple[str, ...]
    message: str
    assumptions: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Linted:
    """The report on one module. Seconds are those of the processor: the machine may be busy with other work."""

    path: Path
    kernels: tuple[tuple[str, str, str], ...]
    """Name, verdict and reason of each kernel."""
    findings: tuple[Found, ...]
    faults: tuple[str, ...]
    seconds: float
    ptxas_seconds: float | None

    @property
    def project(self) -> str:
        """The project that the module was built from."""
        return self.path.parent.name

    @property
    def module(self) -> str:
        """The module's name."""
        return self.path.stem


def lint(task: Task, options: Options, store: Path) -> Linted:
    """Lint a module in this process, under a plain configuration; what the same code said of it before is kept in a
    folder."""
    text = task.path.read_text(encoding="utf-8", errors="replace")
    kept = store / f"{key(text, options)}{'-timed' * task.is_timed}.pickle"
    if kept.is_file():
        earlier = pickle.loads(kept.read_bytes())
        assert isinstance(earlier, Linted)
        return replace(earlier, path=task.path)
    began = time.process_time()
    report = lint_module(text, str(task.path), options)
    seconds = time.process_time() - began
    faults = [f"{fault.kernel or '?'}: {fault.rule or 'engine'}: {fault.error}" for fault in report.faults]
    linted = Linted(
        task.path,
        tuple((kernel.name, str(kernel.verdict), kernel.reason) for kernel in report.kernels),
        found_in(report),
        (*faults, *((f"unreadable: {report.problem.message}",) if report.problem else ())),
        round(seconds, 3),
        ptxas_seconds(task.path) if task.is_timed else None,
    )
    store.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(pickle.dumps(linted))
    unfinished.replace(kept)
    return linted


def unanswered(path: Path, reason: str, seconds: float) -> Linted:
    """What to say of a module that gave no answer: each of its kernels is not analysed, for that reason."""
    text = path.read_text(encoding="utf-8", errors="replace")
    kernels = tuple((name, "not-analysed", reason) for name in _ENTRY.findall(text))
    return Linted(path, kernels, (), (), seconds, None)


def found_in(report: FileReport) -> tuple[Found, ...]:
    """The findings of a report."""
    return tuple(map(_found, report.findings))


def _found(finding: Diagnosis) -> Found:
    frames = finding.source.frames() if finding.source else ()
    return Found(
        finding.kernel,
        finding.rule,
        str(finding.severity),
        finding.line,
        tuple(f"{Path(frame.file).name}:{frame.line}" for frame in frames),
        finding.message,
        finding.assumptions,
        finding.fingerprint,
    )


def ptxas_seconds(path: Path) -> float:
    """Seconds of the processor that ptxas takes for a module."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assemble(path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3)
