"""Agents: how a branch parts threads, where lanes meet again, and that values keep to their threads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxlint.execution.strand import Join, Region, Strand
from ptxlint.execution.trace import Kind
from ptxlint.execution.values import lift, narrow, spread, uniform

from .running import agents, initialized, kernel, run, values

MARK = "mbarrier.arrive.shared::cta.b64 _, [bars];\n"
"""Its event says which threads are together."""


def together(snippet: str, threads: int = 96) -> list[str]:
    """The agents that come to the end of a snippet."""
    return agents(run(initialized(1 << 10) + snippet + MARK, threads), Kind.ARRIVE)


def branch(condition: str) -> str:
    """A branch whose two sides compute something that the mark's address depends on."""
    return f"""
    setp.{condition}; @%p2 bra THEN;
    mov.u32 %r5, bars; bra MEET;
    THEN: mov.u32 %r5, bars;
    MEET: mbarrier.arrive.shared::cta.b64 _, [%r5];
    """


class TestParting:
    """The three kinds of split."""

    def test_a_branch_that_all_take_parts_nobody(self) -> None:
        assert together("setp.lt.u32 %p2, %r1, 1000; @%p2 bra ON; bar.sync 5; ON:") == ["warps 0-2"]

    def test_whole_warps_part_for_good(self) -> None:
        assert together("setp.lt.u32 %p2, %r1, 32; @%p2 bra ON; bar.sync 1, 64; ON:") == ["warp 0", "warps 1-2"]

    def test_lanes_of_a_warp_meet_again(self) -> None:
        snippet = branch("lt.u32 %p2, %r1, 16")
        machine = run(initialized(1 << 10) + snippet, 32)
        assert agents(machine, Kind.ARRIVE) == ["warp 0"]

    def test_only_the_mixed_warp_is_held_together(self) -> None:
        machine = run(initialized(1 << 10) + branch("lt.u32 %p2, %r1, 48"), 96)
        assert agents(machine, Kind.ARRIVE) == ["warp 0", "warp 1", "warp 2"]

    def test_warps_of_one_mixed_branch_meet_each_by_itself(self) -> None:
        """Lanes 0-15 of each warp do more; what they wait for is brought by another warp's other lanes."""
        snippet = """
        and.b32 %r5, %r1, 31; setp.lt.u32 %p2, %r5, 16; @%p2 bra WAIT; bra MEET;
        WAIT: setp.lt.u32 %p3, %r1, 32; @%p3 bra MEET;
        L: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars+8], 0; @!%p5 bra L;
        MEET: setp.eq.u32 %p4, %r1, 0; @%p4 mbarrier.arrive.shared::cta.b64 _, [bars+8];
        """
        machine = run(initialized(1 << 10) + snippet, 64)
        assert not machine.blocked
        assert machine.released_joins == 0

    def test_lanes_that_exit_inside_a_region(self) -> None:
        snippet = """
        setp.lt.u32 %p2, %r1, 16; @!%p2 bra MEET;
        setp.lt.u32 %p3, %r1, 8; @%p3 exit;
        MEET:
        """
        assert together(snippet, 32) == ["threads 8-31"]

    def test_all_lanes_of_one_side_exit(self) -> None:
        assert together("setp.lt.u32 %p2, %r1, 16; @!%p2 bra MEET; exit; MEET:", 32) == ["threads 16-31"]

    def test_a_guarded_exit(self) -> None:
        staying = together("setp.lt.u32 %p2, %r1, 40; @%p2 exit;", 96)
        assert staying == ["threads 40-63", "warp 2"]

    def test_regions_inside_regions(self) -> None:
        snippet = """
        setp.lt.u32 %p2, %r1, 24; @!%p2 bra OUT;
        setp.lt.u32 %p3, %r1, 8; @!%p3 bra IN;
        mbarrier.arrive.shared::cta.b64 _, [bars+8];
        IN: mbarrier.arrive.shared::cta.b64 _, [bars+8];
        OUT:
        """
        machine = run(initialized(1 << 10, 1 << 10) + snippet + MARK, 32)
        assert agents(machine, Kind.ARRIVE) == ["threads 0-23", "threads 0-7", "warp 0"]

    def test_a_loop_with_other_trip_counts_in_each_lane(self) -> None:
        snippet = """
        and.b32 %r5, %r1, 3; mov.u32 %r6, 0;
        L: add.u32 %r6, %r6, 1; sub.u32 %r5, %r5, 1; setp.ge.s32 %p2, %r5, 0; @%p2 bra L;
        """
        assert values("mov.u32 %r1, %tid.x;" + snippet, "%r6", 8) == [1, 2, 3, 4, 1, 2, 3, 4]

    def test_lanes_that_wait_for_lanes_of_their_own_warp_go_on_alone(self) -> None:
        """Since sm_70 lanes make progress by themselves: the spinning lanes do not starve the others."""
        snippet = """
        setp.lt.u32 %p2, %r1, 16; @%p2 bra WAIT;
        bra MEET;
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars+8], 0; @!%p5 bra WAIT;
        MEET: setp.eq.u32 %p4, %r1, 31; @%p4 mbarrier.arrive.shared::cta.b64 _, [bars+8];
        """
        machine = run(initialized(1 << 10) + snippet, 32)
        assert not machine.blocked
        assert machine.released_joins == 1


