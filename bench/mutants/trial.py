"""What became of a mutant: illegal, found by which rules, or missed."""

import shutil
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.corpus.assemble import assemble
from bench.corpus.linted import found_in
from bench.mutants.mutant import Mutant
from ptxlint.lint import Options, lint_text
from ptxlint.result import Verdict

ILLEGAL, LEGAL, FOUND, MISSED, REDUNDANT = "illegal", "legal", "found", "missed", "redundant"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of a mutant.

    `rules` are those that found it, with `:error` or `:warning`; `reason` says why a module whose mutant was missed was
    not analysed, or why the mutant is redundant. Seconds are of the clock for ptxas and of the processor for ptxlint.
    """

    state: str
    rules: tuple[str, ...] = ()
    reason: str = ""
    ptxas_seconds: float = field(default=0.0, compare=False)
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Original:
    """What ptxlint says of a module that nothing was done to. `blemish` says why it is not mutated, if it is not."""

    blemish: str
    seconds: float


def original(text: str, options: Options) -> Original:
    """Lint the module itself: it must be clean, all of it."""
    began = time.process_time()
    report = lint_text(text, "original", options)
    unclean = [kernel for kernel in report.kernels if kernel.verdict is not Verdict.CLEAN]
    findings = [f"{found.rule} at line {found.line}" for found in found_in(report)]
    blemishes = [*findings, *(kernel.reason for kernel in unclean if kernel.reason), *(f.error for f in report.faults)]
    if report.problem is not None:
        blemishes.append(report.problem.message)
    return Original("; ".join(blemishes), time.process_time() - began)


def has_ptxas() -> bool:
    """Whether this machine can say which mutants are legal."""
    return shutil.which("ptxas") is not None


def is_legal(mutant: Mutant) -> bool:
    """Whether ptxas accepts the mutant."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.ptx"
        path.write_text(mutant.text, encoding="utf-8")
        return assemble(path).state == "accepted"


def judge(mutant: Mutant, options: Options) -> Outcome:
    """Lint the mutant of a clean module: whatever is found is the mutation."""
    began = time.process_time()
    report = lint_text(mutant.text, mutant.module, options)
    rules = tuple(sorted({f"{found.rule}:{found.severity}" for found in found_in(report)}))
    seconds = round(time.process_time() - began, 3)
    if rules:
        return Outcome(FOUND, rules, seconds=seconds)
    reasons = [kernel.reason for kernel in report.kernels if kernel.reason]
    faults = [fault.error for fault in report.faults]
    return Outcome(MISSED, (), "; ".join((*faults, *reasons)), seconds=seconds)


def assembled(mutant: Mutant) -> Outcome:
    """Legal or illegal, with the time that ptxas took."""
    began = time.monotonic()
    outcome = Outcome(LEGAL if is_legal(mutant) else ILLEGAL)
    return replace(outcome, ptxas_seconds=round(time.monotonic() - began, 3))
