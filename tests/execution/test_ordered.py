"""The ordered run: which conflicts count, and how large tensor boxes are taken to be."""

from __future__ import annotations

from ptxlint.execution.clock import Moment
from ptxlint.execution.conflict import Access, Conflict, Failure, Space
from ptxlint.execution.ordered import box_extents, is_alike
from ptxlint.execution.trace import Agent, Event, Kind
from ptxlint.isa import Proxy

from .running import executed, failures, initialized

WHO = Agent(0, (0,))


def copy(point: int, place: int) -> Event:
    return Event(0, Kind.COPY, WHO, point, 1024, amount=-1, source=place)


def expectation(size: int) -> Event:
    return Event(0, Kind.EXPECT, WHO, 9, 1024, amount=size)


class TestBoxes:
    """The PTX does not say how many bytes a tensor copy moves."""

    def test_the_room_up_to_the_next_copy(self) -> None:
        assert box_extents([copy(1, 2048), copy(1, 4096), copy(2, 6144), expectation(1 << 16)]) == {1: 2048}

    def test_no_more_than_its_share_of_what_is_expected(self) -> None:
        assert box_extents([copy(1, 2048), copy(2, 8192), expectation(1024)]) == {1: 512}
        assert box_extents([copy(1, 2048), copy(2, 8192), expectation(1024), expectation(1024)]) == {1: 1024}

    def test_the_least_room_of_several_places(self) -> None:
        assert box_extents([copy(1, 2048), copy(1, 4096), copy(2, 4608), expectation(1 << 16)]) == {1: 512}

    def test_one_swizzle_row_at_least(self) -> None:
        assert box_extents([copy(1, 2048), copy(2, 2064), expectation(1 << 16)]) == {1: 128}

    def test_the_only_copy_of_a_phase_brings_all(self) -> None:
        assert box_extents([copy(1, 2048), expectation(512)]) == {1: 512}

    def test_what_the_others_have_no_room_for(self) -> None:
        """Two boxes of 1024 and 256 bytes a stage, and behind them memory that no copy fills."""
        stages = [event for at in (2048, 8192) for event in (copy(1, at), copy(2, at + 1024))]
        in_turn = [event._replace(phase=turn // 2) for turn, event in enumerate(stages)]
        expected = [expectation(1280)._replace(phase=phase) for phase in (0, 1)]
        assert box_extents([*in_turn, *expected]) == {1: 640, 2: 256}

    def test_what_is_known_of_both(self) -> None:
        """The second one's room is 2048 bytes more than it takes, so the first one takes 2048 less than its room."""
        stages = [event for at in (2048, 45056) for event in (copy(1, at), copy(2, at + 32768))]
        in_turn = [event._replace(phase=turn // 2) for turn, event in enumerate(stages)]
        expected = [expectation(40960)._replace(phase=phase) for phase in (0, 1)]
        assert box_extents([*in_turn, *expected]) == {1: 30720, 2: 8192}

    def test_the_next_cta_is_no_bound(self) -> None:
        assert box_extents([copy(1, 2048), copy(2, 1 << 24 | 2048), expectation(512)]) == {}

    def test_the_last_of_several_has_no_bound(self) -> None:
        assert box_extents([copy(1, 2048), copy(2, 4096), expectation(512)]) == {1: 256}


TILE = ".shared .align 128 .b8 tile[1024];\n"


class TestConflicts:
    """One for each pair of places, in kernels whose protocol works."""

    def test_each_pair_once(self) -> None:
        snippet = (
            initialized()
            + TILE
            + """
        mov.u32 %r5, 0;
        L: st.shared.b32 [tile], %r1; ld.shared.b32 %r9, [tile+4]; st.shared.b32 [tile+4], %r1;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5; @%p2 bra L;
        """
        )
        conflicts = executed(snippet, 64, 1).conflicts
        pairs = [(conflict.first.point, conflict.second.point) for conflict in conflicts]
        assert len(pairs) == len(set(pairs))
        assert conflicts

    def test_first_comes_first(self) -> None:
        snippet = initialized() + TILE + "setp.lt.u32 %p2, %r1, 32; @%p2 st.shared.b32 [tile], %r1;"
        (conflict,) = executed(snippet + "@!%p2 ld.shared.b32 %r9, [tile];", 64, 1).conflicts
        assert (conflict.first.is_write, conflict.second.is_write) == (True, False)
        assert str(conflict.first.agent) == "warp 0"
        assert conflict.first.when <= conflict.second.when

    def test_events_of_the_run_are_kept_where_it_is_clean(self) -> None:
        snippet = initialized() + TILE + "st.shared.b32 [tile], %r1; fence.proxy.async.shared::cta; bar.sync 0;"
        execution = executed(snippet, 32, 1)
        assert any(
            event.point >= 0 and "fence" in str(execution.body[event.point]) for event in execution.conflict_events
        )

    def test_the_replicated_write_of_one_instruction(self) -> None:
        assert failures(initialized() + TILE + "st.shared.b32 [tile], 5;") == set()

    TRIPS = (
        initialized()
        + TILE
        + """
    ld.param.u64 %rd1, [source]; ld.param.u32 %r4, [n]; mov.u32 %r5, 0;
    L: cp.async.ca.shared.global [tile], [%rd1], 4; cp.async.commit_group;
    add.u32 %r5, %r5, 1; setp.ge.u32 %p2, %r5, %r4; @%p2 bra D;
    cp.async.wait_group 0; bar.sync 0; bra L;
    D: setp.gt.u32 %p3, %r5, 1; @%p3 cp.async.wait_group 0; bar.sync 0;
    ld.shared.b32 %r9, [tile];
    """
    )

    def test_a_single_trip_that_is_stated(self) -> None:
        conflicts = executed(self.TRIPS, 64, 1, {"n": 1}).conflicts
        assert {conflict.failure for conflict in conflicts} == {Failure.UNORDERED}

    def test_a_single_trip_that_is_assumed_shows_missing_fences_alone(self) -> None:
        """Host code may rule short loops out: what they lack is reported only where a fence is all that is missing."""
        assert failures(self.TRIPS) == set()


class TestAlike:
    """Whether another schedule shows a conflict as well."""

    def conflict(self, first: int, second: int, failure: Failure = Failure.UNORDERED) -> Conflict:
        one, other = (
            Access(Space.SHARED, (1024, 1028), True, Proxy.GENERIC, Moment(("warp", 0, 0), 1), point, WHO, 0, 1, 0)
            for point in (first, second)
        )
        return Conflict(failure, one, other)

    def test_the_other_way_round(self) -> None:
        assert is_alike(self.conflict(1, 2), [self.conflict(2, 1)])

    def test_one_place_against_another_copy_of_the_line(self) -> None:
        assert is_alike(self.conflict(1, 2), [self.conflict(3, 1)])

    def test_other_places_or_another_failure(self) -> None:
        assert not is_alike(self.conflict(1, 2), [self.conflict(3, 4), self.conflict(1, 2, Failure.UNFENCED)])
