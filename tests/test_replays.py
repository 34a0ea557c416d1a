"""Replayed bugs: each kernel after a public report is found before its fix, near the fix, and silent after it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.corpus.assemble import assemble  # noqa: E402
from bench.evidence_replays import replay_section  # noqa: E402
from bench.replays.replay import FOLDER, Replay, ReplayError, changed, read_replay, read_replays  # noqa: E402
from bench.replays.table import figures, render  # noqa: E402
from bench.replays.trial import Outcome, distance, judge  # noqa: E402
from ptxlint import registry  # noqa: E402
from ptxlint.lint import Options, lint_text  # noqa: E402

REPLAYS = read_replays()
SIDES = ("before", "after")
EVERY = pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.slug)


def _expected() -> Iterator[object]:
    for replay in REPLAYS:
        marks = pytest.mark.xfail(reason=replay.open, strict=True) if replay.open else ()
        yield pytest.param(replay, id=replay.slug, marks=marks)


@cache
def _outcome(replay: Replay) -> Outcome:
    return judge(replay, Options(registry.select()))


@pytest.mark.parametrize("replay", list(_expected()))
def test_told_apart(replay: Replay) -> None:
    outcome = _outcome(replay)
    assert outcome.is_found, f"{replay.rule} not found near lines {sorted(replay.fixed_lines())}: {outcome}"
    assert outcome.is_silent, f"after the fix: {outcome}"


@EVERY
def test_every_pair_is_complete(replay: Replay) -> None:
    assert replay.rule in {rule.name for rule in registry.rules()}
    assert replay.fixed_lines()
    for side in SIDES:
        assert replay.source(side).is_file()
        names = re.findall(r'^\s*\.file\s+\d+\s+"([^"]*)"', replay.ptx(side).read_text(), re.MULTILINE)
        assert replay.located(side).name in names, f"lines of {side}.ptx belong to {names}"
        assert not [name for name in names if Path(name).is_absolute()]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@EVERY
def test_the_assembler_takes_both(replay: Replay) -> None:
    verdicts = {side: assemble(replay.ptx(side)) for side in SIDES}
    if any(verdict.state == "newer" for verdict in verdicts.values()):
        pytest.skip("made for a later ptxas")
    assert {side: verdict.message for side, verdict in verdicts.items() if verdict.state != "accepted"} == {}


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a b c d", "a b x c d", {2, 3}),
        ("a b c d", "x a b c d", {1}),
        ("a b c d", "a b c d x", {4}),
        ("a b c d", "a x c d", {2}),
        ("a b c d", "a d", {2, 3}),
        ("a b c d", "a b c d", set()),
    ],
)
def test_place_of_the_fix(before: str, after: str, lines: set[int]) -> None:
    assert set(changed(before.split(), after.split())) == lines


KERNEL = """.version 8.8
.target sm_90a
.address_size 64
.entry k() .maxntid 32
{
    .reg .b64 %rd<2>;
    .shared .align 16 .b8 tile[64];
    .loc 2 30 1, function_name name, inlined_at 1 20 1
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 8;
    ret;
}
.file 1 "before.cu"
.file 2 "header.cuh"
.section .debug_str { name: .b8 102, 0 }
"""


def test_distance_counts_from_any_frame_in_the_file() -> None:
    findings = lint_text(KERNEL, "before.ptx", Options(registry.select(["bulk-size-granularity"]))).findings
    (finding,) = findings
    assert distance(finding.source, "before.cu", {17, 40}) == 3
    assert distance(finding.source, "header.cuh", {30}) == 0
    assert distance(finding.source, "after.cu", {20}) is None
    assert distance(finding.source, "before.cu", ()) is None
    assert distance(None, "before.cu", {20}) is None


TABLE = {
    "report": "owner/name#1",
    "class": "phase",
    "dialect": "nvcc",
    "rule": "missing-phase-toggle",
    "arch": "sm_90a",
    "summary": "A phase was not toggled.",
}


@pytest.mark.parametrize(
    "change",
    [{"report": "name#1"}, {"class": "other"}, {"dialect": "c"}, {"summary": " "}, {"color": "red"}],
    ids=lambda change: next(iter(change)),
)
def test_a_wrong_description_is_refused(tmp_path: Path, change: dict[str, str]) -> None:
    path = tmp_path / "replay.toml"
    path.write_text("".join(f'{key} = "{value}"\n' for key, value in TABLE.items()))
    assert read_replay(tmp_path).kind == "phase"
    path.write_text("".join(f'{key} = "{value}"\n' for key, value in {**TABLE, **change}.items()))
    with pytest.raises(ReplayError, match=tmp_path.name):
        read_replay(tmp_path)


def test_table_counts_only_pairs_that_are_told_apart() -> None:
    found, far, noisy, named, missed, milder = (
        Replay(FOLDER / name, f"owner/name#{name}", "phase", dialect, "missing-phase-toggle", "sm_90a", "")
        for name, dialect in (
            ("1", "nvcc"),
            ("2", "nvcc"),
            ("3", "triton"),
            ("4", "nvcc"),
            ("5", "nvcc"),
            ("6", "nvcc"),
        )
    )
    record = figures(
        {
            found: Outcome(2, None, (), (), ()),
            far: Outcome(4, 9, (), (), ()),
            noisy: Outcome(0, 0, (), ("shared-slot-race:error",), ()),
            named: Outcome(30, 1, (), (), ()),
            missed: Outcome(None, None, (), (), ()),
            milder: Outcome(None, None, (), (), (), "warning"),
        }
    )
    assert (record["pairs"], record["told apart"]) == (6, 1)
    assert record["reports"] == 6
    assert record["dialects"] == {"nvcc": {"pairs": 5, "told apart": 1}, "triton": {"pairs": 1, "told apart": 0}}
    assert [(row["before"], row["after"]) for row in record["rows"]] == [
        ("found", "silent"),
        ("far", "silent"),
        ("found", "shared-slot-race:error"),
        ("named", "silent"),
        ("missed", "silent"),
        ("warning", "silent"),
    ]
    text = render(record)
    assert re.search(r"^owner/name#2 .* far +silent$", text, re.MULTILINE)
    assert re.search(r"^all +6 +1 +17%$", text, re.MULTILINE)


def test_section_of_the_page_has_every_pair_and_says_what_is_open() -> None:
    pair = Replay(FOLDER / "one", "owner/name#1", "phase", "nvcc", "missing-phase-toggle", "sm_90a", "", open="why")
    section = list(replay_section(figures({pair: Outcome(30, 1, (), (), ())})))
    assert "| owner/name#1 | phase | nvcc | missing-phase-toggle | 30 | named | silent |" in section
    assert "| phase | 1 | 0 |" in section
    assert "- owner/name#1 (one): why" in section


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    """The script that compiles the pairs again."""
    spec = importlib.util.spec_from_file_location("replays_build", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("before.cu", "before.cu"),
        (str(FOLDER / "one" / "before.py"), "before.py"),
        ("../../kernels/ptx.cuh", "fixtures/kernels/ptx.cuh"),
        ("/usr/local/cuda/include/sm_20_intrinsics.hpp", "sm_20_intrinsics.hpp"),
    ],
)
def test_file_names_hold_no_folder_of_a_machine(builder: ModuleType, path: str, expected: str) -> None:
    assert builder.relative(path, FOLDER / "one") == expected


def test_what_compiles_a_pair(builder: ModuleType) -> None:
    cuda, cute = (
        Replay(FOLDER / "one", "owner/name#1", "phase", dialect, "missing-phase-toggle", "sm_90a", "")
        for dialect in ("nvcc", "cute-dsl")
    )
    out = Path("out.ptx")
    assert builder.command(cuda, "before", {}, out)[:3] == ["nvcc", "-ptx", "-lineinfo"]
    assert builder.command(cute, "before", {}, out) is None
    python, script, source = builder.command(cute, "after", {"cute-dsl": "/venv/python"}, out)
    assert (python, source) == ("/venv/python", "after.py")
    assert Path(script).is_file()
