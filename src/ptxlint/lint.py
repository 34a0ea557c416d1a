"""One file in, its report out: parses the PTX, runs the rules over each kernel and states a verdict for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ptxlint import isa
from ptxlint.fault import Guard, InternalFault
from ptxlint.fingerprint import Fingerprints
from ptxlint.ir import Function, Instruction, Module
from ptxlint.launch import Launch, stated
from ptxlint.parse import parse
from ptxlint.result import Diagnosis, FileReport, KernelReport, Place, Problem, Verdict
from ptxlint.rule import Finding, Rule
from ptxlint.source import Loc, PtxSyntaxError, SourceLocation, Span

EXCERPT_LIMIT = 400
"""Characters of a PTX line that a finding carries along."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to look for, and what is known of the launch."""

    rules: tuple[type[Rule], ...]
    launch: Launch = field(default_factory=Launch)


@dataclass(frozen=True, slots=True)
class _Kernel:
    path: str
    module: Module
    function: Function
    lines: Sequence[str]


def lint_text(text: str, path: str, options: Options) -> FileReport:
    """Lint the PTX in `text`; `path` is what the report calls it."""
    faults: list[InternalFault] = []
    module = None
    try:
        with Guard(faults, path):
            module = parse(text)
    except PtxSyntaxError as error:
        return FileReport(path, problem=Problem(error.message, error.span.line, error.span.column))
    if module is None:
        return FileReport(path, faults=tuple(faults))
    kernels = [function for function in module.functions if function.is_entry and function.body is not None]
    lines = text.split("\n") if any(map(has_machinery, kernels)) else []
    verdicts: list[KernelReport] = []
    findings: list[Diagnosis] = []
    for function in kernels:
        verdict, found = _lint_kernel(_Kernel(path, module, function, lines), options, faults)
        verdicts.append(verdict)
        findings += found
    remarks = tuple(Place(note.span.line, note.message) for note in module.notes)
    return FileReport(path, tuple(verdicts), tuple(findings), remarks, None, tuple(faults))


def has_machinery(function: Function) -> bool:
    """Whether the kernel has an instruction that any rule could be about."""
    rows = (isa.row(instruction) for instruction in function.body or ())
    return any(row.is_asynchronous_machinery for row in rows if row is not None)


def _lint_kernel(
    kernel: _Kernel, options: Options, faults: list[InternalFault]
) -> tuple[KernelReport, tuple[Diagnosis, ...]]:
    name = kernel.function.name
    if not has_machinery(kernel.function):
        return KernelReport(name, Verdict.CLEAN), ()
    from ptxlint.facts import Facts

    before = len(faults)
    found: list[tuple[type[Rule], Finding]] = []
    reason = None
    with Guard(faults, kernel.path, name):
        facts = Facts(kernel.module, kernel.function, stated(kernel.function, options.launch))
        for rule in options.rules:
            with Guard(faults, kernel.path, name, rule.name):
                found += ((rule, finding) for finding in rule().check(facts))
        reason = facts.not_analysed
    if len(faults) > before:
        reason = "internal error" + (f" in {faults[before].rule}" if faults[before].rule else "")
    if found:
        return KernelReport(name, Verdict.FINDINGS), _stamped(kernel, found)
    return KernelReport(name, Verdict.NOT_ANALYSED if reason else Verdict.CLEAN, reason or ""), ()


def _stamped(kernel: _Kernel, found: list[tuple[type[Rule], Finding]]) -> tuple[Diagnosis, ...]:
    """The findings in the order of their lines, each once."""
    at = {instruction.span: instruction for instruction in kernel.function.body or ()}
    fingerprints = Fingerprints(kernel.function.name)
    ordered = sorted(found, key=lambda pair: (pair[1].span, pair[0].code, pair[1].message))
    return tuple(
        _diagnosis(kernel, rule, finding, at.get(finding.span), fingerprints)
        for rule, finding in dict.fromkeys(ordered)
    )


def _diagnosis(
    kernel: _Kernel,
    rule: type[Rule],
    finding: Finding,
    instruction: Instruction | None,
    fingerprints: Fingerprints,
) -> Diagnosis:
    return Diagnosis(
        rule=rule.name,
        code=rule.code,
        severity=finding.severity or rule.severity,
        message=finding.message,
        kernel=kernel.function.name,
        line=finding.span.line,
        column=finding.span.column,
        source=_source(kernel.module, instruction.loc if instruction else None),
        related=tuple(Place(related.span.line, related.message) for related in finding.related),
        witness=tuple(Place(step.span.line, step.message, step.agent) for step in finding.witness),
        assumptions=finding.assumptions,
        help=finding.help,
        fingerprint=fingerprints.next(rule.name, instruction, finding.message),
        excerpt=_excerpt(kernel.lines, finding.span),
    )


def _source(module: Module, loc: Loc | None) -> SourceLocation | None:
    if loc is None:
        return None
    name = module.strings.get(loc.function) if loc.function else None
    file = module.files.get(loc.file, "?")
    return SourceLocation(file, loc.line, loc.column, name, _source(module, loc.inlined_at))


def _excerpt(lines: Sequence[str], span: Span) -> str:
    return lines[span.line - 1][:EXCERPT_LIMIT].rstrip() if span.line <= len(lines) else ""
