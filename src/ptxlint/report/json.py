"""The stable JSON of `check`; its schema is `ptxlint/schema/check.json`."""

from __future__ import annotations

import json
from typing import Any

from ptxlint import __version__
from ptxlint.fault import InternalFault
from ptxlint.report import Output
from ptxlint.result import Diagnosis, FileReport, KernelReport, Origin, Place, Problem, Report
from ptxlint.source import SourceLocation


def write(report: Report, output: Output) -> None:
    """Write the whole report as one indented object."""
    json.dump(document(report), output.stream, indent=2, ensure_ascii=False)
    output.stream.write("\n")


def document(report: Report) -> dict[str, Any]:
    """The report as JSON values."""
    return {"ptxlint": __version__, "files": [file_document(file) for file in report.files], "summary": summary(report)}


def summary(report: Report) -> dict[str, Any]:
    """Counts of files, verdicts, findings by severity, unreadable files and internal errors."""
    return {
        "files": len(report.files),
        "kernels": {str(verdict): count for verdict, count in report.verdicts().items()},
        "findings": {str(severity): count for severity, count in report.severities().items()},
        "problems": sum(file.problem is not None for file in report.files),
        "faults": len(list(report.faults)),
    }


def _finding(found: Diagnosis) -> dict[str, Any]:
    return {
        "rule": found.rule,
        "code": found.code,
        "severity": str(found.severity),
        "message": found.message,
        "kernel": found.kernel,
        "line": found.line,
        "column": found.column,
        "source": _source(found.source),
        "related": [_place(place) for place in found.related],
        "witness": [{"agent": step.agent, **_place(step)} for step in found.witness],
        "assumptions": list(found.assumptions),
        "help": found.help,
        "fingerprint": found.fingerprint,
    }


def file_document(file: FileReport) -> dict[str, Any]:
    """The report on one file as JSON values."""
    return {
        "path": file.path,
        "origin": _origin(file.origin),
        "copies": list(file.copies),
        "kernels": [_kernel(kernel) for kernel in file.kernels],
        "findings": [_finding(found) for found in file.findings],
        "remarks": [_place(remark) for remark in file.remarks],
        "problem": _problem(file.problem),
        "faults": [_fault(fault) for fault in file.faults],
    }


def _kernel(kernel: KernelReport) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "verdict": str(kernel.verdict),
        "reason": kernel.reason,
        "source": _frame(kernel.source) if kernel.source else None,
    }


def _origin(origin: Origin | None) -> dict[str, Any] | None:
    if origin is None:
        return None
    source = _frame(origin.source) if origin.source else None
    return {"compiler": origin.compiler, "source": source, "purpose": origin.purpose}


def _place(place: Place) -> dict[str, Any]:
    return {"line": place.line, "message": place.message, "source": _source(place.source)}


def _problem(problem: Problem | None) -> dict[str, Any] | None:
    return {"line": problem.line, "column": problem.column, "message": problem.message} if problem else None


def _fault(fault: InternalFault) -> dict[str, Any]:
    return {"kernel": fault.kernel, "rule": fault.rule, "error": fault.error}


def _source(source: SourceLocation | None) -> dict[str, Any] | None:
    if source is None:
        return None
    return {**_frame(source), "inlined_at": [_frame(frame) for frame in source.frames()][1:]}


def _frame(frame: SourceLocation) -> dict[str, Any]:
    return {"file": frame.file, "line": frame.line, "column": frame.column, "function": frame.function}
