"""From text to a file's report: verdicts, positions, fingerprints, and mistakes of our own that stay where they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from ptxlint import isa
from ptxlint.facts import Facts
from ptxlint.lint import Options, lint_text
from ptxlint.result import FileReport, Verdict
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity, Step
from ptxlint.source import Span


class Probe(Rule):
    """Finds every asynchronous instruction."""

    code = "TST001"
    severity = Severity.WARNING
    isa = IsaRef("Initializers", since="1.0")
    good = ()
    bad = ()

    def check(self, facts: Facts) -> Iterator[Finding]:
        """One finding an instruction, with everything that a finding can carry."""
        for instruction in facts.function.body or ():
            row = isa.row(instruction)
            if row and row.is_asynchronous_machinery:
                place = instruction.span
                yield Finding(
                    place,
                    f"{instruction.name} at line {place.line}",
                    help="do not",
                    related=(Related(Span(1), "here it begins"),),
                    witness=(Step("thread 0", place, "runs it"),),
                    assumptions=("one block",),
                )


class Silent(Probe):
    """Finds nothing."""

    code = "TST002"
    severity = Severity.ERROR
    isa = IsaRef("Initializers", since="1.0")
    good = ()
    bad = ()

    def check(self, facts: Facts) -> Iterator[Finding]:  # noqa: ARG002
        """Nothing."""
        yield from ()


class GivesUp(Silent):
    """Cannot analyse anything."""

    code = "TST003"
    severity = Severity.ERROR
    isa = IsaRef("Initializers", since="1.0")
    good = ()
    bad = ()

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Say that the facts are not known."""
        facts.not_analysed = "too hard"
        yield from ()


