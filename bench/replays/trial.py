"""What ptxlint says of a pair: how near to the fix it finds `before`, and whether it is silent about `after`."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from bench.replays.replay import Replay
from ptxlint.lint import Options, lint_text
from ptxlint.result import Diagnosis, FileReport, Verdict
from ptxlint.rule import Severity
from ptxlint.source import SourceLocation

NEAR = 3
"""A finding so many lines from the fix still points at it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`distance` is that of the nearest error of the rule from the fix, in lines; None when there is none.

    `named` is the distance of the nearest place that such an error names beside its own: where the memory was written,
    by what way the threads came there. `others` are the other rules that find something in `before`; `stray` all that
    find something in `after`. `milder` is the severity at which the rule finds `before` where it gives no error, empty
    when it finds nothing. `reasons` say what of the pair was not analysed, and what failed.
    """

    distance: int | None
    named: int | None
    others: tuple[str, ...]
    stray: tuple[str, ...]
    reasons: tuple[str, ...]
    milder: str = ""

    @property
    def is_found(self) -> bool:
        """Whether the mistake is found where the fix is."""
        return self.distance is not None and self.distance <= NEAR

    @property
    def is_named(self) -> bool:
        """Whether an error elsewhere names a place where the fix is."""
        return not self.is_found and self.named is not None and self.named <= NEAR

    @property
    def is_silent(self) -> bool:
        """Whether the corrected kernel gives no finding and was analysed."""
        return not self.stray and not self.reasons


def judge(replay: Replay, options: Options) -> Outcome:
    """Lint both halves of a pair, under the cluster that it states."""
    if replay.cluster:
        options = replace(options, launch=replace(options.launch, cluster=(replay.cluster, 1, 1)))
    before, after = (
        lint_text(replay.ptx(side).read_text(encoding="utf-8"), f"{side}.ptx", options) for side in ("before", "after")
    )
    errors = [item for item in before.findings if item.rule == replay.rule and item.severity is Severity.ERROR]
    lines = replay.fixed_lines()
    name = replay.located("before").name
    own = [distance(item.source, name, lines) for item in errors]
    named = [distance(place.source, name, lines) for item in errors for place in item.related]
    return Outcome(
        _nearest(own),
        _nearest(named),
        tuple(sorted({_described(item) for item in before.findings} - {f"{replay.rule}:{Severity.ERROR}"})),
        tuple(sorted({_described(item) for item in after.findings if item.severity is not Severity.INFO})),
        (*_reasons(before), *_reasons(after)),
        next((item.severity for item in before.findings if item.rule == replay.rule and not errors), ""),
    )


def distance(source: SourceLocation | None, file: str, lines: Collection[int]) -> int | None:
    """How far the nearest frame of a source chain is from the lines; None when none is in that file."""
    frames = source.frames() if source is not None else ()
    found = [frame.line for frame in frames if frame.file == file]
    return min((abs(line - fixed) for line in found for fixed in lines), default=None)


def _nearest(distances: Iterable[int | None]) -> int | None:
    return min((found for found in distances if found is not None), default=None)


def _described(finding: Diagnosis) -> str:
    return f"{finding.rule}:{finding.severity}"


def _reasons(report: FileReport) -> tuple[str, ...]:
    problem = (report.problem.message,) if report.problem is not None else ()
    unanalysed = (kernel.reason for kernel in report.kernels if kernel.verdict is Verdict.NOT_ANALYSED)
    return tuple(
        f"{report.path}: {reason}" for reason in (*problem, *unanalysed, *(str(fault.error) for fault in report.faults))
    )
