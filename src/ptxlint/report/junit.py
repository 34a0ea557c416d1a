"""JUnit XML: a suite for each file and a case for each kernel, which fails, is skipped or passes."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from ptxlint.report import Output
from ptxlint.result import Diagnosis, FileReport, KernelReport, Report, Verdict

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(report: Report, output: Output) -> None:
    """Write the document."""
    suites = Xml.Element("testsuites", name="ptxlint")
    for file in report.files:
        suites.append(_suite(file))
    Xml.indent(suites)
    output.stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
    output.stream.write(Xml.tostring(suites, encoding="unicode") + "\n")


def _suite(file: FileReport) -> Xml.Element:
    suite = Xml.Element("testsuite", name=_legal(file.path))
    for kernel in file.kernels:
        suite.append(_case(file, kernel))
    troubles = [f"{file.path}: {file.problem.message}"] if file.problem else []
    for message in [*troubles, *(f"ptxlint itself failed: {fault}" for fault in file.faults)]:
        case = Xml.SubElement(suite, "testcase", name="file", classname=_legal(file.path))
        Xml.SubElement(case, "error", message=_legal(message))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(sum(case.find(tag) is not None for case in suite)))
    suite.set("tests", str(len(suite)))
    return suite


def _case(file: FileReport, kernel: KernelReport) -> Xml.Element:
    case = Xml.Element("testcase", name=_legal(kernel.name), classname=_legal(file.path))
    for finding in file.findings:
        if finding.kernel == kernel.name:
            failure = Xml.SubElement(case, "failure", type=finding.rule, message=_legal(finding.message))
            failure.text = _legal(_text(file, finding))
    if kernel.verdict is Verdict.NOT_ANALYSED:
        Xml.SubElement(case, "skipped", message=_legal(f"not analysed: {kernel.reason}"))
    return case


def _text(file: FileReport, finding: Diagnosis) -> str:
    places = [f"{file.path}:{finding.line}:{finding.column}"]
    places += [f"{frame}" for frame in finding.source.frames()] if finding.source else []
    return "\n".join([f"{finding.severity} {finding.code}", *places, finding.help])


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
