"""Loads and stores: extension to the register, parameters, vectors, and global memory that was not written."""

from __future__ import annotations

import pytest

from ptxlint.execution.layout import GLOBAL_BASE

from .running import values


class TestParameters:
    """ld.param of a kernel's own parameters."""

    @pytest.mark.parametrize(
        ("load", "register", "expected"),
        [
            ("ld.param.u32 %r9, [n];", "%r9", 0xFFFFFFFE),
            ("ld.param.u64 %rd9, [n];", "%rd9", (1 << 64) - 2),
            ("ld.param.s32 %rd9, [n];", "%rd9", (1 << 64) - 2),
            ("ld.param.u32 %rd9, [n];", "%rd9", 0xFFFFFFFE),
            ("ld.param.u8 %r9, [n];", "%r9", 0xFE),
            ("ld.param.s8 %r9, [n];", "%r9", 0xFFFFFFFE),
            ("ld.param.s8 %rs9, [n];", "%rs9", 0xFFFE),
            ("ld.param.s16 %r9, [n];", "%r9", 0xFFFFFFFE),
        ],
    )
    def test_they_are_extended_to_the_register(self, load: str, register: str, expected: int) -> None:
        assert values(load, register, 1, given={"n": -2}) == [expected]

    def test_by_position(self) -> None:
        snippet = "ld.param.u32 %r8, [a]; ld.param.u32 %r7, [b]; mad.lo.u32 %r9, %r8, 100, %r7;"
        assert values(snippet, "%r9", 1, given={0: 3, 1: 4}) == [304]

    def test_a_vector(self) -> None:
        assert values("ld.param.v2.u32 {%r8, %r9}, [n];", "%r9", 1, size=7) == [7]

    def test_through_its_address(self) -> None:
        snippet = "ld.param.u32 %r8, [n]; mov.b64 %rd1, n; add.u64 %rd1, %rd1, 4; ld.param.u32 %r9, [%rd1];"
        assert values(snippet, "%r9", 1, size=7) == [7]


class TestGlobal:
    """Global memory is the same for every reader until the kernel writes it."""

    POINTER = "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;\n"

    def test_unwritten_words_hold_the_assumed_integer(self) -> None:
        assert values(self.POINTER + "ld.global.u32 %r9, [%rd1+64];", "%r9", 3, size=21) == [21] * 3

    def test_a_narrow_load_takes_its_low_bytes(self) -> None:
        assert values(self.POINTER + "ld.global.u8 %r9, [%rd1];", "%r9", 1, size=0x1FF) == [0xFF]

    def test_what_was_written_is_read(self) -> None:
        snippet = self.POINTER + "st.global.u32 [%rd1+4], 5; ld.global.u32 %r9, [%rd1+4];"
        assert values(snippet, "%r9", 2, size=21) == [5, 5]
        snippet = self.POINTER + "st.global.u32 [%rd1+4], 5; ld.global.u32 %r9, [%rd1];"
        assert values(snippet, "%r9", 2, size=21) == [21, 21]

    def test_a_counter_of_the_grid(self) -> None:
        snippet = self.POINTER + "st.global.u32 [%rd1], 0; atom.global.add.u32 %r9, [%rd1], 1;"
        assert sorted(values(snippet, "%r9", 4)) == [0, 1, 2, 3]

    def test_a_pointer_is_no_small_integer(self) -> None:
        assert values(self.POINTER, "%rd1", 1)[0] >= GLOBAL_BASE
