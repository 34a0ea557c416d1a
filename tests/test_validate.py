"""The hardware runs as far as they can be checked without a GPU: problems, delays, the sanitizer's text, the record."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ptxlint.validate import record
from ptxlint.validate.delay import delays, slowed
from ptxlint.validate.fixture import Fixture, Variant, header, load_fixtures, markers
from ptxlint.validate.sanitizer import report_of

pytest.importorskip("numpy")

from ptxlint.validate.problem import problem_of

KERNELS = Path(__file__).parent.parent / "fixtures" / "kernels"
VARIANTS = [(fixture, variant) for fixture in load_fixtures(KERNELS) for variant in fixture.variants]
IDS = [variant.id for _, variant in VARIANTS]


@pytest.mark.parametrize(("fixture", "variant"), VARIANTS, ids=IDS)
def test_outputs_have_the_size_of_their_buffers(fixture: Fixture, variant: Variant) -> None:
    problem = problem_of(fixture, variant, seed=1)
    outputs = [buffer for buffer in problem.buffers.values() if buffer.expected is not None]
    assert outputs
    for buffer in outputs:
        assert buffer.expected is not None
        assert buffer.expected.shape == buffer.initial.shape
        assert (buffer.expected != buffer.initial).any()


@pytest.mark.parametrize(("fixture", "variant"), VARIANTS, ids=IDS)
def test_ptx_is_committed_without_paths_of_the_machine(fixture: Fixture, variant: Variant) -> None:
    text = variant.ptx.read_text()
    files = [line for line in text.splitlines() if line.strip().startswith(".file")]
    assert files
    assert not [line for line in files if '"/' in line]
    assert all(f".entry {name}(" in text for name in fixture.sequence)


@pytest.mark.skipif(not shutil.which("ptxas"), reason="needs ptxas")
@pytest.mark.parametrize("name", ["ring/right", "wgmma_gemm/right", "cluster_multicast/right", "cp_async_ring/right"])
def test_slowed_ptx_is_still_legal(name: str, tmp_path: Path) -> None:
    fixture, variant = VARIANTS[IDS.index(name)]
    ptx = variant.ptx.read_text()
    places = list(delays(ptx))
    assert len(places) >= 12
    for place in {places[0], places[1], places[2], places[-1]}:
        source = tmp_path / "slowed.ptx"
        source.write_text(slowed(ptx, place))
        command = ["ptxas", f"-arch={fixture.arch}", str(source), "-o", str(tmp_path / "out")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{place}\n{done.stderr}"


def test_markers_name_variants_of_the_line() -> None:
    text = "a(); // expect[x]: some-rule; expect[y, z]: other-rule\nb();"
    found = [(marker.variant, marker.rule, marker.line) for marker in markers(text)]
    assert found == [("x", "some-rule", 1), ("y", "other-rule", 1), ("z", "other-rule", 1)]


def test_header_starts_at_its_first_table() -> None:
    assert header("/*\nProse [not a table].\n\n[kernel]\nname = 'k'\n*/ code") == {"kernel": {"name": "k"}}


CLEAN = """========= COMPUTE-SANITIZER
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
"""

HAZARD = """========= COMPUTE-SANITIZER
========= Error: Potential WAR hazard detected at __shared__ 0x420 in block (0,0,0) :
=========     Write Thread (0,0,0) at ring+0x4b0
=========
========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)
"""

PASSED_ON = """========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("text", "first", "ended"),
    [(CLEAN, "", True), (HAZARD, "Error: Potential WAR hazard", True), (PASSED_ON, "", True), ("", "", False)],
)
def test_first_finding_of_the_sanitizer(text: str, first: str, ended: bool) -> None:
    report = report_of("racecheck", text)
    assert report.first.startswith(first)
    assert bool(report.first) == bool(first)
    assert report.ended == ended


def test_described_outcome_says_what_a_delay_brought_out() -> None:
    plain = {"kind": "right", "right": 200, "wrong": 0, "detail": ""}
    late = {"kind": "wrong", "right": 0, "wrong": 5, "detail": ""}
    assert record.described({"outcome": plain}) == "passes 200/200"
    assert record.described({"outcome": plain, "delayed": {"tried": 4}}) == "passes 200/200"
    assert record.described({"outcome": plain, "delayed": {"tried": 2, "where": "there", "outcome": late}}) == (
        "passes 200/200; wrong with a delay: there"
    )
