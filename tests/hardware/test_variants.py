"""Every fixture on the GPU of this machine: right variants give right results, also with delays put in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxlint.validate.fixture import Variant, load_fixtures

KERNELS = Path(__file__).parent.parent.parent / "fixtures" / "kernels"
RIGHT = [
    pytest.param(variant, id=variant.id)
    for fixture in load_fixtures(KERNELS)
    if fixture.arch in ("sm_80", "sm_90", "sm_90a")
    for variant in fixture.variants
    if variant.right
]

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="needs a GPU of compute capability 9.0")


@pytest.mark.parametrize("variant", RIGHT)
def test_right_variant_is_right(variant: Variant) -> None:
    options = ["--launches=50", "--delayed=2", "--delayed-seconds=5"]
    command = [sys.executable, "-m", "ptxlint.validate.trial", str(variant.source), variant.name, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr
    assert lines[-1]["outcome"] == {"kind": "right", "right": 50, "wrong": 0, "detail": ""}
    assert "where" not in lines[-1]["delayed"], lines[-1]["delayed"]
