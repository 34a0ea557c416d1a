"""Comments that silence findings, in the PTX and in the source, and what is said about those that silence nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ptxlint import registry
from ptxlint.result import Diagnosis, FileReport, KernelReport, Verdict
from ptxlint.source import SourceLocation
from ptxlint.suppression import ptx_comments, settled, source_comments, suppressed

RULE, OTHER = registry.rules()[:2]
ALL = frozenset(rule.name for rule in registry.rules())


def finding(
    line: int, *, kernel: str = "first", rule: str = RULE.name, source: SourceLocation | None = None
) -> Diagnosis:
    severity = RULE.severity
    return Diagnosis(rule, RULE.code, severity, "wrong", kernel, line, 1, source, (), (), (), "", "0" * 16)


def silenced(text: str, *findings: Diagnosis) -> tuple[list[int], list[str]]:
    """The lines of the findings that are left, and the remarks."""
    kernels = tuple(KernelReport(name, Verdict.FINDINGS) for name in dict.fromkeys(f.kernel for f in findings))
    report = suppressed(FileReport("k.ptx", kernels, findings), text, lambda: ALL)
    assert report.suppressed == len(findings) - len(report.findings)
    left = {found.kernel for found in report.findings}
    assert all((kernel.verdict is Verdict.FINDINGS) == (kernel.name in left) for kernel in report.kernels)
    return [found.line for found in report.findings], [f"{remark.line}: {remark.message}" for remark in report.remarks]


class TestInPtx:
    """Comments of the PTX."""

    def test_after_code_its_line(self) -> None:
        text = f"a;\nb; // ptxlint: ignore[{RULE.name}] for a reason\nc;"
        assert silenced(text, finding(1), finding(2), finding(3)) == ([1, 3], [])

    def test_alone_the_next_line_of_code(self) -> None:
        text = f"a;\n\t// ptxlint: ignore[{RULE.code}]\n\n.loc 1 2 3\n\t// end\n$L__BB0_1:\n\tc;\nd;"
        assert silenced(text, finding(1), finding(7), finding(8)) == ([1, 8], [])

    def test_between_begin_and_end(self) -> None:
        text = f"a;\n// ptxlint: ignore-begin[{RULE.name}]\nb;\nc;\n// ptxlint: ignore-end\nd;"
        assert silenced(text, *map(finding, (1, 3, 4, 6))) == ([1, 6], [])

    @pytest.mark.parametrize("line", [2, 6])
    def test_the_kernel_it_stands_above_or_in(self, line: int) -> None:
        lines = [".version 8.0", "", ".visible .entry first(", ")", "{", "", "}", ".entry second() {", "x;", "}"]
        lines[line - 1] = f"// ptxlint: ignore-kernel[{RULE.name}]"
        found = (finding(6), finding(9, kernel="second"))
        assert silenced("\n".join(lines), *found) == ([9], [])

    def test_the_file(self) -> None:
        text = f"/* ptxlint: ignore-file[{RULE.name}] */\na;\nb;"
        assert silenced(text, finding(2), finding(3)) == ([], [])

    def test_only_the_rules_named(self) -> None:
        text = f"a; // ptxlint: ignore[{OTHER.name}, {RULE.name}]\nb; // ptxlint: ignore[{OTHER.name}]"
        assert silenced(text, finding(1), finding(2))[0] == [2]

    def test_an_unused_one_is_reported(self) -> None:
        text = f"a;\nb; // ptxlint: ignore[{RULE.name}]"
        assert silenced(text, finding(1)) == ([1], [f"2: unused suppression of {RULE.name}"])

    def test_unless_its_rule_did_not_run(self) -> None:
        text = f"b; // ptxlint: ignore[{RULE.name}]"
        assert suppressed(FileReport("k.ptx"), text, lambda: ALL - {RULE.name}).remarks == ()

    @pytest.mark.parametrize(
        ("comment", "message"),
        [
            ("ignore", "name the rules in brackets"),
            ("ignore[]", "name the rules in brackets"),
            ("ignore[no-such-rule]", "no rule is called 'no-such-rule'"),
            ("silence[ALL]", "'silence' is not ignore"),
            ("ignore-end", "ignore-end without ignore-begin"),
            ("ignore-begin[ALL]", "it has no ignore-end"),
            ("ignore-kernel[ALL]", "it belongs to no kernel"),
        ],
    )
    def test_a_mistake_is_reported_and_silences_nothing(self, comment: str, message: str) -> None:
        lines, (remark,) = silenced(f"a; // ptxlint: {comment}", finding(1))
        assert lines == [1]
        assert remark.startswith("1: suppression not understood: ")
        assert message in remark

    def test_text_that_only_mentions_it(self) -> None:
        assert ptx_comments('.b8 "ptxlint: ignore[ALL]";').suppressions == ()


class TestInSource:
    """Comments of the source, read from the lines that the finding's frames name."""

    SOURCE = """// a file
__device__ void copy() {{
    sync();  // ptxlint: ignore[{rule}] known
    sync();
}}
// ptxlint: ignore-kernel[{rule}] a test kernel
template <int N>
__global__ void quiet() {{
    if (N) {{ copy(); }}
    copy();
}}
__global__ void loud() {{
    copy();
}}
"""

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        source_comments.cache_clear()
        file = tmp_path / "k.cu"
        file.write_text(self.SOURCE.format(rule=RULE.name))
        return file

    @pytest.mark.parametrize(
        ("frames", "is_silenced"), [((3,), True), ((4,), False), ((4, 10), True), ((4, 13), False), ((3, 13), True)]
    )
    def test_any_frame_counts(self, source: Path, frames: tuple[int, ...], is_silenced: bool) -> None:
        location = None
        for line in reversed(frames):
            location = SourceLocation(str(source), line, 1, inlined_at=location)
        assert silenced("", finding(1, source=location))[0] == ([] if is_silenced else [1])

    def test_an_unused_one_is_reported_once_a_run(self, source: Path) -> None:
        """Line 3 is compiled into both modules, and neither needs its comment; the kernel's comment met no code."""
        text = f'.loc 1 3 5\n.file 1 "{source}"\n'
        files = [suppressed(FileReport(name), text, lambda: ALL) for name in ("a.ptx", "b.ptx")]
        remarks = [
            (file.path, remark.source, remark.message) for file in settled(files).files for remark in file.remarks
        ]
        assert remarks == [("a.ptx", SourceLocation(str(source), 3, 1), f"unused suppression of {RULE.name}")]

    def test_one_that_another_module_needs_is_not(self, source: Path) -> None:
        text = f'.loc 2 9 5, function_name $L__info_string0, inlined_at 1 3 5\n.file 1 "{source}"\n'
        found = finding(1, source=SourceLocation(str(source), 3, 1))
        needed = FileReport("b.ptx", (KernelReport("first", Verdict.FINDINGS),), (found,))
        files = [suppressed(report, text, lambda: ALL) for report in (FileReport("a.ptx"), needed)]
        assert [remark for file in settled(files).files for remark in file.remarks] == []
        assert files[1].suppressed == 1

    def test_a_mistake_is_reported(self, source: Path) -> None:
        source.write_text("sync();  // ptxlint: ignore\n")
        (file,) = settled([suppressed(FileReport("a.ptx"), f'.file 1 "{source}"\n', lambda: ALL)]).files
        assert [remark.message.partition(":")[0] for remark in file.remarks] == ["suppression not understood"]

    def test_a_source_that_is_not_there(self) -> None:
        location = SourceLocation("/nowhere/k.cu", 3, 1)
        assert silenced("", finding(1, source=location))[0] == [1]


