"""Exchange between the lanes of a warp, against the definitions of the PTX ISA."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxlint.execution.trace import Kind

from .running import agents, initialized, run, values

TID = "mov.u32 %r1, %tid.x; mov.u32 %r2, %laneid;\n"


def shuffled(mode: str, lane: int, operand: int, clamp: int) -> tuple[int, bool]:
    """The lane that shfl.sync reads, and its predicate, as the ISA's pseudocode has it."""
    segment = clamp >> 8 & 31
    most = (lane & segment) | (clamp & 31 & ~segment)
    least = lane & segment
    source = {
        "up": lane - operand,
        "down": lane + operand,
        "bfly": lane ^ operand,
        "idx": least | (operand & ~segment & 31),
    }[mode]
    valid = source >= most if mode == "up" else source <= most
    return (source if valid else lane), valid


class TestShuffle:
    """shfl.sync."""

    @given(st.sampled_from(["up", "down", "bfly", "idx"]), st.integers(0, 31), st.sampled_from([0, 16, 24, 28, 30]))
    def test_the_pseudocode_of_the_isa(self, mode: str, operand: int, segment: int) -> None:
        clamp = segment << 8 | (0 if mode == "up" else 31)
        snippet = TID + f"add.u32 %r3, %r1, 100; shfl.sync.{mode}.b32 %r9|%p2, %r3, {operand}, {clamp}, -1;"
        expected = [shuffled(mode, lane, operand, clamp) for lane in range(32)]
        assert values(snippet, "%r9") == [100 + source for source, _ in expected]
        assert values(snippet + "selp.u32 %r9, 1, 0, %p2;", "%r9") == [int(valid) for _, valid in expected]

    def test_each_warp_reads_its_own_lanes(self) -> None:
        snippet = TID + "shfl.sync.idx.b32 %r9, %r1, 3, 31, -1;"
        assert values(snippet, "%r9", 64) == [3] * 32 + [35] * 32

    def test_a_source_that_differs_between_lanes(self) -> None:
        snippet = TID + "xor.b32 %r3, %r2, 7; shfl.sync.idx.b32 %r9, %r1, %r3, 31, -1;"
        assert values(snippet, "%r9") == [lane ^ 7 for lane in range(32)]

    def test_a_value_that_all_share(self) -> None:
        snippet = TID + "mov.u32 %r3, 5; shfl.sync.down.b32 %r9, %r3, 1, 31, -1;"
        assert values(snippet, "%r9") == [5] * 32

    def test_the_predicate_of_a_value_that_all_share(self) -> None:
        snippet = TID + "mov.u32 %r3, 5; shfl.sync.up.b32 %r4|%p2, %r3, 1, 0, -1; selp.u32 %r9, 1, 0, %p2;"
        assert values(snippet, "%r9") == [0] + [1] * 31

    def test_the_index_of_a_warp_made_uniform(self) -> None:
        """The idiom of CUTLASS: thread / 32, broadcast from lane 0."""
        snippet = TID + "shr.u32 %r3, %r1, 5; shfl.sync.idx.b32 %r9, %r3, 0, 31, -1;"
        assert values(snippet, "%r9", 96) == [0] * 32 + [1] * 32 + [2] * 32


HALF = "setp.lt.u32 %p1, %r2, 16;\n"


class TestVote:
    """vote.sync."""

    @pytest.mark.parametrize(
        ("instruction", "first", "second"),
        [
            ("vote.sync.all.pred %p2, %p1, -1;", 1, 0),
            ("vote.sync.any.pred %p2, %p1, -1;", 1, 1),
            ("vote.sync.uni.pred %p2, %p1, -1;", 1, 0),
            ("vote.sync.all.pred %p2, !%p1, -1;", 0, 0),
            ("vote.sync.any.pred %p2, !%p1, -1;", 0, 1),
            ("vote.sync.uni.pred %p2, !%p1, -1;", 1, 0),
        ],
    )
    def test_by_warp(self, instruction: str, first: int, second: int) -> None:
        """The predicate holds in all lanes of the first warp and in half of the second."""
        snippet = TID + "setp.lt.u32 %p1, %r1, 48;" + instruction + "selp.u32 %r9, 1, 0, %p2;"
        assert values(snippet, "%r9", 64) == [first] * 32 + [second] * 32

    def test_uni_where_no_lane_holds(self) -> None:
        snippet = TID + "setp.gt.u32 %p1, %r2, 40; vote.sync.uni.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;"
        assert values(snippet, "%r9") == [1] * 32

    def test_ballot_is_a_mask_of_lanes(self) -> None:
        assert values(TID + HALF + "vote.sync.ballot.b32 %r9, %p1, -1;", "%r9", 64) == [0xFFFF] * 64
        assert values(TID + HALF + "vote.sync.ballot.b32 %r9, !%p1, -1;", "%r9") == [0xFFFF0000] * 32

    def test_lanes_in_a_branch_vote_alone(self) -> None:
        snippet = (
            TID
            + HALF
            + """
        mov.u32 %r9, 7; @!%p1 bra D; setp.lt.u32 %p3, %r2, 4; vote.sync.ballot.b32 %r9, %p3, 0xffff; D:
        """
        )
        assert values(snippet, "%r9") == [0xF] * 16 + [7] * 16


class TestMatch:
    """match.sync."""

    def test_any(self) -> None:
        snippet = TID + "and.b32 %r3, %r2, 1; match.any.sync.b32 %r9, %r3, -1;"
        assert values(snippet, "%r9") == [0x55555555, 0xAAAAAAAA] * 16

    @pytest.mark.parametrize(("mask", "whole"), [(0, 0xFFFFFFFF), (1, 0)])
    def test_all(self, mask: int, whole: int) -> None:
        snippet = TID + f"and.b32 %r3, %r2, {mask}; match.all.sync.b32 %r9|%p2, %r3, -1;"
        assert values(snippet, "%r9") == [whole] * 32
        assert values(snippet + "selp.u32 %r9, 1, 0, %p2;", "%r9") == [int(whole != 0)] * 32


