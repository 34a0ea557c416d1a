"""How large the boxes of tensor stores are taken to be: what was written for them, and no further than the next box."""

from __future__ import annotations

import pytest

from ptxlint.execution.clock import Moment
from ptxlint.execution.conflict import Access, Failure, Interval, Space
from ptxlint.execution.store_boxes import store_extents, tensor_stores
from ptxlint.execution.trace import Agent, Event, Kind
from ptxlint.isa import Proxy

from .running import executed, initialized, kernel

STORE, OTHER, WRITE, SCRATCH = 0, 1, 2, 3
BODY = kernel("add.u32 %r1, %r1, 1; add.u32 %r2, %r2, 1; add.u32 %r3, %r3, 1; add.u32 %r4, %r4, 1;").cfg.body


def access(point: int, interval: Interval, warp: int = 0, turn: int = 1) -> Access:
    is_write = point in (WRITE, SCRATCH)
    moment = Moment(("warp", 0, warp), 1)
    return Access(
        Space.SHARED, interval, is_write, Proxy.GENERIC, moment, point, Agent(0, (32 * warp,)), warp, turn, 0, False, ""
    )


def extents(*history: Access) -> dict[int, int]:
    return dict(store_extents(history, frozenset({STORE, OTHER}), BODY))


def stored(point: int, at: int) -> Access:
    return access(point, (at, at + 128))


class TestExtents:
    """Bytes of a box."""

    def test_what_all_warps_wrote(self) -> None:
        written = [access(WRITE, (1024 + 256 * warp, 1280 + 256 * warp), warp) for warp in range(4)]
        assert extents(*written, stored(STORE, 1024)) == {STORE: 1024}

    @pytest.mark.parametrize(("warps", "extent"), [(range(1), 1024), (range(2), 1024), (range(4), 256)])
    def test_what_the_warp_itself_wrote_where_each_commits_its_own(self, warps: range, extent: int) -> None:
        """Here the other warps have nothing to store."""
        written = [access(WRITE, (1024 + 256 * warp, 1280 + 256 * warp), warp) for warp in range(4)]
        commits = [Event(warp, Kind.COMMIT, Agent(0, (32 * warp,)), 7) for warp in warps]
        history = (*written, stored(STORE, 1024))
        assert store_extents(history, frozenset({STORE}), BODY, commits) == {STORE: extent}

    def test_what_all_warps_wrote_where_every_lane_commits(self) -> None:
        written = [access(WRITE, (1024 + 256 * warp, 1280 + 256 * warp), warp) for warp in range(4)]
        commits = [Event(0, Kind.COMMIT, Agent(0, tuple(range(128))), 7)]
        history = (*written, stored(STORE, 1024))
        assert store_extents(history, frozenset({STORE}), BODY, commits) == {STORE: 1024}

    def test_not_beyond_a_gap(self) -> None:
        assert extents(access(WRITE, (0, 512)), access(WRITE, (640, 1024)), stored(STORE, 0)) == {STORE: 512}

    def test_not_beyond_what_another_place_of_the_source_wrote(self) -> None:
        assert extents(access(WRITE, (0, 512)), access(SCRATCH, (512, 1024)), stored(STORE, 0)) == {STORE: 512}

    def test_not_beyond_the_next_box(self) -> None:
        written = access(WRITE, (0, 1024))
        assert extents(written, stored(STORE, 0), stored(OTHER, 512)) == {STORE: 512, OTHER: 512}

    def test_only_what_was_written_since_the_last_time(self) -> None:
        first, second = access(WRITE, (0, 512)), access(WRITE, (512, 1024), turn=2)
        history = [first, stored(STORE, 0), second, first, stored(STORE, 0)]
        assert extents(*history) == {STORE: 512}

    def test_what_warps_that_lag_behind_write_in_the_same_turn(self) -> None:
        late, next_turn = access(WRITE, (512, 1024), warp=1), access(WRITE, (1024, 2048), warp=1, turn=2)
        assert extents(access(WRITE, (0, 512)), stored(STORE, 0), late, next_turn) == {STORE: 1024}

    def test_the_least_of_all_executions(self) -> None:
        history = [access(WRITE, (0, 1024)), stored(STORE, 0), access(WRITE, (2048, 2560)), stored(STORE, 2048)]
        assert extents(*history) == {STORE: 512}

    def test_a_run_that_was_cut_off_says_nothing_of_what_it_ran_once(self) -> None:
        history = [access(WRITE, (0, 512)), stored(STORE, 0)]
        assert store_extents(history, frozenset({STORE}), BODY, is_whole=False) == {}
        again = [*history, *history]
        assert store_extents(again, frozenset({STORE}), BODY, is_whole=False) == {STORE: 512}

    def test_a_store_before_its_first_bytes_are_there_shows_nothing(self) -> None:
        late = access(WRITE, (0, 512), turn=2)
        assert extents(access(WRITE, (0, 512)), stored(STORE, 0), stored(STORE, 0), late) == {STORE: 512}

    def test_the_map_that_a_store_uses_is_none_of_its_bytes(self) -> None:
        used = stored(STORE, 1 << 40)._replace(space=Space.GLOBAL)
        assert extents(access(WRITE, (0, 512)), stored(STORE, 0), used) == {STORE: 512}

    def test_a_row_at_least(self) -> None:
        assert extents(stored(STORE, 0)) == {STORE: 128}


STORING = """
.shared .align 128 .b8 tile[1024]; ld.param.u64 %rd1, [p];
shl.b32 %r4, %r1, 2; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
st.shared.b32 [%r5], %r1; fence.proxy.async.shared::cta; {between}
@%p1 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {{%r1}}], [tile];
@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;
"""


class TestRaces:
    """What the sizes are for: the first row is the storing warp's own."""

    @pytest.mark.parametrize(("between", "is_race"), [("bar.sync 0;", False), ("bar.warp.sync -1;", True)])
    def test_the_rows_of_other_warps_need_a_barrier(self, between: str, is_race: bool) -> None:
        conflicts = executed(initialized() + STORING.format(between=between), 128, 1).conflicts
        assert {(c.failure, c.first.is_write) for c in conflicts} == ({(Failure.UNORDERED, True)} if is_race else set())

    def test_however_late_the_store_comes(self) -> None:
        late = "mov.u32 %r6, 0; L: bar.sync 0; add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 1500; @%p4 bra L;"
        conflicts = executed(initialized() + late + STORING.format(between="bar.warp.sync -1;"), 128, 1).conflicts
        assert {conflict.failure for conflict in conflicts} == {Failure.UNORDERED}

    def test_stores_are_told_from_loads(self) -> None:
        load = "@%p1 cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes "
        load += "[tile], [%rd1, {%r1}], [bars];"
        body = kernel(initialized() + STORING.format(between=load)).cfg.body
        (store,) = tensor_stores(body)
        assert "bulk_group" in body[store].modifiers
