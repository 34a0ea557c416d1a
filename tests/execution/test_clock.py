"""Laws of clocks and of sets of bytes."""

from __future__ import annotations

import copy
import itertools

from hypothesis import given
from hypothesis import strategies as st

from ptxlint.execution.clock import Clock, Line
from ptxlint.execution.conflict import merged

LINES = st.sampled_from(
    [("warp", 0, 0), ("warp", 0, 1), ("mbarrier", 0, 1024), ("cp.async", 0, 0), ("bulk", 1, 2), ("tcgen05.ld", 0, 1)]
)
TIMES = st.dictionaries(LINES, st.integers(0, 5))
ACQUIRED = st.dictionaries(st.tuples(LINES, st.integers(0, 2)), st.integers(0, 5))
HANDED_ON = ("known", "fenced", "strict", "whole", "issued", "sent", "mapped")
CLOCKS = st.builds(Clock, acquired=ACQUIRED, **dict.fromkeys(HANDED_ON, TIMES))


def _copied(clock: Clock) -> Clock:
    return copy.deepcopy(clock)


def _joined(*clocks: Clock) -> Clock:
    result = _copied(clocks[0])
    for clock in clocks[1:]:
        result.join(clock)
    return result


class TestClock:
    """Laws of join."""

    @given(CLOCKS, CLOCKS)
    def test_join_commutes(self, one: Clock, other: Clock) -> None:
        assert _joined(one, other) == _joined(other, one)

    @given(CLOCKS, CLOCKS, CLOCKS)
    def test_join_associates(self, one: Clock, two: Clock, three: Clock) -> None:
        assert _joined(_joined(one, two), three) == _joined(one, _joined(two, three))

    @given(CLOCKS)
    def test_join_is_idempotent(self, clock: Clock) -> None:
        assert _joined(clock, clock) == clock

    @given(CLOCKS, CLOCKS)
    def test_join_forgets_nothing_and_leaves_the_other_alone(self, one: Clock, other: Clock) -> None:
        before = _copied(other)
        both = _joined(one, other)
        assert all(both.known[line] >= time for clock in (one, other) for line, time in clock.known.items())
        assert other == before

    @given(CLOCKS, CLOCKS)
    def test_a_fence_after_the_acquire_is_the_warps_own(self, one: Clock, other: Clock) -> None:
        other.take_over()
        assert _joined(one, other).taken == {}

    @given(CLOCKS, CLOCKS)
    def test_a_relaxed_join_learns_of_engines_only(self, one: Clock, other: Clock) -> None:
        mine = _copied(one)
        mine.join(other, relaxed=True)
        for line, time in other.known.items():
            expected = one.known.get(line, -1) if _is_generic(line) else max(time, one.known.get(line, -1))
            assert mine.known.get(line, -1) == expected


def _is_generic(line: Line) -> bool:
    return line[0] in ("warp", "cp.async")


INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)).map(lambda pair: (pair[0], sum(pair))))


class TestMerged:
    """The union of intervals."""

    @given(INTERVALS)
    def test_it_covers_the_same_points(self, intervals: list[tuple[int, int]]) -> None:
        union = {point for start, stop in intervals for point in range(start, stop)}
        assert {point for start, stop in merged(intervals) for point in range(start, stop)} == union

    @given(INTERVALS)
    def test_it_leaves_gaps_between(self, intervals: list[tuple[int, int]]) -> None:
        result = merged(intervals)
        assert all(first[1] < second[0] for first, second in itertools.pairwise(result))

    @given(INTERVALS)
    def test_merging_again_changes_nothing(self, intervals: list[tuple[int, int]]) -> None:
        assert merged(merged(intervals)) == merged(intervals)
