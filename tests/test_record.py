"""The committed record of the hardware run: it is of the committed PTX, and the right variants were right."""

from pathlib import Path

import pytest

from ptxlint.validate import record
from ptxlint.validate.fixture import Fixture, Variant, load_fixtures

KERNELS = Path(__file__).parent.parent / "fixtures" / "kernels"
RECORD = record.read(KERNELS / "record.json")
VARIANTS = [
    pytest.param(fixture, variant, id=variant.id) for fixture in load_fixtures(KERNELS) for variant in fixture.variants
]


@pytest.mark.parametrize(("fixture", "variant"), VARIANTS)
def test_variant_is_recorded_as_it_is_committed(fixture: Fixture, variant: Variant) -> None:
    entry = RECORD["variants"][variant.id]
    assert entry["ptx"] == record.digest(variant), "run python -m ptxlint.validate for it again"
    assert entry["is_right"] == variant.right
    assert entry["outcome"]["kind"].startswith(record.NOT_RUN) == fixture.arch.startswith("sm_10")


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(variant, id=variant.id)
        for fixture in load_fixtures(KERNELS)
        for variant in fixture.variants
        if variant.right and not fixture.arch.startswith("sm_10")
    ],
)
def test_right_variant_was_right_every_time(variant: Variant) -> None:
    entry = RECORD["variants"][variant.id]
    assert entry["outcome"]["kind"] == "right"
    assert entry["outcome"]["right"] == RECORD["machine"]["launches"]
    assert "where" not in entry["delayed"]
    assert entry["delayed"]["tried"] > 0


def test_record_has_no_variant_that_is_gone() -> None:
    known = {variant.id for fixture in load_fixtures(KERNELS) for variant in fixture.variants}
    assert set(RECORD["variants"]) == known
