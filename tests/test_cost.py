"""The cost of running kernels: what is measured, and the row of a folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.cost import Cost, measured, row  # noqa: E402


def test_a_row_has_median_and_ninth_decile() -> None:
    costs = [Cost("m", alone, 2 * alone, 3 * alone) for alone in (1.0, 2.0, 3.0)]
    cells = row("ring", costs).split()
    assert cells == ["ring", "3", "2.000", "3.000", "4.000", "6.000", "2.00", "2.00", "6.000", "9.000"]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
def test_modules_with_kernels_that_are_run_are_measured(tmp_path: Path) -> None:
    cost = measured(ROOT / "fixtures/kernels/ring/right.ptx", 1)
    assert cost is not None
    assert min(cost.alone, cost.ordered, cost.ptxas) > 0
    empty = tmp_path / "empty.ptx"
    empty.write_text(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n")
    assert measured(empty, 1) is None
