"""The baseline: findings that are known and accepted for now, in a file that is reviewed like any other.

An entry is known by its fingerprint, so that it outlives renumbered registers, labels and lines and a renamed file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ptxlint.classes import dataclass
from ptxlint.result import Diagnosis, FileReport, Report
from ptxlint.suppression import without

FORMAT = 1


class BaselineError(Exception):
    """A baseline file that cannot be used: its path and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


@dataclass(frozen=True, slots=True, order=True)
class Known:
    """An accepted finding. Only the fingerprint identifies it; the rest is for readers."""

    path: str
    kernel: str
    rule: str
    message: str
    fingerprint: str


def known_in(report: Report) -> tuple[Known, ...]:
    """The findings of a report as entries, sorted."""
    return tuple(sorted(_known(file, finding) for file in report.files for finding in file.findings))


def unknown_in(report: Report, known: Sequence[Known]) -> tuple[Report, tuple[Known, ...]]:
    """The report without the known findings, and the entries that nothing matched. Each entry hides one finding."""
    left = Counter(entry.fingerprint for entry in known)
    files = tuple(_filtered(file, left) for file in report.files)
    stale = []
    for entry in known:
        if left[entry.fingerprint] > 0:
            left[entry.fingerprint] -= 1
            stale.append(entry)
    return replace(report, files=files), tuple(stale)


def read(path: str) -> tuple[Known, ...]:
    """The entries of a baseline file. Raises BaselineError."""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if document["ptxlint-baseline"] != FORMAT:
            raise BaselineError(path, f"is of format {document['ptxlint-baseline']}; this version reads {FORMAT}")
        return tuple(Known(**entry) for entry in document["findings"])
    except OSError as error:
        raise BaselineError(path, f"cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BaselineError(path, "is not a baseline that `ptxlint baseline write` made") from error


def write(path: str, known: Iterable[Known]) -> None:
    """Replace the file by those entries, at once or not at all. Raises BaselineError."""
    import json

    document: dict[str, Any] = {"ptxlint-baseline": FORMAT, "findings": [_document(entry) for entry in known]}
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(document, file, indent=2, ensure_ascii=False)
            file.write("\n")
        os.replace(temporary, path)
    except OSError as error:
        raise BaselineError(path, f"cannot be written: {error.strerror}") from error


def _filtered(file: FileReport, left: Counter[str]) -> FileReport:
    kept = []
    for finding in file.findings:
        if left[finding.fingerprint] > 0:
            left[finding.fingerprint] -= 1
        else:
            kept.append(finding)
    return replace(without(file, kept), known=len(file.findings) - len(kept)) if file.findings else file


def _known(file: FileReport, finding: Diagnosis) -> Known:
    return Known(file.path.removeprefix("./"), finding.kernel, finding.rule, finding.message, finding.fingerprint)


def _document(entry: Known) -> dict[str, str]:
    return {
        "path": entry.path,
        "kernel": entry.kernel,
        "rule": entry.rule,
        "message": entry.message,
        "fingerprint": entry.fingerprint,
    }
