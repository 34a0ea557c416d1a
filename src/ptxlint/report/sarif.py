"""SARIF 2.1.0, for code scanning services: rules with their help, findings with code flows and stable fingerprints."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from ptxlint import __version__, registry
from ptxlint.excerpt import anchor
from ptxlint.explanation import Explanation
from ptxlint.report import Output
from ptxlint.result import Diagnosis, FileReport, Place, Report
from ptxlint.rule import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def write(report: Report, output: Output) -> None:
    """Write the log with one run."""
    json.dump(document(report), output.stream, indent=2, ensure_ascii=False)
    output.stream.write("\n")


def document(report: Report) -> dict[str, Any]:
    """The log as JSON values."""
    rules = [Explanation.of(rule) for rule in registry.rules()]
    index = {rule.code: number for number, rule in enumerate(rules)}
    driver = {"name": "ptxlint", "version": __version__, "rules": [_rule(rule) for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": [
            {**_result(file, finding), "ruleIndex": index[finding.code]}
            for file in report.files
            for finding in file.findings
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Explanation) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.details or rule.summary},
        "help": {"text": rule.text(), "markdown": rule.markdown()},
        "defaultConfiguration": {"level": _LEVELS[rule.severity], "enabled": rule.is_default},
        "properties": {"tags": ["gpu", "concurrency"], "isaSection": rule.section},
    }


def _result(file: FileReport, finding: Diagnosis) -> dict[str, Any]:
    path, line, column = anchor(finding, file.path)
    related = [Place(finding.line, "the PTX instruction"), *finding.related]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [
            {
                **_location(path, line, column),
                "logicalLocations": [{"fullyQualifiedName": finding.kernel, "kind": "function"}],
            }
        ],
        "relatedLocations": [{"id": number, **_at(file.path, place)} for number, place in enumerate(related, 1)],
        "partialFingerprints": {"ptxlint/v1": finding.fingerprint},
    }
    if finding.witness:
        steps = [{"location": _at(file.path, step)} for step in finding.witness]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return result


def _message(finding: Diagnosis) -> str:
    assumed = [f"Assumes: {assumption}." for assumption in finding.assumptions]
    return "\n".join(part for part in (finding.message, *assumed, finding.help) if part)


def _at(path: str, place: Place) -> dict[str, Any]:
    message = f"{place.agent}: {place.message}" if place.agent else place.message
    return {**_location(path, place.line, None), "message": {"text": message}}


def _location(path: str, line: int, column: int | None) -> dict[str, Any]:
    region = {"startLine": line} | ({"startColumn": column} if column else {})
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": region}}


def _invocation(report: Report) -> dict[str, Any]:
    troubles = [(file.path, f"{file.path}: {file.problem.message}", "error") for file in report.files if file.problem]
    troubles += [(fault.file, f"ptxlint itself failed: {fault}", "error") for fault in report.faults]
    troubles += [
        (file.path, f"not analysed: {kernel.name}: {kernel.reason}", "note")
        for file in report.files
        for kernel in file.kernels
        if kernel.reason
    ]
    return {
        "executionSuccessful": not any(level == "error" for _, _, level in troubles),
        "toolExecutionNotifications": [
            {
                "level": level,
                "message": {"text": text},
                "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(path)}}}],
            }
            for path, text, level in troubles
        ],
    }


def _uri(path: str) -> str:
    return quote(path.removeprefix("./").replace("\\", "/").encode(errors="surrogateescape"), safe="/:")
