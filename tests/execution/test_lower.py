"""Control flow of a program: branches, dispatch tables, skipped regions, exits, waits of threads that differ."""

from __future__ import annotations

import pytest

from ptxlint.execution.trace import Kind

from .running import agents, happened, initialized, run, values

TID = "mov.u32 %r1, %tid.x;\n"


class TestDispatch:
    """brx.idx: warp-specialized code jumps through a table."""

    TABLE = """
    TABLE: .branchtargets FIRST, SECOND, THIRD;
    brx.idx {index}, TABLE;
    FIRST: mov.u32 %r9, 100; bra.uni DONE;
    SECOND: mov.u32 %r9, 200; bra.uni DONE;
    THIRD: mov.u32 %r9, 300;
    DONE:
    """

    @pytest.mark.parametrize(("index", "expected"), [(0, 100), (1, 200), (2, 300)])
    def test_the_entry_of_the_index(self, index: int, expected: int) -> None:
        snippet = f"mov.u32 %r2, {index};" + self.TABLE.format(index="%r2")
        assert values(snippet, "%r9", 2) == [expected] * 2

    def test_warps_go_different_ways(self) -> None:
        snippet = TID + "shr.u32 %r2, %r1, 5;" + self.TABLE.format(index="%r2")
        assert values(snippet, "%r9", 96) == [100] * 32 + [200] * 32 + [300] * 32

    def test_lanes_go_different_ways_and_meet(self) -> None:
        snippet = TID + "rem.u32 %r2, %r1, 3;" + self.TABLE.format(index="%r2")
        assert values(snippet, "%r9", 6) == [100, 200, 300] * 2
        machine = run(initialized(100) + snippet + "add.u32 %r8, %r9, 0; bar.sync 0;", 32)
        assert agents(machine, Kind.SYNC)[-1:] == ["warp 0"]

    def test_two_indices_of_one_target_stay_together(self) -> None:
        table = self.TABLE.replace("FIRST, SECOND, THIRD", "FIRST, SECOND, FIRST, THIRD").format(index="%r2")
        snippet = TID + "and.b32 %r2, %r1, 3;" + table
        assert values(snippet, "%r9", 4) == [100, 200, 100, 300]


class TestBranches:
    """bra with and without a guard."""

    @pytest.mark.parametrize(("size", "expected"), [(5, 2), (6, 1)])
    def test_the_guard_decides(self, size: int, expected: int) -> None:
        snippet = """
        ld.param.u32 %r2, [n]; setp.ne.u32 %p1, %r2, 5; mov.u32 %r9, 1; @%p1 bra D; mov.u32 %r9, 2; D:
        """
        assert values(snippet, "%r9", 1, size=size) == [expected]

    @pytest.mark.parametrize(("size", "expected"), [(5, 1), (6, 2)])
    def test_the_negated_guard(self, size: int, expected: int) -> None:
        snippet = """
        ld.param.u32 %r2, [n]; setp.ne.u32 %p1, %r2, 5; mov.u32 %r9, 1; @!%p1 bra D; mov.u32 %r9, 2; D:
        """
        assert values(snippet, "%r9", 1, size=size) == [expected]

    def test_loops_inside_loops(self) -> None:
        snippet = """
        mov.u32 %r2, 0; mov.u32 %r9, 0;
        OUTER: mov.u32 %r3, 0;
        INNER: add.u32 %r9, %r9, 1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 4; @%p1 bra INNER;
        add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3; @%p2 bra OUTER;
        """
        assert values(snippet, "%r9", 1) == [12]

    def test_a_loop_whose_test_comes_first(self) -> None:
        snippet = """
        ld.param.u32 %r5, [n]; mov.u32 %r2, 0; mov.u32 %r9, 0;
        TEST: setp.ge.u32 %p1, %r2, %r5; @%p1 bra DONE;
        add.u32 %r9, %r9, 2; add.u32 %r2, %r2, 1; bra TEST;
        DONE:
        """
        assert values(snippet, "%r9", 1, size=0) == [0]
        assert values(snippet, "%r9", 1, size=6) == [12]


class TestExits:
    """ret, exit, trap and the end of the body."""

    @pytest.mark.parametrize("way", ["ret", "exit"])
    def test_who_leaves_is_gone(self, way: str) -> None:
        machine = run(TID + f"setp.lt.u32 %p1, %r1, 32; @%p1 {way}; bar.sync 0;", 96)
        assert agents(machine, Kind.SYNC) == ["warps 1-2"]
        assert agents(machine, Kind.EXIT) == ["warp 0", "warps 1-2"]

    def test_all_threads_leave_at_the_end(self) -> None:
        machine = run("bar.sync 0;", 64)
        assert machine.ctas[0].exited
        assert machine.ctas[0].live_threads == 0


class TestWaitsThatDiffer:
    """Threads of one agent that wait for different things."""

    def test_each_slot_has_its_waiters(self) -> None:
        snippet = (
            initialized()
            + """
        and.b32 %r5, %r1, 1; shl.b32 %r5, %r5, 3; mov.u32 %r6, bars; add.u32 %r6, %r6, %r5;
        @%p1 mbarrier.arrive.shared::cta.b64 _, [bars];
        L: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r6], 0; @!%p5 bra L;
        """
        )
        machine = run(snippet, 4)
        waits = {event.object: str(event.agent) for event in happened(machine, Kind.WAIT)}
        assert waits == {1024: "2 threads from 0 to 2"}
        assert {str(strand.agent) for strand in machine.blocked if strand.state == "stuck"} == {"2 threads from 1 to 3"}

    def test_each_parity_has_its_waiters(self) -> None:
        snippet = (
            initialized()
            + """
        and.b32 %r5, %r1, 1;
        L: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], %r5; @!%p5 bra L;
        """
        )
        machine = run(snippet, 4)
        assert {event.amount for event in happened(machine, Kind.WAIT)} == {1}
        assert machine.blocked

    def test_a_wait_under_a_guard_that_lanes_do_not_share(self) -> None:
        snippet = (
            initialized()
            + """
        mov.pred %p5, 0; setp.lt.u32 %p2, %r1, 2;
        @%p2 mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 1;
        selp.u32 %r9, 1, 0, %p5;
        """
        )
        assert values(snippet, "%r9", 4) == [1, 1, 0, 0]

    def test_barrier_numbers_by_warp(self) -> None:
        machine = run(TID + "shr.u32 %r2, %r1, 6; add.u32 %r2, %r2, 1; bar.sync %r2, 64;", 128)
        assert not machine.blocked
        assert {event.object for event in happened(machine, Kind.SYNC)} == {1, 2}