class TestReduction:
    """redux.sync."""

    @pytest.mark.parametrize(
        ("operation", "expected"),
        [
            ("add.u32", sum(range(32))),
            ("max.u32", 31),
            ("min.u32", 0),
            ("or.b32", 31),
            ("and.b32", 0),
            ("xor.b32", 0),
        ],
    )
    def test_by_warp(self, operation: str, expected: int) -> None:
        assert values(TID + f"redux.sync.{operation} %r9, %r2, -1;", "%r9", 64) == [expected] * 64

    def test_signed(self) -> None:
        snippet = TID + "sub.u32 %r3, %r2, 10; redux.sync.{}.s32 %r9, %r3, -1;"
        assert values(snippet.format("min"), "%r9") == [(1 << 32) - 10] * 32
        assert values(snippet.format("max"), "%r9") == [21] * 32

    def test_unsigned(self) -> None:
        snippet = TID + "sub.u32 %r3, %r2, 10; redux.sync.max.u32 %r9, %r3, -1;"
        assert values(snippet, "%r9") == [(1 << 32) - 1] * 32


class TestElect:
    """elect.sync: one leader for a mask, the same each time."""

    def test_one_lane_of_each_warp(self) -> None:
        snippet = TID + "elect.sync _|%p2, -1; selp.u32 %r9, 1, 0, %p2;"
        assert values(snippet, "%r9", 64) == ([1] + [0] * 31) * 2

    def test_all_lanes_learn_who_leads(self) -> None:
        assert values(TID + "elect.sync %r9|%p2, -1;", "%r9", 64) == [0] * 64

    def test_among_the_lanes_of_a_branch(self) -> None:
        snippet = (
            TID
            + HALF
            + """
        mov.u32 %r9, 5; @%p1 bra D; elect.sync _|%p2, 0xffff0000; selp.u32 %r9, 1, 0, %p2; D:
        """
        )
        assert values(snippet, "%r9") == [5] * 16 + [1] + [0] * 15

    def test_lanes_apart_from_the_leader_elect_nobody(self) -> None:
        snippet = (
            TID
            + HALF
            + """
        mov.u32 %r9, 5; mov.u32 %r4, 5; @%p1 bra D; elect.sync %r4|%p2, -1; selp.u32 %r9, 1, 0, %p2; D:
        """
        )
        assert values(snippet, "%r9") == [5] * 16 + [0] * 16
        assert values(snippet, "%r4") == [5] * 16 + [0] * 16

    def test_lanes_that_have_ended_are_not_waited_for(self) -> None:
        snippet = TID + "setp.lt.u32 %p1, %r2, 4; @%p1 exit; elect.sync %r9|%p2, -1;"
        assert values(snippet, "%r9") == [4] * 28

    def test_one_leader_when_lanes_have_gone_on_alone(self) -> None:
        """The elected lane spins until another lane of its warp arrives; that lane elects again before it does."""
        snippet = (
            initialized(1)
            + """
        elect.sync _|%p2, -1; @!%p2 bra MEET;
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 0; @!%p5 bra WAIT;
        MEET: elect.sync _|%p3, -1; @%p3 mbarrier.arrive.shared::cta.b64 _, [bars+8];
        setp.eq.u32 %p4, %r1, 31; @%p4 mbarrier.arrive.shared::cta.b64 _, [bars];
        """
        )
        machine = run(snippet)
        assert machine.released_joins == 1
        assert agents(machine, Kind.ARRIVE) == ["thread 0", "thread 31"]


class TestActiveMask:
    """activemask."""

    def test_all_lanes(self) -> None:
        assert values(TID + "activemask.b32 %r9;", "%r9", 40) == [0xFFFFFFFF] * 32 + [0xFF] * 8

    def test_the_lanes_of_a_branch(self) -> None:
        snippet = TID + HALF + "mov.u32 %r9, 0; @%p1 bra D; activemask.b32 %r9; D:"
        assert values(snippet, "%r9") == [0] * 16 + [0xFFFF0000] * 16


class TestGuards:
    """Lanes whose guard does not hold take no part."""

    @pytest.mark.parametrize(
        ("snippet", "expected"),
        [
            ("setp.lt.u32 %p2, %r2, 4; @%p2 vote.sync.all.pred %p3, %p2, 15;", [1] * 4 + [0] * 28),
            ("setp.ge.u32 %p2, %r2, 4; @%p2 elect.sync _|%p3, 0xfffffff0;", [0] * 4 + [1] + [0] * 27),
        ],
    )
    def test_of_predicates(self, snippet: str, expected: list[int]) -> None:
        assert values(TID + "mov.pred %p3, 0;" + snippet + "selp.u32 %r9, 1, 0, %p3;", "%r9") == expected

    @pytest.mark.parametrize(
        ("instruction", "expected"),
        [("redux.sync.add.u32 %r9, %r2, 0xc0000000;", 61), ("match.any.sync.b32 %r9, %r3, 0xc0000000;", 0xC0000000)],
    )
    def test_of_values(self, instruction: str, expected: int) -> None:
        snippet = TID + "mov.u32 %r9, 5; mov.u32 %r3, 1; setp.ge.u32 %p2, %r2, 30; @%p2 " + instruction
        assert values(snippet, "%r9") == [5] * 30 + [expected] * 2