class TestGuards:
    """Instructions under a guard that lanes do not share."""

    def test_a_computation_keeps_the_old_value_elsewhere(self) -> None:
        snippet = "mov.u32 %r1, %tid.x; mov.u32 %r9, 50; setp.lt.u32 %p2, %r1, 3; @%p2 add.u32 %r9, %r1, 100;"
        assert values(snippet, "%r9", 5) == [100, 101, 102, 50, 50]

    def test_the_negated_guard(self) -> None:
        snippet = "mov.u32 %r1, %tid.x; mov.u32 %r9, 50; setp.lt.u32 %p2, %r1, 3; @!%p2 add.u32 %r9, %r1, 100;"
        assert values(snippet, "%r9", 5) == [50, 50, 50, 103, 104]

    def test_a_result_that_is_also_a_source(self) -> None:
        snippet = "mov.u32 %r9, %tid.x; setp.gt.u32 %p2, %r9, 2; @%p2 sub.u32 %r9, %r9, 2; @%p2 sub.u32 %r9, %r9, 1;"
        assert values(snippet, "%r9", 6) == [0, 1, 2, 0, 1, 2]

    def test_a_guard_that_all_share(self) -> None:
        snippet = "mov.u32 %r9, 1; setp.eq.u32 %p2, %r9, 1; @%p2 mov.u32 %r9, 5; @!%p2 mov.u32 %r9, 6;"
        assert values(snippet, "%r9", 4) == [5] * 4


VALUES = st.lists(st.integers(0, 3), min_size=64, max_size=64)
PARTS = st.lists(st.integers(0, 4), min_size=64, max_size=64)


def _whole(held: list[int]) -> tuple[Strand, int]:
    """A strand of two warps with these values in one of its registers, and that register's slot."""
    strand = kernel("mov.u32 %r1, %tid.x; bar.sync %r1, 64;").machine(64).ready[0]
    slot = strand.machine.program.varying[0]
    strand.registers[slot] = uniform(held)
    return strand, slot


class TestValues:
    """A value is one int where the threads of a strand agree, else one for each of them."""

    @given(VALUES, PARTS)
    def test_parting_and_meeting_give_every_thread_its_value_back(self, held: list[int], sides: list[int]) -> None:
        strand, slot = _whole(held)
        join = Join(3, strand, Region((slot,), (slot,)))
        for side in sorted(set(sides)):
            part = strand.part([i for i in range(64) if sides[i] == side])
            assert spread(part.registers[slot], len(part.threads)) == tuple(held[thread] for thread in part.threads)
            join.parked.append(part)
        merged = join.ready()
        assert merged is not None
        assert merged.threads == tuple(range(64))
        assert merged.registers[slot] == uniform(held)
        assert merged.at == 3

    @given(VALUES, PARTS)
    def test_what_each_side_writes_stays_with_its_threads(self, held: list[int], sides: list[int]) -> None:
        strand, slot = _whole(held)
        join = Join(3, strand, Region((slot,), (slot,)))
        for side in sorted(set(sides)):
            part = strand.part([i for i in range(64) if sides[i] == side])
            part.registers[slot] = 100 + side
            part.local[5] = (4, side)
            join.parked.append(part)
        merged = join.ready()
        assert merged is not None
        assert spread(merged.registers[slot], 64) == tuple(100 + side for side in sides)
        assert spread(merged.local[5][1], 64) == tuple(sides)

    @given(VALUES, st.integers(0, 63))
    def test_a_warp_is_released_when_it_is_complete_and_no_sooner(self, held: list[int], missing: int) -> None:
        strand, slot = _whole(held)
        join = Join(3, strand, Region((slot,), (slot,)))
        join.parked.append(strand.part([i for i in range(64) if i != missing]))
        released = join.ready()
        assert released is not None
        assert {thread // 32 for thread in released.threads} == {1 - missing // 32}
        assert len(released.threads) == 32
        join.parked.append(strand.part([missing]))
        rest = join.ready()
        assert rest is not None
        assert sorted(released.threads + rest.threads) == list(range(64))
        assert join.ready() is None

    @given(VALUES, st.lists(st.integers(0, 63), min_size=1, unique=True))
    def test_narrowing_picks_the_values_at_the_positions(self, held: list[int], positions: list[int]) -> None:
        narrowed = narrow(tuple(held), positions)
        assert spread(narrowed, len(positions)) == tuple(held[i] for i in positions)

    @given(VALUES)
    def test_agreeing_values_are_one_int(self, held: list[int]) -> None:
        assert (uniform(held).__class__ is int) == (len(set(held)) == 1)

    @given(VALUES, st.integers(0, 3))
    def test_a_function_is_applied_thread_by_thread(self, held: list[int], other: int) -> None:
        result = lift(lambda a, b: a * 10 + b, (uniform(held), other), 64)
        assert spread(result, 64) == tuple(value * 10 + other for value in held)


@pytest.mark.parametrize("threads", [1, 31, 33])
def test_a_block_that_is_no_whole_number_of_warps(threads: int) -> None:
    assert len(values("mov.u32 %r9, %tid.x;", "%r9", threads)) == threads
