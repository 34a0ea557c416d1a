"""One line a finding, for people who grep and for editors: `file:line:column: severity[CODE] message (rule)`."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.excerpt import split
from ptxlint.report import Output
from ptxlint.result import FileReport, Report, Verdict


def write(report: Report, output: Output) -> None:
    """Write a line for each finding, unreadable file, kernel that was not analysed and internal error."""
    for file in report.files:
        for line in _lines(file):
            output.stream.write(" ".join(line.split("\n")) + "\n")


def _lines(file: FileReport) -> Iterator[str]:
    if file.problem:
        position = f":{file.problem.line}:{file.problem.column}" if file.problem.line else ""
        yield f"{file.path}{position}: error: {file.problem.message}"
    for finding in file.findings:
        place = f" [{split(finding.source, file.path)[1][0]}]" if finding.source else ""
        yield (
            f"{file.path}:{finding.line}:{finding.column}: {finding.severity}[{finding.code}] "
            f"{finding.message} ({finding.rule}){place}"
        )
    for kernel in file.kernels:
        if kernel.verdict is Verdict.NOT_ANALYSED:
            yield f"{file.path}: not analysed: {kernel.name}: {kernel.reason}"
    for fault in file.faults:
        yield f"{file.path}: internal error: {fault}"
