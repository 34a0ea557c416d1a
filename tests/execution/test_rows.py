"""Blocks whose threads go by rows and layers, of which nobody states the extents."""

from __future__ import annotations

import pytest

from ptxlint.execution.rows import likely_blocks, reads_rows
from ptxlint.facts import UNKNOWN_ROWS, Facts, Mistake
from ptxlint.launch import Dimensions, Launch
from ptxlint.parse import parse
from ptxlint.rule import Severity
from ptxlint.testing import module_of

from .running import executed, kernel

XY = "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;"
XYZ = f"{XY} mov.u32 %r3, %tid.z;"

EXCHANGE = """
.shared .align 4 .b8 words[2048];
mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;
shl.b32 %r3, %r2, 4; add.u32 %r4, %r3, %r1;
shl.b32 %r5, %r4, 2; mov.u32 %r6, words; add.u32 %r7, %r6, %r5;
st.shared.u32 [%r7], %r1;
{between}
ld.shared.u32 %r9, [%r8];
"""
"""Each thread writes its word of rows of 16 and reads another one."""

ACROSS = "bar.sync 0; xor.b32 %r8, %r7, 64;"
OWN = "mov.u32 %r8, %r7;"
UNSYNCED = "bar.sync 0; st.shared.u32 [%r7], %r2; xor.b32 %r8, %r7, 256;"


def likely(snippet: str, threads: int | None = None) -> list[Dimensions]:
    return list(likely_blocks(kernel(f"{snippet} bar.sync 0;").cfg, threads))


def facts_of(snippet: str) -> Facts:
    module = parse(module_of(snippet))
    return Facts(module, module.functions[0], Launch())


class TestRatios:
    """Extents by the factors of sums."""

    @pytest.mark.parametrize(
        ("numbering", "width"),
        [
            ("shl.b32 %r4, %r2, 4; add.u32 %r5, %r4, %r1;", 16),
            ("mad.lo.u32 %r5, %r2, 24, %r1;", 24),
            ("mul.lo.u32 %r4, %r2, 8; or.b32 %r5, %r4, %r1;", 8),
            ("shl.b32 %r4, %r1, 3; mad.lo.u32 %r5, %r2, 128, %r4;", 16),
            ("cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r2; shl.b64 %rd3, %rd2, 6; add.s64 %rd4, %rd3, %rd1;", 64),
        ],
    )
    def test_the_length_of_a_row(self, numbering: str, width: int) -> None:
        assert {block[0] for block in likely(XY + numbering)} == {width, 32}
        assert likely(XY + numbering)[0][0] == width

    def test_the_length_of_a_layer(self) -> None:
        snippet = XYZ + "mad.lo.u32 %r4, %r3, 3, %r2; mad.lo.u32 %r5, %r4, 16, %r1;"
        assert likely(snippet)[:2] == [(16, 3, 2), (16, 3, 5)]
        assert likely(snippet, 96)[0] == (16, 3, 2)
        assert (16, 3, 1) in likely(snippet)

    def test_layers_of_one_row(self) -> None:
        assert likely(XYZ + "add.u32 %r4, %r3, %r2; shl.b32 %r5, %r4, 5; add.u32 %r6, %r5, %r1;")[0] == (32, 1, 4)

    def test_layers_without_rows(self) -> None:
        assert likely("mov.u32 %r1, %tid.x; mov.u32 %r3, %tid.z; mad.lo.u32 %r5, %r3, 32, %r1;", 128)[0] == (32, 1, 4)

    def test_the_most_frequent_comes_first(self) -> None:
        once = "mad.lo.u32 %r4, %r2, 64, %r1;"
        twice = "mad.lo.u32 %r5, %r2, 16, %r1; shl.b32 %r6, %r5, 2;"
        assert [block[0] for block in likely(XY + once + twice, 128)] == [16, 64, 32]

    def test_steps_between_tiles_are_no_rows(self) -> None:
        assert likely(XY + "mad.lo.u32 %r4, %r2, 4096, %r1;", 128)[0] == (32, 4, 1)

    def test_a_register_with_two_values_says_nothing(self) -> None:
        assert likely(XY + "mov.u32 %r4, %r2; mov.u32 %r4, 0; mad.lo.u32 %r5, %r4, 16, %r1;", 128)[0] == (32, 4, 1)

    def test_a_kernel_that_asks_for_the_length_does_with_any(self) -> None:
        rank = "mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r2, %r4, %r1;"
        assert likely(XY + rank, 128) == [(128, 1, 1)]

    def test_only_kernels_that_go_by_rows(self) -> None:
        assert reads_rows(kernel(f"{XY} bar.sync 0;").cfg)
        assert not reads_rows(kernel("mov.u32 %r1, %tid.x; bar.sync 0;").cfg)


class TestRuns:
    """A kernel is run in the rows that its numbering tells."""

    def test_rows_as_numbered(self) -> None:
        execution = executed(EXCHANGE.format(between=ACROSS))
        assert execution.block == (16, 8, 1)
        assert not execution.conflicts
        assert not execution.has_unknown_rows

    def test_a_stated_block_is_taken_at_its_word(self) -> None:
        execution = executed(EXCHANGE.format(between=OWN), threads=64)
        assert execution.block == (64, 1, 1)
        assert not execution.has_unknown_rows

    def test_extents_under_which_nothing_conflicts_are_found(self) -> None:
        """Rows of 64 by the number of sums, of 16 by the accesses."""
        misleading = "mad.lo.u32 %r11, %r2, 64, %r1; add.u32 %r12, %r11, 1; add.u32 %r13, %r11, 2;"
        more = "add.u32 %r14, %r11, 3; add.u32 %r15, %r11, 4;"
        execution = executed(EXCHANGE.format(between=misleading + more + OWN))
        assert execution.block == (16, 8, 1)
        assert not execution.conflicts

    def test_accesses_that_conflict_in_all_rows(self) -> None:
        """A hint, since the rows are guessed."""
        facts = facts_of(EXCHANGE.format(between=UNSYNCED))
        clashes = list(facts.clashes(*Mistake))
        assert [clash.finding("", "").severity for clash in clashes] == [Severity.WARNING]
        assert not facts.not_analysed

    def test_other_accesses_conflict_in_other_rows(self) -> None:
        """Rows of 16 where each thread reads its own word first, of 32 and no more than four where it does next."""
        second = """
        and.b32 %r11, %r2, 3; shl.b32 %r12, %r11, 7; shl.b32 %r13, %r1, 2; add.u32 %r14, %r12, %r13;
        mov.u32 %r15, words+1024; add.u32 %r16, %r14, %r15;
        ld.shared.u32 %r9, [%r7]; bar.sync 0; st.shared.u32 [%r16], %r1; ld.shared.u32 %r17, [%r16];
        """
        facts = facts_of(EXCHANGE.format(between=OWN + second))
        assert facts.execution.has_unknown_rows
        assert not list(facts.clashes(*Mistake))
        assert facts.not_analysed == UNKNOWN_ROWS

    def test_threads_stand_in_the_rows_of_the_run(self) -> None:
        facts = facts_of(EXCHANGE.format(between=ACROSS))
        assert facts.threads.count == 128
        assert facts.threads.is_guessed
        assert not facts.has_unknown_rows


def test_rows_and_layers_in_sums_of_their_own() -> None:
    """No address has both: what a layer and a row add to the same places tells how many rows a layer has."""
    sums = f"{XYZ} shl.b32 %r4, %r1, 4; mad.lo.s32 %r5, %r2, 256, %r4; mad.lo.s32 %r6, %r3, 768, %r4;"
    assert (16, 3, 2) in likely(sums)[:2]
