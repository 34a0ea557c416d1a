"""For tests of rules, ours and those of other packages: snippets made into modules, and the markers they carry.

A marker `// expect: rule-name` stands on the line that must be found; several names are separated by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ptxlint import isa
from ptxlint.lint import Options, lint_text
from ptxlint.parse import parse
from ptxlint.rule import Rule

Mark = tuple[int, str]
"""A line of the PTX, from 1, and the name of a rule."""

_MARKER = re.compile(r"//.*?\bexpect:\s*([a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)")
_REGISTER = re.compile(r"%([a-z]+)(\d*)\b(?!\.|\s*<)")
_PARAMETER = re.compile(r"\bld\.param\S*\s+[^;\[]*\[\s*([A-Za-z_]\w*)")
_TYPES = {
    "p": "pred",
    "rs": "b16",
    "h": "b16",
    "rc": "b8",
    "r": "b32",
    "f": "f32",
    "rd": "b64",
    "fd": "f64",
    "rq": "b128",
}


def module_of(snippet: str) -> str:
    """The snippet as a module: left as it is when it is one, else made the body of a kernel.

    Registers named as nvcc names them (`%p1 %rs1 %r1 %f1 %rd1 %fd1 %rq1`) are declared, and so are the parameters that
    `ld.param` reads; anything else the snippet declares itself. The target is the oldest that has its instructions.
    """
    if re.search(r"^\s*\.version\b", snippet, re.MULTILINE):
        return snippet
    text = _kernel(snippet, 90)
    rows = [isa.row(instruction) for function in parse(text).functions for instruction in function.body or ()]
    return _kernel(snippet, max([90, *(row.sm for row in rows if row)]))


def marked(text: str) -> set[Mark]:
    """The markers in the text."""
    return {
        (number, name.strip())
        for number, line in enumerate(text.split("\n"), 1)
        for match in _MARKER.finditer(line)
        for name in match[1].split(",")
    }


def found(text: str, rules: Iterable[type[Rule]]) -> set[Mark]:
    """Where the rules find something. Raises AssertionError when the text is not PTX or a rule fails."""
    report = lint_text(text, "snippet.ptx", Options(tuple(rules)))
    assert report.problem is None, f"{report.problem}\n{text}"
    assert not report.faults, report.faults[0].traceback
    return {(finding.line, finding.rule) for finding in report.findings}


def compared(text: str, expected: set[Mark], actual: set[Mark]) -> str:
    """The text with what is missing and what is stray named on its lines; empty when they agree."""
    if expected == actual:
        return ""
    lines = text.split("\n")
    for kind, marks in (("MISSING", expected - actual), ("STRAY", actual - expected)):
        for number, name in sorted(marks):
            lines[number - 1] += f"   <-- {kind} {name}"
    return "\n" + "\n".join(f"{number:>5} {line}" for number, line in enumerate(lines, 1))


def _kernel(snippet: str, sm: int) -> str:
    declared = set(re.findall(r"\.reg\s+\.\w+\s+%([a-z]+)", snippet))
    used = {prefix for prefix, _ in _REGISTER.findall(_code(snippet))} & set(_TYPES) - declared
    registers = [f"\t.reg .{_TYPES[prefix]} %{prefix}<{_most(snippet, prefix) + 1}>;" for prefix in sorted(used)]
    parameters = sorted(set(_PARAMETER.findall(_code(snippet))))
    listed = ", ".join(f".param .b64 {name}" for name in parameters)
    return "\n".join(
        (
            ".version 9.0",
            f".target sm_{sm}{'a' if sm >= 90 else ''}",
            ".address_size 64",
            f".visible .entry kernel({listed})",
            "{",
            *registers,
            snippet.strip("\n"),
            "\tret;",
            "}",
            "",
        )
    )


def _most(snippet: str, prefix: str) -> int:
    return max(int(number or 0) for found, number in _REGISTER.findall(snippet) if found == prefix)


def _code(snippet: str) -> str:
    return re.sub(r"//.*", "", snippet)
