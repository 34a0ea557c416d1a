"""Kernels with marked lines: every default rule runs over each, and finds what is marked and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxlint import registry
from ptxlint.launch import Dimensions, Launch
from ptxlint.lint import Options, lint_text
from ptxlint.result import Diagnosis
from ptxlint.testing import compared, found, marked
from ptxlint.validate.fixture import Fixture, Variant, load_fixtures

FIXTURES = Path(__file__).parent.parent / "fixtures"


def _marked_files() -> Iterator[object]:
    for rule in registry.rules():
        for path in sorted((FIXTURES / rule.name).glob("*.ptx")):
            yield pytest.param(path, id=f"{rule.name}/{path.stem}")


def _variants() -> Iterator[object]:
    for fixture in load_fixtures(FIXTURES / "kernels"):
        for variant in fixture.variants:
            if variant.ptx.exists():
                yield pytest.param(fixture, variant, id=variant.id)


@pytest.mark.parametrize("path", list(_marked_files()))
def test_marked_ptx(path: Path) -> None:
    text = path.read_text()
    difference = compared(text, marked(text), found(text, registry.select()))
    assert not difference, difference


@pytest.mark.parametrize("path", sorted((FIXTURES / "clean").glob("**/*.ptx")), ids=lambda path: path.stem)
def test_clean_ptx(path: Path) -> None:
    text = path.read_text()
    difference = compared(text, set(), found(text, registry.select()))
    assert not difference, difference


@pytest.mark.parametrize(("fixture", "variant"), list(_variants()))
def test_kernel_variant(fixture: Fixture, variant: Variant) -> None:
    """A marker is met by any source frame of a finding; of one rule's markers, any one is enough."""
    findings = _findings(fixture, variant)
    expected = {marker.rule for marker in variant.markers}
    met = {marker.rule for marker in variant.markers if any(_is_at(finding, marker.line) for finding in findings)}
    stray = [finding for finding in findings if finding.rule not in expected | variant.also]
    described = "\n".join(f"  {finding.rule} at {finding.source}: {finding.message}" for finding in findings)
    assert not stray, f"stray findings among\n{described}"
    assert expected <= met, f"not found on a marked line: {expected - met}; found\n{described}"


def _findings(fixture: Fixture, variant: Variant) -> tuple[Diagnosis, ...]:
    launch = Launch(
        block=_extents(fixture.launch.block),
        cluster=_extents(fixture.launch.cluster),
        grid=_extents(fixture.launch.grid),
        dynamic_shared=fixture.launch.dynamic_smem,
    )
    report = lint_text(variant.ptx.read_text(), str(variant.ptx), Options(registry.select(), launch))
    assert report.problem is None, report.problem
    assert not report.faults, report.faults[0].traceback
    return report.findings


def _is_at(finding: Diagnosis, line: int) -> bool:
    return finding.source is not None and any(frame.line == line for frame in finding.source.frames())


def _extents(extents: tuple[int, ...]) -> Dimensions:
    x, y, z = (*extents, 1, 1)[:3]
    return (x, y, z)