class Raises(Silent):
    """Has a mistake in it."""

    code = "TST004"
    severity = Severity.ERROR
    isa = IsaRef("Initializers", since="1.0")
    good = ()
    bad = ()
    kernels: ClassVar[tuple[str, ...]] = ("first",)

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Fail in some kernels."""
        if facts.function.name in self.kernels:
            raise ZeroDivisionError("oops")
        yield Finding(Span(1), "fine")


HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"


def kernel(*lines: str, name: str = "first", registers: str = ".reg .b32 %r<9>; .reg .b64 %rd<9>;") -> str:
    body = "\n".join((registers, ".shared .align 8 .b64 bar;", *lines, "ret;"))
    return f".visible .entry {name}()\n{{\n{body}\n}}\n"


INIT = "mov.u32 %r1, bar;\nmbarrier.init.shared.b64 [%r1], 1;"


def lint(*kernels: str, rules: tuple[type[Rule], ...] = (Probe,)) -> FileReport:
    return lint_text(HEADER + "".join(kernels), "k.ptx", Options(rules))


def test_a_finding_is_stamped() -> None:
    report = lint(kernel(INIT))
    (finding,) = report.findings
    assert (finding.rule, finding.code, finding.severity) == ("probe", "TST001", Severity.WARNING)
    assert (finding.kernel, finding.line, finding.column) == ("first", 9, 1)
    assert finding.excerpt == "mbarrier.init.shared.b64 [%r1], 1;"
    assert [(place.line, place.message) for place in finding.related] == [(1, "here it begins")]
    assert [(step.agent, step.line) for step in finding.witness] == [("thread 0", 9)]
    assert finding.assumptions == ("one block",)
    assert [kernel.verdict for kernel in report.kernels] == [Verdict.FINDINGS]


def test_the_source_line_comes_with_its_callers() -> None:
    located = "mov.u32 %r1, bar;\n.loc 1 7 3\n.loc 2 5 9, function_name $L__s0, inlined_at 1 7 3\n"
    strings = ".section .debug_str\n{\n$L__s0:\n.b8 95,90,49,102,118,0\n}\n"
    files = '.file 1 "main.cu"\n.file 2 "lib.cuh"\n'
    report = lint(kernel(located + "mbarrier.init.shared.b64 [%r1], 1;"), files, strings)
    source = report.findings[0].source
    assert source is not None
    frames = [(frame.file, frame.line, frame.column) for frame in source.frames()]
    assert frames == [("lib.cuh", 5, 9), ("main.cu", 7, 3)]
    assert source.function == "f()"


def test_verdicts() -> None:
    clean, plain = kernel(INIT), kernel("mov.u32 %r1, 3;", name="second")
    assert [k.verdict for k in lint(clean, plain, rules=(Silent,)).kernels] == [Verdict.CLEAN, Verdict.CLEAN]
    unknown, scanned = lint(clean, plain, rules=(GivesUp,)).kernels
    assert (unknown.verdict, unknown.reason) == (Verdict.NOT_ANALYSED, "too hard")
    assert scanned.verdict is Verdict.CLEAN
    assert lint(clean, rules=(GivesUp, Probe)).kernels[0].verdict is Verdict.FINDINGS


def test_only_entries_with_a_body_have_a_verdict() -> None:
    declared = ".extern .func helper();\n.func inner() { ret; }\n"
    assert [k.name for k in lint(declared, kernel(INIT)).kernels] == ["first"]


def test_a_syntax_error_is_a_problem_with_a_place() -> None:
    report = lint(kernel("mov.u32 %r1 %r2;"))
    assert report.problem is not None
    assert report.problem.line == 8
    assert not report.kernels


def test_a_mistake_of_ours_costs_one_rule_on_one_kernel() -> None:
    report = lint(kernel(INIT), kernel(INIT, name="second"), rules=(Raises, Silent))
    (fault,) = report.faults
    assert (fault.file, fault.kernel, fault.rule) == ("k.ptx", "first", "raises")
    assert fault.error == "ZeroDivisionError: oops"
    assert "while linting k.ptx, kernel first, rule raises" in fault.traceback
    first, second = report.kernels
    assert (first.verdict, first.reason) == (Verdict.NOT_ANALYSED, "internal error in raises")
    assert second.verdict is Verdict.FINDINGS


def test_a_mistake_that_many_rules_meet_is_one_fault() -> None:
    class RaisesToo(Raises):
        """Another rule with the same mistake in what it asks for."""

        code = "TST005"
        severity = Severity.ERROR
        isa = IsaRef("Initializers", since="1.0")
        good = ()
        bad = ()

    report = lint(kernel(INIT), rules=(Raises, RaisesToo, Silent))
    assert [fault.rule for fault in report.faults] == ["raises"]


def test_findings_are_ordered_by_line() -> None:
    report = lint(kernel(INIT, "mbarrier.inval.shared.b64 [%r1];"), rules=(Probe, Raises))
    lines = [finding.line for finding in report.findings]
    assert lines == sorted(lines)


class TestFingerprints:
    """What may change around a finding without making it another one, and what may not."""

    def prints(self, *kernels: str) -> list[str]:
        found = lint(*kernels).findings
        assert found
        return [finding.fingerprint for finding in found]

    def test_registers_lines_and_labels_may_be_renumbered(self) -> None:
        moved = "\n\n" + INIT.replace("%r1", "%r7")
        assert self.prints(kernel(INIT)) == self.prints(kernel(moved))
        branch = "bra {0};\n{0}:\n" + INIT
        assert self.prints(kernel(branch.format("$L__BB0_1"))) == self.prints(kernel(branch.format("$L__BB0_9")))

    @pytest.mark.parametrize("other", [INIT.replace("], 1", "], 2"), INIT + "\n" + INIT])
    def test_another_instruction_or_occurrence_is_another_finding(self, other: str) -> None:
        assert self.prints(kernel(INIT)) != self.prints(kernel(other))

    def test_no_two_are_alike(self) -> None:
        found = self.prints(kernel(INIT, INIT), kernel(INIT, name="second"))
        assert len(set(found)) == len(found) == 3