class TestInPython:
    """The same with `#`, in the source of Triton, CuTe DSL and the like."""

    SOURCE = """# a file
@triton.jit
def copy(barrier):
    wait(barrier)  # ptxlint: ignore[{rule}] known
    wait(barrier)


# ptxlint: ignore-kernel[{rule}] a test kernel
@gluon.jit
def quiet(
    barrier,
):
    "a kernel"

    # ptxlint: ignore[{rule}] the next line
    copy(barrier)


@gluon.jit
def loud(barrier):
    copy(barrier)
    def inner():
        # ptxlint: ignore-kernel[{rule}] this function
        copy(barrier)
    copy(barrier)
"""

    @pytest.mark.parametrize(
        ("line", "is_silenced"),
        [(4, True), (5, False), (9, True), (10, True), (16, True), (21, False), (22, True), (24, True), (25, False)],
    )
    def test_what_it_covers(self, tmp_path: Path, line: int, is_silenced: bool) -> None:
        source_comments.cache_clear()
        file = tmp_path / "k.py"
        file.write_text(self.SOURCE.format(rule=RULE.name))
        location = SourceLocation(str(file), line, 1)
        assert silenced("", finding(1, source=location))[0] == ([] if is_silenced else [1])

    def test_above_a_function_that_cannot_be_parsed(self, tmp_path: Path) -> None:
        source_comments.cache_clear()
        file = tmp_path / "k.py"
        file.write_text(f"# ptxlint: ignore-kernel[{RULE.name}]\ndef broken(:\n")
        (report,) = settled([suppressed(FileReport("a.ptx"), f'.file 1 "{file}"\n', lambda: ALL)]).files
        assert [remark.message for remark in report.remarks] == ["suppression not understood: it belongs to no kernel"]


def test_a_kernel_without_findings_left_that_was_not_analysed_says_so() -> None:
    report = FileReport("k.ptx", (KernelReport("first", Verdict.FINDINGS, "too hard"),), (finding(1),))
    (kernel,) = suppressed(report, f"a; // ptxlint: ignore[{RULE.name}]", lambda: ALL).kernels
    assert kernel == replace(report.kernels[0], verdict=Verdict.NOT_ANALYSED)
