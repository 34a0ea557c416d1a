"""One file in, its report out: parses the PTX, runs the rules over each kernel and states a verdict for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cached_property

from ptxlint import isa
from ptxlint.classes import dataclass
from ptxlint.demangle import demangled
from ptxlint.fault import Guard, InternalFault
from ptxlint.fingerprint import Fingerprints
from ptxlint.ir import Function, Instruction, Module
from ptxlint.launch import Launch, stated
from ptxlint.parse import parse
from ptxlint.registry import Selection
from ptxlint.result import Diagnosis, FileReport, KernelReport, Place, Problem, Verdict
from ptxlint.rule import Finding, Rule, Severity
from ptxlint.source import Loc, PtxSyntaxError, SourceLocation, Span, located

EXCERPT_LIMIT = 400
"""Characters of a PTX line that a finding carries along."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to look for, and what is known of the launch.

    Patterns match a kernel's name, demangled or as in the PTX. Of `launches` the first that matches completes `launch`;
    what nobody says is taken from `known`, which a compiler's cache tells.
    `severities` and `kernel_ignores` hold rule names.
    """

    selected: tuple[type[Rule], ...] | Selection
    launch: Launch = field(default_factory=Launch)
    launches: tuple[tuple[str, Launch], ...] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    kernel_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    known: Launch = field(default_factory=Launch)

    @property
    def rules(self) -> tuple[type[Rule], ...]:
        """The rules that are on. Raises registry.RuleLoadError."""
        return self.selected.rules() if isinstance(self.selected, Selection) else self.selected

    def rule_names(self) -> frozenset[str]:
        """The names of the rules that are on. Raises registry.RuleLoadError."""
        return frozenset(rule.name for rule in self.rules)

    def launch_of(self, kernel: str) -> Launch:
        """What the user, or else a compiler's cache, says about the launch of the kernel."""
        configured = next((launch for pattern, launch in self.launches if matches(pattern, kernel)), Launch())
        return self.launch.completed(configured).completed(self.known)

    def rules_of(self, kernel: str) -> tuple[type[Rule], ...]:
        """The rules that run on the kernel."""
        ignored = {name for pattern, names in self.kernel_ignores if matches(pattern, kernel) for name in names}
        return tuple(rule for rule in self.rules if rule.name not in ignored)


@dataclass(frozen=True)
class _Kernel:
    path: str
    module: Module
    function: Function
    lines: Sequence[str]

    @cached_property
    def at(self) -> Mapping[Span, Instruction]:
        """The instruction that begins at a place."""
        return {instruction.span: instruction for instruction in self.function.body or ()}

    @cached_property
    def beginning(self) -> SourceLocation | None:
        """The first line of the user's source that code of the kernel itself comes from."""
        loc = next((instruction.loc for instruction in self.function.body or () if instruction.loc), None)
        source = _source(self.module, loc)
        return list(source.frames())[-1] if source else None

    def source(self, span: Span) -> SourceLocation | None:
        """The user's source line of the instruction there."""
        instruction = self.at.get(span)
        return _source(self.module, instruction.loc if instruction else None)

    def place(self, span: Span, message: str, agent: str = "") -> Place:
        """The place as it is reported."""
        return Place(span.line, message, agent, self.source(span))


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


def matches(pattern: str, kernel: str) -> bool:
    """Whether the glob matches the kernel's name, as it is or demangled."""
    return fnmatchcase(kernel, pattern) or fnmatchcase(demangled(kernel), pattern)


def has_machinery(function: Function) -> bool:
    """Whether the kernel has an instruction that any rule could be about."""
    rows = (isa.row(instruction) for instruction in function.body or ())
    return any(row.is_asynchronous_machinery for row in rows if row is not None)


def _lint_kernel(
    kernel: _Kernel, options: Options, faults: list[InternalFault]
) -> tuple[KernelReport, tuple[Diagnosis, ...]]:
    name = kernel.function.name
    if not has_machinery(kernel.function):
        return KernelReport(name, Verdict.CLEAN, source=kernel.beginning), ()
    rules = options.rules_of(name)
    from ptxlint.facts import Facts

    before = len(faults)
    found: list[tuple[type[Rule], Finding]] = []
    reason = None
    with Guard(faults, kernel.path, name):
        facts = Facts(kernel.module, kernel.function, stated(kernel.function, options.launch_of(name)))
        for rule in rules:
            with Guard(faults, kernel.path, name, rule.name):
                found += ((rule, finding) for finding in rule().check(facts))
        reason = facts.not_analysed
    if len(faults) > before:
        reason = "internal error" + (f" in {faults[before].rule}" if faults[before].rule else "")
    missed = Verdict.NOT_ANALYSED if reason else Verdict.CLEAN
    verdict = KernelReport(name, Verdict.FINDINGS if found else missed, reason or "", kernel.beginning)
    return verdict, _stamped(kernel, found, options.severities) if found else ()


def _stamped(
    kernel: _Kernel, found: list[tuple[type[Rule], Finding]], severities: Mapping[str, Severity]
) -> tuple[Diagnosis, ...]:
    """The findings in the order of their lines, each once."""
    fingerprints = Fingerprints(kernel.function.name)
    ordered = sorted(found, key=lambda pair: (pair[1].span, pair[0].code, pair[1].message))
    return tuple(
        _diagnosis(kernel, finding, fingerprints, rule, severities.get(rule.name))
        for rule, finding in dict.fromkeys(ordered)
    )


def _diagnosis(
    kernel: _Kernel,
    finding: Finding,
    fingerprints: Fingerprints,
    rule: type[Rule],
    severity: Severity | None,
) -> Diagnosis:
    instruction = kernel.at.get(finding.span)
    return Diagnosis(
        rule=rule.name,
        code=rule.code,
        severity=severity or finding.severity or rule.severity,
        message=finding.message,
        kernel=kernel.function.name,
        line=finding.span.line,
        column=finding.span.column,
        source=kernel.source(finding.span),
        related=tuple(kernel.place(related.span, related.message) for related in finding.related),
        witness=tuple(kernel.place(step.span, step.message, step.agent) for step in finding.witness),
        assumptions=finding.assumptions,
        help=finding.help,
        fingerprint=fingerprints.next(rule.name, instruction, finding.message),
        excerpt=_excerpt(kernel.lines, finding.span),
    )


def _source(module: Module, loc: Loc | None) -> SourceLocation | None:
    return located(loc, module.files, module.strings, demangled) if loc is not None else None


def _excerpt(lines: Sequence[str], span: Span) -> str:
    return lines[span.line - 1][:EXCERPT_LIMIT].rstrip() if span.line <= len(lines) else ""
