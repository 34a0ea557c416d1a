"""The format for people: the user's source line first, then the PTX line, the witness, the assumptions and the help."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial

from ptxlint.excerpt import cropped, source_line, split
from ptxlint.fault import request
from ptxlint.report import Output
from ptxlint.result import Diagnosis, FileReport, Origin, Place, Report, Verdict
from ptxlint.rule import Severity
from ptxlint.source import SourceLocation

Segment = tuple[str, str]
"""Text and its style; the styles are the keys of `STYLES`."""

STYLES = {
    "": "",
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold blue",
    "bold": "bold",
    "place": "cyan",
    "dim": "dim",
    "good": "bold green",
}

_ENDED = {Verdict.CLEAN: "clean", Verdict.FINDINGS: "with findings", Verdict.NOT_ANALYSED: "not analysed"}
"""How many kernels ended so, in words after their number."""

WITNESS_LIMIT = 12
"""Steps of a witness that are printed: the first and the last ones; `--format json` has them all."""


def write(report: Report, output: Output) -> None:
    """Write every finding as a paragraph, then a summary that names the kernels that were not analysed."""
    lines = (line for file in report.files for line in _file(file, output.width or 120))
    _print([*lines, *_summary(report)], output)


def _print(lines: list[list[Segment]], output: Output) -> None:
    if not output.is_coloured:
        output.stream.writelines("".join(text for text, _ in line).rstrip() + "\n" for line in lines)
        return
    from rich.console import Console
    from rich.text import Text

    width = output.width or 120
    console = Console(file=output.stream, force_terminal=True, width=width, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((text, STYLES[style]) for text, style in line)), soft_wrap=True)


def _file(file: FileReport, width: int) -> Iterator[list[Segment]]:
    if file.problem:
        position = f":{file.problem.line}:{file.problem.column}" if file.problem.line else ""
        yield [("error", "error"), (f": {file.path}{position}", "bold"), (f": {file.problem.message}", "")]
        yield []
    for finding in file.findings:
        yield from _finding(file, finding, width)
        yield []
    for message, places in _grouped(place for place in file.remarks if place.line).items():
        lines = ", ".join(str(place.line) for place in places[:5]) + (", ..." if len(places) > 5 else "")
        yield [("note", "info"), (f": {file.path}:{lines}: {message}", "")]
    for place in file.remarks:
        if not place.line:
            yield [("note", "info"), (f": {_origin(place)}: {place.message}", "")]
    for fault in file.faults:
        yield [("internal error", "error"), (f": {fault}", "")]


def _finding(file: FileReport, finding: Diagnosis, width: int) -> Iterator[list[Segment]]:
    path = file.path
    style = str(finding.severity)
    yield [(f"{style}[{finding.code}]", style), (f" {finding.rule}", "bold"), (f": {finding.message}", "")]
    ptx = f"{path}:{finding.line}:{finding.column}"
    gutter = len(str(max(finding.line, finding.source.line if finding.source else 0)))
    excerpt = partial(_excerpt, gutter=gutter, width=width, style=style)
    if finding.source:
        wrappers, frames = split(finding.source, path)
        yield [(" " * gutter + "--> ", "dim"), *_frame(frames[0])]
        yield from excerpt(frames[0].line, frames[0].column, source_line(frames[0], path))
        for how, others in (("in", reversed(wrappers)), ("inlined at", frames[1:])):
            yield from ([(" " * gutter + "  = ", "dim"), (f"{how} ", ""), *_frame(frame)] for frame in others)
    yield [(" " * gutter + "--> ", "dim"), (ptx, "place"), (f" in kernel {finding.kernel}", "")]
    yield from excerpt(finding.line, finding.column, finding.excerpt)
    notes = (*_compiled(file.origin), *_notes(path, finding))
    yield from ([(" " * gutter + "  = ", "dim"), *segments] for segments in notes)


def _compiled(origin: Origin | None) -> Iterator[list[Segment]]:
    """What the cache of a compiler says of the kernel."""
    if origin is None:
        return
    place = [(" from ", ""), (f"{origin.source.file}:{origin.source.line}", "place")] if origin.source else []
    purpose = f", generated for {origin.purpose}" if origin.purpose else ""
    yield [(f"compiled by {origin.compiler}", ""), *place, (purpose, "")]


def _notes(path: str, finding: Diagnosis) -> Iterator[list[Segment]]:
    for place in finding.related:
        yield [(_origin(place) or f"{path}:{place.line}", "place"), (f": {place.message} (PTX line {place.line})", "")]
    if finding.witness:
        yield [("how it happens:", "bold")]
    for step in _shortened(finding.witness):
        line = _user_line(step) or (f"line {step.line}" if step.line else "")
        yield [(f"  {step.agent:<14} ", "place"), (f"{line:<16} ", "dim"), (step.message, "")]
    for assumption in finding.assumptions:
        yield [("assumes: ", "bold"), (assumption, "")]
    if finding.help:
        yield [("help: ", "good"), (finding.help, "")]


def _excerpt(line: int, column: int, text: str, *, gutter: int, width: int, style: str) -> Iterator[list[Segment]]:
    if not text:
        return
    shown, caret = cropped(text, column, max(width - gutter - 4, 20))
    yield [(f"{line:>{gutter}} | ", "dim"), (shown, "")]
    yield [(" " * gutter + " | ", "dim"), (" " * (caret - 1) + "^", style)]


def _frame(frame: SourceLocation) -> list[Segment]:
    return [(str(frame), "place"), (f" in {frame.function}" if frame.function else "", "")]


def _origin(place: Place) -> str:
    """The user's lines that lead to a place, from the kernel's own down to the innermost; empty when there are none."""
    frames = list(place.source.frames()) if place.source else []
    lines = [f"{frame.file}:{frame.line}" for frame in frames if frame.line]
    return " > ".join(dict.fromkeys((lines[-1], lines[0]))) if lines else ""


def _user_line(place: Place) -> str:
    """The line of the kernel itself that leads to a place, without the folders of its file."""
    frames = list(place.source.frames()) if place.source else []
    return f"{os.path.basename(frames[-1].file)}:{frames[-1].line}" if frames and frames[-1].line else ""


def _shortened(witness: tuple[Place, ...]) -> Iterator[Place]:
    if len(witness) <= WITNESS_LIMIT:
        yield from witness
        return
    half = WITNESS_LIMIT // 2
    yield from witness[:half]
    yield Place(0, f"... {len(witness) - 2 * half} more", "")
    yield from witness[-half:]


def _grouped(places: Iterable[Place]) -> dict[str, list[Place]]:
    grouped: dict[str, list[Place]] = {}
    for place in places:
        grouped.setdefault(place.message, []).append(place)
    return grouped


def _summary(report: Report) -> Iterator[list[Segment]]:
    for file in report.files:
        for kernel in file.kernels:
            if kernel.verdict is Verdict.NOT_ANALYSED:
                name = kernel.name + (f" ({kernel.source.file}:{kernel.source.line})" if kernel.source else "")
                yield [("not analysed", "warning"), (f": {file.path}: {name}: {kernel.reason}", "")]
    severities, verdicts = report.severities(), report.verdicts()
    counts = [
        (_counted(severities[severity], str(severity)), str(severity)) for severity in Severity if severities[severity]
    ]
    found = [segment for count in counts for segment in (count, (", ", ""))][:-1] or [("No findings", "good")]
    kernels = f" in {_counted(sum(verdicts.values()), 'kernel')} of {_counted(len(report.files), 'file')}"
    ended = ", ".join(f"{count} {_ENDED[verdict]}" for verdict, count in verdicts.items() if count)
    yield [*found, (kernels, ""), (f" ({ended})" if ended else "", ""), (".", "")]
    copies = sum(len(file.copies) for file in report.files)
    if copies:
        yield [(f"Left out as copies of others: {_counted(copies, 'file')}.", "dim")]
    unread = sum(file.problem is not None for file in report.files)
    if unread:
        yield [(f"{_counted(unread, 'input')} could not be read.", "error")]
    if any(report.faults):
        yield [("ptxlint itself failed above. ", "error"), (request(), "")]
        yield [("Everything else was still linted.", "")]


def _counted(count: int, noun: str) -> str:
    plural = noun if noun == "info" or count == 1 else f"{noun}s"
    return f"{count} {plural}"
