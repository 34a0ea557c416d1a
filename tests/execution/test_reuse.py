"""Slots that are filled again too early: what each pair of kernels shows, and the distance where it is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.facts import Facts, Mistake, Return
from ptxlint.launch import Launch, stated
from ptxlint.parse import parse

RACES = Path(__file__).resolve().parents[2] / "fixtures" / "races"
REUSE = (Mistake.UNACKNOWLEDGED, Mistake.REUSED_EARLY, Mistake.SLICES)


def facts_of(pair: str, side: str = "before") -> Facts:
    module = parse((RACES / pair / f"{side}.ptx").read_text())
    (function,) = (function for function in module.functions if function.is_entry)
    return Facts(module, function, stated(function, Launch()))


@pytest.mark.parametrize(
    ("pair", "why", "slots", "heard"),
    [
        ("nvcc-mailbox", Return.NOTHING, 1, 0),
        ("nvcc-hopper-buffer-too-few", Return.MORE_BARRIERS, 3, 4),
        ("nvcc-blackwell-buffer-too-few", Return.MORE_BARRIERS, 3, 4),
        ("gluon-hopper-buffer-too-few", Return.MORE_BARRIERS, 2, 3),
        ("cute-dsl-hopper-buffer-too-few", Return.MORE_BARRIERS, 3, 4),
        ("nvcc-mailbox-one-of-two-readers", Return.OTHER_READER, 1, 0),
        ("nvcc-hopper-one-of-two-readers", Return.OTHER_READER, 4, 0),
        ("nvcc-guard-one-trip-late", Return.OTHER_FILLING, 3, 3),
        ("cute-dsl-cp-async-loop-back-barrier", Return.OTHER_FILLING, 3, 4),
        ("nvcc-overlapping-slices", Return.OVERLAP, 0, 0),
    ],
)
def test_why_a_slot_comes_back_too_early(pair: str, why: Return, slots: int, heard: int) -> None:
    (clash,) = facts_of(pair).clashes(*REUSE)
    assert clash.reuse is not None
    assert (clash.reuse.why, clash.reuse.slots, clash.reuse.heard) == (why, slots, heard)


def test_readers_are_told_apart() -> None:
    (clash,) = facts_of("nvcc-mailbox-one-of-two-readers").clashes(*REUSE)
    assert clash.reuse is not None
    assert (str(clash.reuse.unheard), str(clash.reuse.awaited)) == ("warps 1-2", "warp 3")
    (clash,) = facts_of("nvcc-hopper-one-of-two-readers").clashes(*REUSE)
    assert clash.reuse is not None
    assert (str(clash.reuse.unheard), str(clash.reuse.awaited)) == ("warps 4-7", "warps 0-3")


def test_barriers_of_the_way_are_named() -> None:
    (clash,) = facts_of("nvcc-mailbox").clashes(*REUSE)
    assert (clash.handed, clash.returned) == ("ready", "")


@pytest.mark.parametrize(
    ("pair", "extent", "stride"),
    [
        ("nvcc-overlapping-slices", 2048, 1536),
        ("nvcc-blackwell-overlapping-columns", 16, 8),
        ("gluon-blackwell-overlapping-columns", 64, 32),
        ("cute-dsl-blackwell-overlapping-columns", 64, 32),
    ],
)
def test_how_far_apart_slots_lie(pair: str, extent: int, stride: int) -> None:
    (clash,) = facts_of(pair).clashes(Mistake.SLICES)
    assert clash.reuse is not None
    assert (clash.reuse.extent, clash.reuse.stride) == (extent, stride)


def test_what_follows_from_an_early_refill_is_not_told() -> None:
    """The refill also overwrites what another copy has just brought, and what others have yet to read."""
    facts = facts_of("nvcc-hopper-buffer-too-few")
    assert len(facts.execution.conflicts) > 2
    assert [clash.mistake for clash in facts.clashes(*(set(Mistake) - {Mistake.OVERWRITTEN}))] == [Mistake.REUSED_EARLY]


def test_a_phase_that_is_overtaken_is_looked_at_in_a_schedule_in_which_it_is_not() -> None:
    facts = facts_of("nvcc-guard-one-trip-late")
    assert [defect.fault.name for defect in facts.execution.defects] == ["OVERTAKE"]
    assert facts.execution.conflicts
