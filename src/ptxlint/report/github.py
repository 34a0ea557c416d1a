"""Workflow commands that GitHub Actions turns into annotations on the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.excerpt import anchor
from ptxlint.report import Output
from ptxlint.result import FileReport, Report, Verdict
from ptxlint.rule import Severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write(report: Report, output: Output) -> None:
    """Write an annotation for each finding, unreadable file, kernel that was not analysed and internal error."""
    for file in report.files:
        output.stream.writelines(f"{line}\n" for line in _annotations(file))


def _annotations(file: FileReport) -> Iterator[str]:
    if file.problem:
        place = {"line": file.problem.line, "col": file.problem.column} if file.problem.line else {}
        yield _command("error", f"{file.path}: {file.problem.message}", file=file.path, **place)
    for finding in file.findings:
        path, line, column = anchor(finding, file.path)
        message = "\n".join(
            part
            for part in (
                finding.message,
                f"{file.path}:{finding.line} in kernel {finding.kernel}",
                f"Help: {finding.help}" if finding.help else "",
            )
            if part
        )
        title = f"{finding.code} {finding.rule}"
        yield _command(_COMMANDS[finding.severity], message, file=path, line=line, col=column, title=title)
    for kernel in file.kernels:
        if kernel.verdict is Verdict.NOT_ANALYSED:
            yield _command("notice", f"Not analysed: {kernel.name}: {kernel.reason}", file=file.path)
    for fault in file.faults:
        yield _command("error", f"ptxlint itself failed: {fault}", file=file.path)


def _command(name: str, message: str, **properties: str | int) -> str:
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
