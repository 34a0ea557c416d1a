"""What became of a mutant: illegal, found by which rules, or missed."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.corpus.assemble import assemble
from bench.corpus.linted import Found, found_in
from bench.mutants.mutant import Mutant
from ptxlint.lint import Options, lint_text

ILLEGAL, LEGAL, FOUND, MISSED, REDUNDANT = "illegal", "legal", "found", "missed", "redundant"


class Place(NamedTuple):
    """What two findings of the same fault share. Lines are kept by a mutation."""

    rule: str
    line: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of a mutant. `rules` are those that found it, with `:error` or `:warning`; `reason` says why a module
    whose mutant was missed was not analysed, or what ptxas said."""

    state: str
    rules: tuple[str, ...] = ()
    reason: str = ""


def places(text: str, options: Options) -> frozenset[Place]:
    """Where something is found in the text."""
    return frozenset(_place(found) for found in found_in(lint_text(text, "mutant", options)))


def is_legal(mutant: Mutant) -> bool:
    """Whether ptxas accepts the mutant."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.ptx"
        path.write_text(mutant.text, encoding="utf-8")
        return assemble(path).state == "accepted"


def judge(mutant: Mutant, known: frozenset[Place], options: Options) -> Outcome:
    """Lint the mutant; found is what the module itself, `known`, does not have."""
    report = lint_text(mutant.text, mutant.module, options)
    fresh = [found for found in found_in(report) if _place(found) not in known]
    if fresh:
        return Outcome(FOUND, tuple(sorted({f"{found.rule}:{found.severity}" for found in fresh})))
    reasons = [kernel.reason for kernel in report.kernels if kernel.reason]
    faults = [fault.error for fault in report.faults]
    return Outcome(MISSED, (), "; ".join((*faults, *reasons)))


def _place(found: Found) -> Place:
    return Place(found.rule, found.line)
