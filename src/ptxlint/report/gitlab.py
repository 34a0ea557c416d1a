"""A GitLab Code Quality report: a JSON array of findings, unreadable files and internal errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from ptxlint.excerpt import anchor
from ptxlint.report import Output
from ptxlint.result import FileReport, Report
from ptxlint.rule import Severity

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def write(report: Report, output: Output) -> None:
    """Write the array."""
    issues = [issue for file in report.files for issue in _issues(file)]
    json.dump(issues, output.stream, indent=2, ensure_ascii=False)
    output.stream.write("\n")


def _issues(file: FileReport) -> Iterator[dict[str, Any]]:
    for finding in file.findings:
        path, line, _ = anchor(finding, file.path)
        yield _issue(
            f"{finding.message} ({file.path}:{finding.line}, kernel {finding.kernel})",
            finding.rule,
            _SEVERITIES[finding.severity],
            (path, line),
            f"{file.path} {finding.fingerprint}",
        )
    if file.problem:
        place = (file.path, max(file.problem.line, 1))
        message = f"{file.path}: {file.problem.message}"
        yield _issue(message, "unreadable", "blocker", place, f"{file.path} unreadable")
    for fault in file.faults:
        yield _issue(f"ptxlint itself failed: {fault}", "internal-error", "blocker", (file.path, 1), str(fault))


def _issue(description: str, check: str, severity: str, place: tuple[str, int], identity: str) -> dict[str, Any]:
    return {
        "description": description,
        "check_name": check,
        "fingerprint": blake2b(identity.encode(errors="replace"), digest_size=16).hexdigest(),
        "severity": severity,
        "location": {"path": place[0].removeprefix("./"), "lines": {"begin": place[1]}},
    }
