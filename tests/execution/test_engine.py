"""The engine: launch shapes and inputs it assumes, what it vouches for, and when it does not analyse."""

from __future__ import annotations

from typing import Any

import pytest

from ptxlint.execution import choice
from ptxlint.execution.engine import Execution, execute
from ptxlint.execution.program import Binding
from ptxlint.execution.runs import Run, Runner
from ptxlint.execution.trace import Fault, Kind
from ptxlint.launch import Launch
from ptxlint.parse import parse
from ptxlint.testing import module_of

from .running import executed, initialized, told

TID = "mov.u32 %r1, %tid.x;\n"
WAIT = "{}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [{}], {}; @!%p5 bra {};\n"


def directed(snippet: str, directives: str, launch: Launch | None = None) -> Execution:
    """A kernel with performance or cluster directives."""
    text = module_of(snippet).replace("kernel(", "kernel(", 1)
    head, brace, tail = text.partition("\n{")
    module = parse(f"{head}\n{directives}{brace}{tail}")
    return execute(module, module.functions[0], launch or Launch())


class TestLaunch:
    """Block and cluster."""

    def test_what_the_user_states(self) -> None:
        execution = executed("bar.sync 0;", 96)
        assert {run.binding.block for run in execution.runs} == {(96, 1, 1)}

    def test_what_the_ptx_states(self) -> None:
        execution = directed("bar.sync 0;", ".reqntid 64, 2, 1\n.reqnctapercluster 2, 1, 1")
        assert {(run.binding.block, run.binding.cluster) for run in execution.runs} == {((64, 2, 1), (2, 1, 1))}

    def test_what_concerns_the_cluster_is_looked_for_in_other_clusters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another block of the same cluster would not reach it either."""
        tried, go = [], Runner.go

        def noted(runner: Runner, binding: Binding, *more: Any, **named: Any) -> Run:
            tried.append((binding.block[0], binding.cluster[0]))
            return go(runner, binding, *more, **named)

        monkeypatch.setattr(Runner, "go", noted)
        meet = "@%p1 barrier.cluster.arrive; @%p1 barrier.cluster.wait; "
        execution = executed("mov.u32 %r1, %cluster_nctarank; setp.gt.u32 %p1, %r1, 1; bar.sync 0; " + meet * 2)
        assert not execution.uncovered
        assert list(dict.fromkeys(tried)) == [(128, 1), (128, 2)]

    def test_the_user_comes_first(self) -> None:
        execution = directed("bar.sync 0;", ".reqntid 64, 1, 1", Launch((32, 1, 1)))
        assert {run.binding.block for run in execution.runs} == {(32, 1, 1)}

    def test_the_most_that_the_ptx_allows(self) -> None:
        execution = directed("bar.sync 0;", ".maxntid 160, 1, 1")
        assert {run.binding.block for run in execution.runs} == {(160, 1, 1)}

    def test_a_shape_is_searched_under_which_the_kernel_runs_clean(self) -> None:
        assert {run.binding.block for run in executed("bar.sync 1, 192;").runs} == {(192, 1, 1)}

    def test_a_stated_block_is_not_called_in_question(self) -> None:
        snippet = initialized(32) + "mbarrier.arrive.shared::cta.b64 _, [bars];" + WAIT.format("L", "bars", 0, "L")
        (defect,) = executed(snippet, 64).defects
        assert defect.is_certain
        assert not executed(snippet, 32).defects

    def test_the_cluster_is_searched(self) -> None:
        snippet = (
            initialized()
            + """
        mov.u32 %r2, %cluster_ctarank; barrier.cluster.arrive; barrier.cluster.wait;
        setp.eq.u32 %p2, %r2, 1; and.pred %p3, %p2, %p1;
        mapa.shared::cluster.u32 %r3, bars, 0;
        @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];
        setp.eq.u32 %p4, %r2, 0; @!%p4 bra DONE;
        """
            + WAIT.format("L", "bars", 0, "L")
            + "DONE: barrier.cluster.arrive; barrier.cluster.wait;"
        )
        execution = executed(snippet, 32)
        assert told(execution) == []
        assert {run.binding.cluster for run in execution.runs} == {(2, 1, 1)}


class TestInputs:
    """Parameters and memory."""

    LOOP = (
        initialized()
        + """
    ld.param.u32 %r4, [trips]; mov.u32 %r5, 0; mov.u32 %r6, 0;
    L: setp.ge.u32 %p2, %r5, %r4; @%p2 bra DONE;
    @%p1 mbarrier.arrive.shared::cta.b64 _, [bars];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], %r6; @!%p5 bra W;
    xor.b32 %r6, %r6, 1; add.u32 %r5, %r5, 1; bra L;
    DONE:
    """
    )

    def test_loops_go_round_several_times(self) -> None:
        execution = executed(self.LOOP, 32)
        phases = {run.machine.mbarriers[1024].phase for run in execution.runs}
        assert min(phases) >= 3

    def test_a_stated_parameter(self) -> None:
        execution = executed(self.LOOP, 32, parameters={"trips": 5})
        assert {run.machine.mbarriers[1024].phase for run in execution.runs} == {5}

    def test_a_value_is_changed_to_reach_more(self) -> None:
        guarded = "ld.param.u32 %r7, [n]; setp.gt.u32 %p6, %r7, 200; @!%p6 bra END;" + self.LOOP + "END:"
        execution = executed(guarded, 32)
        assert not execution.uncovered

    def test_small_values_where_large_ones_cost_too_much(self) -> None:
        nested = "ld.param.u32 %r7, [n]; mov.u32 %r8, 0; mul.lo.u32 %r7, %r7, 400;"
        nested += (
            "A: "
            + "add.u32 %r8, %r8, 0; " * 20
            + "bar.sync 0; add.u32 %r8, %r8, 1; setp.lt.u32 %p6, %r8, %r7; @%p6 bra A;"
        )
        execution = executed(nested, 32)
        assert execution.not_analysed is None
        assert execution.runs[0].binding.inputs.size in choice.SMALL_SIZES

    def test_an_endless_kernel_is_not_analysed(self) -> None:
        execution = executed("mov.u32 %r2, 1; L: " + "add.u32 %r2, %r2, 0; " * 30 + "bar.sync %r2; bra L;", 32)
        assert execution.not_analysed is not None
        assert execution.not_analysed.startswith("budget")
        assert not execution.defects

    def test_a_fault_of_a_second_tile_says_that_it_takes_one(self) -> None:
        """A barrier that is armed once, before the loop over tiles; rings within a tile go round."""
        tiles = (
            initialized()
            + """
        @%p1 mbarrier.arrive.shared::cta.b64 _, [bars+8];
        ld.param.u32 %r4, [trips]; mov.u32 %r5, 0; mov.u32 %r6, 0;
        TILE: mov.u32 %r7, 0;
        INNER: @%p1 mbarrier.arrive.shared::cta.b64 _, [bars];
        W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], %r6; @!%p5 bra W;
        xor.b32 %r6, %r6, 1; add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 4; @%p2 bra INNER;
        and.b32 %r8, %r5, 1;
        V: mbarrier.try_wait.parity.shared::cta.b64 %p6, [bars+8], %r8; @!%p6 bra V;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r4; @%p3 bra TILE;
        """
        )
        (defect,) = executed(tiles, 32, 1).defects
        assert defect.is_certain
        assert defect.assumptions == ("parameter 0 of more than 1: with 1 nothing shows",)

    @pytest.mark.parametrize(("load", "is_certain"), [("ld.param.u32 %r4, [trips]", False), ("mov.u32 %r4, 13", True)])
    def test_a_size_that_parts_a_warp_may_be_none_that_hosts_give(self, load: str, is_certain: bool) -> None:
        """Each thread takes every 64th element; a number of them that 64 divides keeps warps together."""
        loop = f"{load}; mov.u32 %r5, %tid.x; L: setp.ge.u32 %p2, %r5, %r4; @%p2 bra DONE;"
        execution = executed(loop + "bar.sync 0; add.u32 %r5, %r5, 64; bra L; DONE: bar.sync 0;", 64)
        assert [(d.fault, d.is_certain) for d in execution.defects] == [(Fault.DIVERGENT, is_certain)]

    def test_a_size_in_memory_that_parts_a_warp_is_replaced(self) -> None:
        loop = "ld.param.u64 %rd1, [trips]; ld.global.u32 %r4, [%rd1]; mov.u32 %r5, %tid.x;"
        loop += (
            "L: setp.ge.u32 %p2, %r5, %r4; @%p2 bra DONE; bar.sync 0; add.u32 %r5, %r5, 64; bra L; DONE: bar.sync 0;"
        )
        execution = executed(loop, 64)
        assert not execution.defects
        assert execution.not_analysed is None
        assert all(run.is_clean for run in execution.runs)

    def test_points_that_no_input_reaches(self) -> None:
        far = "ld.param.u32 %r7, [n]; mul.lo.u32 %r8, %r7, %r7; setp.eq.u32 %p6, %r8, 123456; @!%p6 bra END;"
        execution = executed(far + "bar.sync 0; " * 4 + "END:", 32)
        assert len(execution.uncovered) == 4
        assert execution.not_analysed is not None
        assert execution.not_analysed.startswith("inputs")


class TestOutcome:
    """What an execution says."""

    def test_a_kernel_without_synchronization_is_not_run(self) -> None:
        execution = executed("add.u32 %r1, %r2, 1;")
        assert execution.runs == ()
        assert execution.not_analysed is None

    def test_five_schedules_of_a_clean_kernel(self) -> None:
        assert len({run.schedule for run in executed("bar.sync 0;", 64).runs}) == 5

    @pytest.mark.parametrize(("barrier", "has_conflict"), [("", True), ("bar.sync 0;", False)])
    def test_a_kernel_that_lacks_its_only_barrier_is_run(self, barrier: str, has_conflict: bool) -> None:
        """The slot of another warp is read."""
        exchange = ".shared .align 4 .b8 tile[256]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 2;"
        exchange += f"add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r1; {barrier} xor.b32 %r5, %r3, 128;"
        exchange += "add.u32 %r6, %r2, %r5; ld.shared.u32 %r7, [%r6];"
        assert bool(executed(exchange, 64).conflicts) is has_conflict

    def test_a_faulty_kernel_has_no_conflicts(self) -> None:
        """The ordered run is for kernels whose protocol works: what comes after a fault is its consequence."""
        race = ".shared .align 4 .b32 x; st.shared.b32 [x], %r1; ld.shared.b32 %r9, [x];"
        assert executed(initialized() + race, 64).conflicts
        assert not executed(initialized() + race + "bar.sync 1, 96;", 64).conflicts

    def test_without_data_accesses_all_else_is_the_same(self) -> None:
        race = ".shared .align 4 .b32 x; st.shared.b32 [x], %r1; ld.shared.b32 %r9, [x];"
        module = parse(module_of(initialized() + race))
        launch = Launch((64, 1, 1), (1, 1, 1))
        whole = execute(module, module.functions[0], launch)
        bare = execute(module, module.functions[0], launch, with_accesses=False)
        assert whole.conflicts
        assert not bare.conflicts
        assert [run.machine.events for run in bare.runs] == [run.machine.events for run in whole.runs]

    def test_a_witness_leads_to_the_fault(self) -> None:
        (defect,) = executed(initialized() + WAIT.format("L", "bars", 0, "L"), 32).defects
        assert defect.fault is Fault.NO_ARRIVAL
        assert defect.witness[0].kind is Kind.INIT
        assert defect.run.schedule == defect.run.machine.schedule

    def test_a_thread_that_shows_only_in_another_order(self) -> None:
        """The initializing warp comes first in thread order, and last in another schedule."""
        snippet = ".shared .align 8 .b8 bars[8]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;"
        snippet += "setp.lt.u32 %p2, %r1, 32; @!%p2 bra U; @%p1 mbarrier.init.shared.b64 [bars], 32; bra D;"
        snippet += "U: mbarrier.arrive.shared::cta.b64 _, [bars]; D:"
        assert {fault for fault, _ in told(executed(snippet, 64, 1))} == {Fault.UNPUBLISHED}

    @pytest.mark.parametrize("block", [32, 64, 128])
    def test_equal_runs_give_equal_defects(self, block: int) -> None:
        snippet = initialized(7) + "mbarrier.arrive.shared::cta.b64 _, [bars];" + WAIT.format("L", "bars", 1, "L")
        first, second = (executed(snippet, block, 1) for _ in range(2))
        assert [defect.incident for defect in first.defects] == [defect.incident for defect in second.defects]
        assert [defect.witness for defect in first.defects] == [defect.witness for defect in second.defects]

    def test_roles_by_the_cluster_of_the_grid(self) -> None:
        snippet = TID + "mov.u32 %r2, %clusterid.x; setp.eq.u32 %p1, %r2, 0; @%p1 bra A; bar.sync 1, 32; bra D;"
        snippet += "A: bar.sync 2, 32; D:"
        execution = executed(snippet, 32, 1)
        assert not execution.uncovered
        assert {run.binding.position for run in execution.runs} == {(0, 0, 0), (1, 0, 0)}

    @pytest.mark.parametrize("loops", [1, 2])
    @pytest.mark.parametrize(("first", "has_conflict"), [("bar.sync 0;", False), ("", True)])
    def test_a_size_that_parts_a_warp_is_no_size_of_a_host(self, first: str, has_conflict: bool, loops: int) -> None:
        """Threads 32 to 41 are left with a lap of their own where 42 items go to laps of 13; with tiles of whole warps
        all laps meet."""
        snippet = """
        .shared .align 4 .b32 x; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r5, %nctaid.x;
        ld.param.u64 %rd1, [sizes]; ld.global.u32 %r7, [%rd1]; mul.lo.u32 %r8, %r7, %r7; shr.u32 %r8, %r8, 2;
        mul.lo.u32 %r6, %r7, %r5; shr.u32 %r6, %r6, 2;
        """
        for number in range(loops):
            snippet += f"""
            mov.u32 %r2, %r1;
            LOOP{number}: setp.ge.u32 %p2, %r2, %r8; @%p2 bra DONE{number};
            {first} @%p1 st.shared.b32 [x], %r2; bar.sync 0; ld.shared.b32 %r9, [x];
            add.u32 %r2, %r2, %r6; bra LOOP{number}; DONE{number}:
            """
        execution = executed(snippet)
        assert execution.not_analysed is None
        assert bool(execution.conflicts) is has_conflict
