"""One JSON object a line: each finding with its path, then each kernel that was not analysed and each failure.

Every object has a `type`: `finding`, `not-analysed`, `problem` or `fault`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ptxlint.report import Output
from ptxlint.report.json import file_document
from ptxlint.result import FileReport, Report


def write(report: Report, output: Output) -> None:
    """Write the lines of every file."""
    for file in report.files:
        for entry in _entries(file):
            output.stream.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _entries(file: FileReport) -> Iterator[dict[str, Any]]:
    document = file_document(file)
    for found in document["findings"]:
        yield {"type": "finding", "path": file.path, **found}
    for kernel in document["kernels"]:
        if kernel["reason"]:
            yield {"type": "not-analysed", "path": file.path, "kernel": kernel["name"], "reason": kernel["reason"]}
    if document["problem"]:
        yield {"type": "problem", "path": file.path, **document["problem"]}
    for fault in document["faults"]:
        yield {"type": "fault", "path": file.path, **fault}
