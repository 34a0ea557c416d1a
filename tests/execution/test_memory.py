"""Bytes that have been stored, and what is assumed of all others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxlint.execution.memory import Bytes

from .running import values

ADDRESSES = st.integers(0, 24)
STORES = st.lists(st.tuples(ADDRESSES, st.sampled_from([1, 2, 4, 8]), st.integers(0, (1 << 64) - 1)))


class TestBytes:
    """The model by itself."""

    @given(st.integers(0, 100), st.sampled_from([1, 2, 4, 8, 16]), st.integers(0, (1 << 128) - 1))
    def test_what_was_stored_is_read(self, address: int, width: int, value: int) -> None:
        memory = Bytes()
        memory.store(address, width, value)
        assert memory.load(address, width) == value & (1 << 8 * width) - 1

    @given(STORES, ADDRESSES, st.sampled_from([1, 2, 4, 8]))
    def test_it_holds_single_bytes(self, stores: list[tuple[int, int, int]], address: int, width: int) -> None:
        memory, model = Bytes(), bytearray(64)
        for at, size, value in stores:
            memory.store(at, size, value)
            model[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        assert memory.load(address, width) == int.from_bytes(model[address : address + width], "little")

    def test_untouched_bytes_hold_what_is_assumed(self) -> None:
        memory = Bytes(lambda address, width: address + width)
        memory.store(64, 4, 7)
        assert memory.load(32, 4) == 36
        assert memory.load(64, 4) == 7

    def test_untouched_bytes_hold_zero_where_nothing_is_assumed(self) -> None:
        assert Bytes().load(5, 4) == 0


SHARED = ".shared .align 8 .b8 tile[64];\nmov.u32 %r1, %tid.x;\n"


class TestShared:
    """Shared memory as instructions see it."""

    @pytest.mark.parametrize(
        ("store", "load", "expected"),
        [
            ("st.shared.b32 [tile], 0x04030201;", "ld.shared.b8 %r9, [tile+2];", 3),
            ("st.shared.b32 [tile], 0x04030201;", "ld.shared.b16 %r9, [tile+1];", 0x302),
            ("st.shared.b32 [tile], -1; st.shared.b8 [tile+1], 0;", "ld.shared.b32 %r9, [tile];", 0xFFFF00FF),
            ("st.shared.b32 [tile], 0x180;", "ld.shared.s8 %r9, [tile];", 0xFFFFFF80),
            ("st.shared.b32 [tile], 0x180;", "ld.shared.u8 %r9, [tile];", 0x80),
            ("st.shared.b16 [tile], 0x8000;", "ld.shared.s16 %r9, [tile];", 0xFFFF8000),
            ("st.shared.v2.b32 [tile], {5, 6};", "ld.shared.b32 %r9, [tile+4];", 6),
            ("st.shared.b32 [tile+4], 7;", "ld.shared.v2.b32 {%r8, %r9}, [tile];", 7),
            ("st.shared.b32 [tile], 0x1ff;", "ld.shared.b16 %r9, [tile];", 0x1FF),
            ("st.shared.b8 [tile], 0x1ff;", "ld.shared.b32 %r9, [tile];", 0xFF),
        ],
    )
    def test_bytes_of_words(self, store: str, load: str, expected: int) -> None:
        assert values(SHARED + store + load, "%r9", 1) == [expected]

    def test_a_word_of_which_a_later_byte_was_stored(self) -> None:
        assert values(SHARED + "st.shared.b8 [tile+1], 7; ld.shared.b32 %r9, [tile];", "%r9", 1) == [0x700]

    def test_what_one_thread_leaves_another_finds(self) -> None:
        snippet = "mov.u32 %r2, 0; @%p1 bra W; bra M; W: mov.u32 %r2, 9; st.shared.b32 [tile], %r2; M: bar.sync 0;"
        first = SHARED + "setp.eq.u32 %p1, %r1, 3;" + snippet + "ld.shared.b32 %r9, [tile];"
        assert values(first, "%r9", 64) == [9] * 64

    @pytest.mark.parametrize(
        ("instruction", "expected"),
        [
            ("@%p1 st.shared.b32 [tile], %r1;", 3),
            ("@%p1 red.shared.add.u32 [tile], 1;", 1),
            ("@%p1 atom.shared.add.u32 %r8, [tile], 1;", 1),
            ("@%p1 atom.shared.exch.b32 %r8, [tile], %r1;", 3),
        ],
    )
    def test_a_guard_that_holds_in_one_lane(self, instruction: str, expected: int) -> None:
        snippet = SHARED + "setp.eq.u32 %p1, %r1, 3;" + instruction + "bar.sync 0; ld.shared.b32 %r9, [tile];"
        assert values(snippet, "%r9") == [expected] * 32


class TestAtomics:
    """atom and red, lane by lane."""

    @pytest.mark.parametrize(
        ("instruction", "expected"),
        [
            ("atom.shared.add.u32 %r8, [tile], 2;", 64),
            ("red.shared.add.u32 [tile], 2;", 64),
            ("atom.shared.max.u32 %r8, [tile], %r1;", 31),
            ("atom.shared.or.b32 %r8, [tile], %r1;", 31),
            ("atom.shared.inc.u32 %r8, [tile], 4;", 2),
            ("atom.shared.exch.b32 %r8, [tile], 11;", 11),
            ("atom.shared.cas.b32 %r8, [tile], %r1, 7;", 7),
        ],
    )
    def test_what_they_leave(self, instruction: str, expected: int) -> None:
        snippet = SHARED + instruction + "bar.sync 0; ld.shared.b32 %r9, [tile];"
        assert values(snippet, "%r9") == [expected] * 32

    def test_each_lane_gets_the_value_before_its_own(self) -> None:
        assert sorted(values(SHARED + "atom.shared.add.u32 %r9, [tile], 3;", "%r9")) == [3 * i for i in range(32)]

    def test_dec_wraps_to_its_operand(self) -> None:
        assert values(SHARED + "atom.shared.dec.u32 %r9, [tile], 9; ld.shared.b32 %r9, [tile];", "%r9", 1) == [9]

    def test_signed_minimum(self) -> None:
        snippet = SHARED + "mov.u32 %r2, -5; atom.shared.min.s32 %r8, [tile], %r2; ld.shared.b32 %r9, [tile];"
        assert values(snippet, "%r9", 1) == [(1 << 32) - 5]


LOCAL = ".local .align 8 .b8 own[32];\nmov.u32 %r1, %tid.x;\n"


class TestLocal:
    """Local memory: one for each thread. Phases of ring slots are kept there."""

    def test_each_thread_finds_its_own_value(self) -> None:
        assert values(LOCAL + "st.local.b32 [own], %r1; ld.local.b32 %r9, [own];", "%r9", 4) == [0, 1, 2, 3]

    def test_an_array_of_phases_with_an_index_that_all_share(self) -> None:
        snippet = (
            LOCAL
            + """
        st.local.b32 [own], 0; st.local.b32 [own+4], 0; st.local.b32 [own+8], 0;
        mov.u32 %r2, 0; mov.u32 %r9, 0;
        L: rem.u32 %r3, %r2, 3; mul.wide.u32 %rd2, %r3, 4; mov.u64 %rd1, own; add.u64 %rd1, %rd1, %rd2;
        ld.local.b32 %r4, [%rd1]; shl.b32 %r9, %r9, 1; or.b32 %r9, %r9, %r4;
        xor.b32 %r4, %r4, 1; st.local.b32 [%rd1], %r4;
        add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2 bra L;
        """
        )
        assert values(snippet, "%r9", 2) == [0b000111000] * 2

    def test_half_of_a_word(self) -> None:
        snippet = LOCAL + "mov.u64 %rd1, 0x0000000700000005; st.local.b64 [own], %rd1; ld.local.b32 %r9, [own+4];"
        assert values(snippet, "%r9", 1) == [7]

    def test_it_follows_its_threads_through_a_branch(self) -> None:
        snippet = (
            LOCAL
            + """
        setp.lt.u32 %p2, %r1, 2; @%p2 bra A; st.local.b32 [own], 20; bra B;
        A: st.local.b32 [own], 10; B: ld.local.b32 %r9, [own];
        """
        )
        assert values(snippet, "%r9", 4) == [10, 10, 20, 20]

    @pytest.mark.parametrize(
        ("stores", "load", "expected"),
        [
            ("st.local.b8 [own], 511;", "ld.local.b8 %r9, [own];", 255),
            ("st.local.b32 [own], 0; st.local.b8 [own+1], 5;", "ld.local.b32 %r9, [own];", 0x500),
            ("st.local.b8 [own], %r1; st.local.b8 [own+1], %r1;", "ld.local.b16 %r9, [own];", 0x303),
        ],
    )
    def test_bytes_of_words(self, stores: str, load: str, expected: int) -> None:
        assert values(LOCAL + stores + load, "%r9", 4)[3] == expected

    def test_an_index_of_its_own_in_each_thread(self) -> None:
        snippet = (
            LOCAL
            + """
        st.local.b32 [own], 99; and.b32 %r2, %r1, 1; mul.wide.u32 %rd2, %r2, 4; mov.u64 %rd1, own;
        add.u64 %rd1, %rd1, %rd2; st.local.b32 [%rd1], %r1; ld.local.b32 %r9, [own];
        """
        )
        assert values(snippet, "%r9", 4) == [0, 99, 2, 99]

    def test_a_guarded_store(self) -> None:
        snippet = LOCAL + "st.local.b32 [own], 9; setp.lt.u32 %p2, %r1, 2; @%p2 st.local.b32 [own], %r1;"
        assert values(snippet + "ld.local.b32 %r9, [own];", "%r9", 4) == [0, 1, 9, 9]
