"""Pairs of kernels with a race and without it, in three dialects: found as an error before, nothing after."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from ptxlint import registry
from ptxlint.lint import Options, lint_text
from ptxlint.result import Diagnosis
from ptxlint.rule import Severity

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "races"
PAIRS = sorted(path.parent for path in FOLDER.glob("*/race.toml"))
EVERY = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


def _described(pair: Path) -> Mapping[str, str]:
    described: dict[str, str] = tomllib.loads((pair / "race.toml").read_text())
    return described


def _findings(ptx: Path) -> list[Diagnosis]:
    report = lint_text(ptx.read_text(), str(ptx), Options(registry.select()))
    assert report.problem is None, report.problem
    assert not report.faults, report.faults[0].traceback
    return [finding for finding in report.findings if finding.severity is not Severity.INFO]


@EVERY
def test_the_race_has_one_name(pair: Path) -> None:
    found = _findings(pair / "before.ptx")
    assert {(finding.rule, finding.severity) for finding in found} == {(_described(pair)["rule"], Severity.ERROR)}
    assert all(finding.source is not None for finding in found)


@EVERY
def test_the_right_twin_is_silent(pair: Path) -> None:
    assert [f"{finding.rule}: {finding.message}" for finding in _findings(pair / "after.ptx")] == []


@EVERY
def test_a_pair_is_described_and_differs(pair: Path) -> None:
    described = _described(pair)
    assert set(described) == {"rule", "dialect", "arch", "about"}
    assert pair.name.startswith(described["dialect"])
    ending = "cu" if described["dialect"] == "nvcc" else "py"
    assert (pair / f"before.{ending}").read_text() != (pair / f"after.{ending}").read_text()


def test_all_dialects_are_there() -> None:
    assert {_described(pair)["dialect"] for pair in PAIRS} == {"nvcc", "gluon", "cute-dsl"}
