"""Groups of asynchronous operations: each thread commits and waits for its own."""

from __future__ import annotations

import pytest

from ptxlint.execution.clock import BULK, CP_ASYNC, TENSOR_LOAD, WGMMA, warp_of
from ptxlint.execution.groups import Groups

LEADER, OTHER, ALL = frozenset({32}), frozenset({33}), frozenset(range(32, 64))
LOW, HIGH = frozenset(range(32, 48)), frozenset(range(48, 64))


def done(groups: Groups, kind: str, lanes: frozenset[int], pending: int = 0) -> list[int]:
    """The times that a wait finds to be over."""
    return [time for _, time in groups.wait(kind, 0, 1, lanes, pending)]


@pytest.mark.parametrize("kind", [CP_ASYNC, BULK])
class TestThreads:
    """Groups that each thread has for itself."""

    def test_own_commit_and_wait(self, kind: str) -> None:
        groups = Groups()
        assert groups.moment(kind, 0, 1, LEADER).time == 1
        groups.commit(kind, 0, 1, LEADER)
        assert groups.moment(kind, 0, 1, LEADER).time == 2
        assert done(groups, kind, LEADER) == [1]
        assert done(groups, kind, LEADER, 1) == []

    def test_all_may_commit_and_wait_with_it(self, kind: str) -> None:
        groups = Groups()
        groups.moment(kind, 0, 1, LEADER)
        groups.commit(kind, 0, 1, ALL)
        assert done(groups, kind, ALL) == [1]

    def test_another_lane_commits_or_waits_for_nothing_of_it(self, kind: str) -> None:
        groups = Groups()
        groups.moment(kind, 0, 1, LEADER)
        groups.commit(kind, 0, 1, OTHER)
        assert done(groups, kind, LEADER) == []
        groups.commit(kind, 0, 1, LEADER)
        assert done(groups, kind, OTHER) == []

    def test_a_leader_cannot_commit_for_all(self, kind: str) -> None:
        groups = Groups()
        groups.moment(kind, 0, 1, ALL)
        groups.commit(kind, 0, 1, LEADER)
        assert done(groups, kind, ALL) == []

    def test_halves_that_commit_and_wait_one_after_the_other(self, kind: str) -> None:
        groups = Groups()
        groups.moment(kind, 0, 1, ALL)
        groups.commit(kind, 0, 1, LOW)
        assert done(groups, kind, ALL) == []
        groups.commit(kind, 0, 1, HIGH)
        assert done(groups, kind, LOW) == []
        assert done(groups, kind, HIGH) == [1]

    def test_parties_of_one_warp_have_lines_of_their_own(self, kind: str) -> None:
        groups = Groups()
        lines = [groups.moment(kind, 0, 1, lanes).line for lanes in (LEADER, OTHER)]
        assert len(set(lines)) == 2
        assert [warp_of(line) for line in lines] == [1, 1]


def test_groups_of_tensor_memory_are_the_warps() -> None:
    groups = Groups()
    groups.moment(TENSOR_LOAD, 0, 1, ALL)
    groups.commit(TENSOR_LOAD, 0, 1, LOW)
    assert done(groups, TENSOR_LOAD, HIGH) == [1]


def test_groups_of_wgmma_are_the_warpgroups() -> None:
    groups = Groups()
    groups.moment(WGMMA, 0, 5, ALL)
    groups.commit(WGMMA, 0, 5, ALL)
    assert {warp_of(line) for line, _ in groups.wait(WGMMA, 0, 5, ALL, 0)} == {4, 5, 6, 7}
