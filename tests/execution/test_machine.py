"""The machine: symptoms on the way, what hardware may choose, peeks, budgets and repairs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ptxlint.execution.schedule import SCHEDULES, OutOfBudgetError, Repair, Schedule, Turn
from ptxlint.execution.trace import Fault, Kind

from .running import agents, faults, happened, initialized, kernel, run, values

BAR = ".shared .align 8 .b8 bars[32];\nmov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
INIT = "@%p1 mbarrier.init.shared.b64 [bars], 1;\n"
ARRIVE = "@%p1 mbarrier.arrive.shared::cta.b64 _, [bars];\n"


def wait(parity: int = 0, label: str = "WAIT") -> str:
    return f"{label}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], {parity};\n@!%p5 bra {label};\n"


class TestLifeOfBarriers:
    """Initialization and invalidation."""

    @pytest.mark.parametrize(
        ("snippet", "expected"),
        [
            (INIT + ARRIVE, set()),
            (ARRIVE, {Fault.BEFORE_INIT}),
            (ARRIVE + INIT, {Fault.UNPUBLISHED}),
            (INIT + INIT, {Fault.REINIT}),
            (INIT + "@%p1 mbarrier.inval.shared.b64 [bars];" + INIT, set()),
            (INIT + "@%p1 mbarrier.inval.shared.b64 [bars];" + ARRIVE, {Fault.AFTER_INVAL}),
            ("@%p1 mbarrier.inval.shared.b64 [bars];", {Fault.BEFORE_INIT}),
            ("mbarrier.init.shared.b64 [bars], 1;", {Fault.REINIT}),
            (INIT.replace("1;", "0;"), {Fault.BAD_COUNT}),
            (INIT.replace("1;", "1048575;"), set()),
            (INIT.replace("1;", "1048576;"), {Fault.BAD_COUNT}),
            (INIT.replace("bars", "bars+4"), {Fault.MISALIGNED}),
            (INIT.replace("bars", "bars+24"), set()),
        ],
    )
    def test_one_thread_after_another(self, snippet: str, expected: set[Fault]) -> None:
        assert faults(run(BAR + snippet, 2)) == expected

    def test_an_initialization_that_other_warps_may_overtake(self) -> None:
        guarded = BAR + "setp.lt.u32 %p2, %r1, 32; @!%p2 bra OTHER;" + INIT
        guarded += "bra D; OTHER: mbarrier.arrive.shared::cta.b64 _, [bars]; D:"
        machine = kernel(guarded).machine(64, schedule=Schedule(Turn.DOWN))
        machine.run()
        assert Fault.UNPUBLISHED in faults(machine)

    def test_with_a_cta_barrier_nobody_can(self) -> None:
        snippet = BAR + "setp.lt.u32 %p2, %r1, 32; @!%p2 bra OTHER;" + INIT
        snippet += "OTHER: bar.sync 0; @!%p2 mbarrier.arrive.shared::cta.b64 _, [bars];"
        for schedule in SCHEDULES:
            assert Fault.UNPUBLISHED not in faults(run(snippet, 64, schedule=schedule))


class TestCounting:
    """Arrivals and phases that nobody has seen."""

    def test_more_arrivals_than_the_phase_has_left(self) -> None:
        machine = run(initialized(4) + "mbarrier.arrive.shared::cta.b64 _, [bars];")
        (incident,) = (i for i in machine.incidents if i.fault is Fault.OVER_ARRIVAL)
        assert incident.details == {"phase": 0, "expected": 4, "left": 4, "arrived": 32}

    def test_a_phase_that_nobody_has_seen_complete(self) -> None:
        assert Fault.OVERTAKE in faults(run(initialized() + ARRIVE + ARRIVE, 1))
        assert Fault.OVERTAKE not in faults(run(initialized() + ARRIVE + wait() + ARRIVE, 1))

    def test_whoever_looks_has_seen_it(self) -> None:
        look = "mbarrier.test_wait.parity.shared::cta.b64 %p5, [bars], 0;"
        assert Fault.OVERTAKE not in faults(run(initialized() + ARRIVE + look + ARRIVE, 1))

    @pytest.mark.parametrize(("waits", "is_overtaken"), [(True, False), (False, True)])
    def test_a_phase_that_is_told_to_two_ctas_and_seen_in_one(self, waits: bool, is_overtaken: bool) -> None:
        """As a multicast commit tells it; where it is seen in neither, it is overtaken."""
        told = ARRIVE + "mbarrier.arrive.shared::cluster.b64 _, [%r7];\n"
        snippet = initialized() + "barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r6, %cluster_ctarank;"
        snippet += "mov.u32 %r7, bars; mapa.shared::cluster.u32 %r7, %r7, 1; setp.ne.u32 %p6, %r6, 0; @%p6 bra DONE;"
        snippet += told + wait() * waits + told + "DONE: barrier.cluster.arrive; barrier.cluster.wait;"
        assert (Fault.OVERTAKE in faults(run(snippet, 1, 2))) is is_overtaken

    def test_history_by_phase(self) -> None:
        machine = run(initialized(2) + ARRIVE + ARRIVE + wait() + ARRIVE, 1)
        barrier = machine.mbarriers[1024]
        assert [sum(arrival.count for arrival in phase[0]) for phase in barrier.history] == [2]
        assert [arrival.count for arrival in barrier.arrivals] == [1]


class TestPeeks:
    """Waits that are allowed to return false."""

    LOOK = "mbarrier.test_wait.parity.shared::cta.b64 %p5, [bars], 0; selp.u32 %r9, 1, 0, %p5;\n"

    def test_a_peek_at_what_never_comes(self) -> None:
        machine = run(initialized() + self.LOOK, 1)
        assert not machine.blocked
        assert [event.object for event in happened(machine, Kind.POLL)] == [1024]
        assert values(initialized() + self.LOOK, "%r9", 1) == [0]

    def test_a_peek_is_patient_while_others_can_run(self) -> None:
        snippet = initialized() + "setp.lt.u32 %p2, %r1, 32; @%p2 bra D; " + self.LOOK + "bra E; D:" + ARRIVE + "E:"
        assert values("mov.u32 %r9, 7;" + snippet, "%r9", 64)[32:] == [1] * 32

    def test_a_peek_and_then_the_wait(self) -> None:
        """CUTLASS looks once before the work that it can do meanwhile, and waits only if it has to."""
        snippet = (
            initialized()
            + """
        setp.lt.u32 %p2, %r1, 32; @%p2 bra D;
        mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 0;
        @%p5 bra READY;
        mbarrier.arrive.shared::cta.b64 _, [bars+8];
        """
            + wait()
            + "READY: bra E; D: LOOP: mbarrier.try_wait.parity.shared::cta.b64 %p6, [bars+8], 0;"
        )
        snippet += "@!%p6 bra LOOP;" + ARRIVE + "E:"
        machine = run(snippet.replace("[bars+8], 1;", "[bars+8], 32;", 1), 64)
        assert not machine.blocked

    def test_a_loop_that_asks_again_and_again_is_stuck(self) -> None:
        machine = run(initialized() + wait(), 1)
        (strand,) = machine.blocked
        assert strand.state == "stuck"
        assert strand.wanted[1:] == (1024, 0)

    def test_a_loop_over_two_barriers(self) -> None:
        snippet = (
            initialized()
            + """
        setp.lt.u32 %p2, %r1, 32; @%p2 bra D;
        L: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 0; @%p5 bra DONE;
        mbarrier.try_wait.parity.shared::cta.b64 %p6, [bars+8], 0; @!%p6 bra L;
        DONE: bra E;
        D: bar.sync 3, 32; @%p1 mbarrier.arrive.shared::cta.b64 _, [bars+8]; E:
        """
        )
        for schedule in SCHEDULES:
            assert not run(snippet, 64, schedule=schedule).blocked

    @pytest.mark.parametrize("peeks", [1, 2, 3, 4])
    @pytest.mark.parametrize("served", ["bars", "bars+8"])
    def test_a_loop_over_two_barriers_that_is_served_late(self, peeks: int, served: str) -> None:
        """Stuck at one of them, it is woken by the other."""
        peek = "mbarrier.test_wait.parity.shared::cta.b64 %p7, [bars+16], 0;\n"
        snippet = (
            initialized()
            + "@%p1 mbarrier.init.shared.b64 [bars+16], 1; bar.sync 0;"
            + """
        setp.lt.u32 %p2, %r1, 32; @%p2 bra D;
        L: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 0; @%p5 bra E;
        mbarrier.try_wait.parity.shared::cta.b64 %p6, [bars+8], 0; @!%p6 bra L;
        bra E; D:
        """
        )
        snippet += peek * peeks + f"@%p1 mbarrier.arrive.shared::cta.b64 _, [{served}]; E:"
        assert not run(snippet, 64).blocked


class TestCopies:
    """What signals a barrier by itself."""

    TENSOR = """
    .shared .align 128 .b8 tile[512]; ld.param.u64 %rd1, [map]; mov.u32 %r5, 0;
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1, {%r5, %r5}], [bars];
    """
    EXPECT = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 512;\n"

    @pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
    def test_a_tensor_box_brings_what_is_expected(self, schedule: Schedule) -> None:
        machine = run(initialized() + self.EXPECT + self.TENSOR + wait(), schedule=schedule)
        assert not machine.blocked
        assert machine.mbarriers[1024].phase == 1

    def test_the_expectation_may_come_after_the_copy(self) -> None:
        assert not run(initialized() + self.TENSOR + self.EXPECT + wait()).blocked

    def test_a_box_waits_for_all_that_its_phase_expects(self) -> None:
        """While an arrival is pending nothing lands, however long nobody else can run."""
        peek = "mbarrier.test_wait.parity.shared::cta.b64 %p5, [bars], 0;\n"
        machine = run(initialized(2) + self.EXPECT + self.TENSOR + peek + self.EXPECT + wait())
        assert not machine.blocked
        assert machine.mbarriers[1024].phase == 1

    @pytest.mark.parametrize("sender", [0, 1])
    def test_boxes_land_first_in_the_cta_that_sent_them_first(self, sender: int) -> None:
        """The other CTA sends its own once it hears that the first one has."""
        far = "@%p1 mbarrier.arrive.shared::cluster.b64 _, [%r7];\n"
        heard = wait(label="HEARD").replace("[bars]", "[bars+8]")
        snippet = initialized() + "barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r6, %cluster_ctarank;"
        snippet += f"mov.u32 %r7, bars+8; mapa.shared::cluster.u32 %r7, %r7, {1 - sender};"
        snippet += f"setp.ne.u32 %p6, %r6, {sender}; @%p6 bra SECOND;" + self.TENSOR + self.EXPECT + far + "bra BOTH;"
        snippet += "SECOND:" + heard + self.TENSOR[self.TENSOR.index("ld.param") :] + self.EXPECT + "BOTH:" + wait()
        found = run(snippet + "barrier.cluster.arrive; barrier.cluster.wait;", 32, 2)
        waits = [event.object for event in happened(found, Kind.WAIT) if event.object in (1024, 1 << 24 | 1024)]
        assert waits == [sender << 24 | 1024, (1 - sender) << 24 | 1024]

    def test_a_phase_waits_for_as_many_boxes_as_the_one_before(self) -> None:
        """The second box is sent once another mbarrier has had its own, which nothing but bytes holds back."""
        again = self.TENSOR[self.TENSOR.index("@%p1") :]
        other = (self.EXPECT + again).replace("[bars]", "[bars+8]")
        heard = wait(label="HEARD").replace("[bars]", "[bars+8]")
        snippet = initialized() + self.EXPECT + self.TENSOR + again + wait()
        snippet += self.EXPECT + again + other + heard + again + wait(1, label="AGAIN")
        found = run(snippet)
        assert not found.blocked
        assert [len(phase[2]) for phase in found.mbarriers[1024].history] == [2, 2]

    def test_no_box_no_phase(self) -> None:
        assert run(initialized() + self.EXPECT + wait()).blocked

    def test_a_box_is_no_arrival(self) -> None:
        assert run(initialized() + self.TENSOR + wait()).blocked

    def test_multicast_signals_each_cta_of_the_mask(self) -> None:
        snippet = (
            initialized()
            + """
        .shared .align 128 .b8 tile[512]; ld.param.u64 %rd1, [p]; mov.u16 %rs1, 5; mov.u32 %r2, %cluster_ctarank;
        barrier.cluster.arrive; barrier.cluster.wait;
        setp.eq.u32 %p3, %r2, 1; and.pred %p4, %p3, %p1;
        @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [tile], [%rd1], 64, [bars], %rs1;
        barrier.cluster.arrive; barrier.cluster.wait;
        """
        )
        machine = run(snippet, 1, 4)
        assert {barrier.address >> 24: barrier.tx for barrier in machine.mbarriers.values() if barrier.tx} == {
            0: -64,
            2: -64,
        }

    def test_a_commit_is_one_arrival_in_each_cta_of_the_mask(self) -> None:
        snippet = (
            initialized(4)
            + """
        mov.u16 %rs1, 3; barrier.cluster.arrive; barrier.cluster.wait;
        @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bars], %rs1;
        barrier.cluster.arrive; barrier.cluster.wait;
        """
        )
        machine = run(snippet, 32, 2)
        assert [machine.mbarriers[rank << 24 | 1024].pending for rank in (0, 1)] == [2, 2]

    def test_a_remote_store_brings_its_own_bytes(self) -> None:
        snippet = (
            initialized()
            + """
        mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1;
        .shared .align 16 .b8 tile[512]; mapa.shared::cluster.u32 %r4, tile, %r3;
        mapa.shared::cluster.u32 %r5, bars, %r3;
        barrier.cluster.arrive; barrier.cluster.wait;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r4], {%r1, %r1, %r1, %r1}, [%r5];
        barrier.cluster.arrive; barrier.cluster.wait;
        """
        )
        machine = run(snippet, 2, 2)
        assert [machine.mbarriers[rank << 24 | 1024].tx for rank in (0, 1)] == [-32, -32]

    def test_a_request_for_another_cluster(self) -> None:
        snippet = """
        .shared .align 16 .b8 answer[16];
        .shared .align 8 .b64 bar; mov.u32 %r9, 0; mov.u32 %r7, 0; mbarrier.init.shared.b64 [bar], 1;
        L: mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
        clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];
        W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bar], %r7; @!%p5 bra W;
        xor.b32 %r7, %r7, 1; .reg .b128 %answer; ld.shared.b128 %answer, [answer];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p6, %answer;
        @!%p6 bra DONE; add.u32 %r9, %r9, 1; bra L; DONE:
        """
        assert values(snippet, "%r9", 1) == [2]


class TestOtherCtas:
    """Shared memory of other CTAs before they have begun and after they have ended."""

    STORE = "mov.u32 %r2, 0; mapa.shared::cluster.u32 %r3, bars, {}; st.shared::cluster.b32 [%r3+16], %r2;\n"
    MEET = "barrier.cluster.arrive; barrier.cluster.wait;\n"

    def test_before_any_cluster_barrier(self) -> None:
        assert Fault.REMOTE_EARLY in faults(run(BAR + self.STORE.format(1) + self.MEET, 1, 2))

    @pytest.mark.parametrize(
        "arrive",
        [
            "mapa.shared::cluster.u32 %r3, bars, 1; mbarrier.arrive.shared::cluster.b64 _, [%r3];",
            "mov.u64 %rd1, bars; cvta.shared.u64 %rd2, %rd1; mapa.u64 %rd3, %rd2, 1; mbarrier.arrive.b64 _, [%rd3];",
        ],
    )
    def test_an_arrive_before_any_cluster_barrier(self, arrive: str) -> None:
        assert Fault.REMOTE_EARLY in faults(run(BAR + INIT + arrive + self.MEET, 1, 2))

    def test_after_one(self) -> None:
        assert faults(run(BAR + self.MEET + self.STORE.format(1) + self.MEET, 1, 2)) == set()

    def test_after_the_end_of_the_other(self) -> None:
        leaves = "mov.u32 %r5, %cluster_ctarank; setp.eq.u32 %p3, %r5, 1; @%p3 exit;"
        machine = run(
            BAR + self.MEET + leaves + "bar.sync 0;" + self.STORE.format(1), 1, 2, schedule=Schedule(Turn.DOWN)
        )
        assert Fault.REMOTE_LATE in faults(machine)

    def test_the_own_cta_is_always_there(self) -> None:
        own = (
            "mov.u32 %r4, %cluster_ctarank; mapa.shared::cluster.u32 %r3, bars, %r4; st.shared::cluster.b32 [%r3], %r4;"
        )
        assert faults(run(BAR + own, 1, 2)) == set()

    def test_a_rank_beyond_the_cluster(self) -> None:
        machine = run(BAR + self.MEET + self.STORE.format(3) + self.MEET, 1, 2)
        assert machine.left_cluster


class TestAlignedBarriers:
    """bar and .aligned under divergence inside a warp."""

    HALF = "mov.u32 %r1, %tid.x; setp.lt.u32 %p2, %r1, 16;\n"

    def test_lanes_of_a_branch(self) -> None:
        snippet = self.HALF + "@%p2 bra A; bar.sync 0; bra D; A: bar.sync 0; D:"
        assert Fault.DIVERGENT in faults(run(snippet))

    def test_the_form_that_need_not_be_aligned(self) -> None:
        snippet = self.HALF + "@%p2 bra A; barrier.sync 0; bra D; A: barrier.sync 0; D:"
        machine = run(snippet)
        assert faults(machine) == set()
        assert not machine.blocked

    def test_whole_warps_may_part(self) -> None:
        snippet = self.HALF.replace("16", "32") + "@%p2 bra A; bar.sync 0; bra D; A: bar.sync 0; D:"
        assert faults(run(snippet, 64)) == set()


class TestSchedules:
    """Which agent runs next."""

    ROLES = (
        initialized(100)
        + """
    setp.lt.u32 %p2, %r1, 32; @%p2 bra A; mbarrier.arrive.shared::cta.b64 _, [bars]; bra D;
    A: mbarrier.arrive.shared::cta.b64 _, [bars]; D:
    """
    )

    def _order(self, turn: Turn, initializers: frozenset[int] = frozenset()) -> list[str]:
        found = kernel(self.ROLES)
        program = replace(found, program=replace(found.program, initializers=initializers))
        machine = program.machine(64, schedule=Schedule(turn))
        machine.run()
        return [str(event.agent) for event in happened(machine, Kind.ARRIVE)]

    def test_the_lowest_thread_first(self) -> None:
        assert self._order(Turn.UP) == ["warp 0", "warp 1"]

    def test_the_highest_thread_first(self) -> None:
        assert self._order(Turn.DOWN) == ["warp 1", "warp 0"]

    def test_who_initializes_last(self) -> None:
        assert self._order(Turn.INITIALIZER_LAST, frozenset({0})) == ["warp 1", "warp 0"]
        assert self._order(Turn.INITIALIZER_LAST, frozenset({32})) == ["warp 0", "warp 1"]

    def test_five_ways_that_differ(self) -> None:
        assert len(set(SCHEDULES)) == 5
        assert {schedule.late_copies for schedule in SCHEDULES} == {True, False}

    @pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
    def test_runs_repeat_themselves(self, schedule: Schedule) -> None:
        snippet = self.ROLES + "bar.sync 0;" + wait(1)
        first, second = (run(snippet, 96, schedule=schedule) for _ in range(2))
        assert first.events == second.events


class TestBudget:
    """Runs that go on for too long."""

    def test_an_endless_loop(self) -> None:
        with pytest.raises(OutOfBudgetError):
            run("L: bar.sync 0; bra L;")

    def test_the_budget_is_in_steps(self) -> None:
        snippet = "mov.u32 %r2, 0; L: bar.sync 0; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra L;"
        steps = run(snippet).steps
        assert 100 < steps < 400
        assert run(snippet, budget=steps).steps == steps
        with pytest.raises(OutOfBudgetError):
            run(snippet, budget=steps - 1)


class TestRepairs:
    """Changes to a kernel that are tried."""

    def _point(self, snippet: str, opcode: str) -> int:
        body = kernel(snippet).cfg.body
        return next(point for point, instruction in enumerate(body) if instruction.name.startswith(opcode))

    def test_the_other_parity(self) -> None:
        snippet = initialized() + wait()
        point = self._point(snippet, "mbarrier.try_wait")
        assert run(snippet, 1).blocked
        assert not run(snippet, 1, repair=Repair(flipped=frozenset({point}))).blocked

    def test_another_count(self) -> None:
        snippet = initialized(2) + ARRIVE + wait()
        assert run(snippet, 1).blocked
        assert not run(snippet, 1, repair=Repair(counts={1024: 1})).blocked

    @pytest.mark.parametrize("opcode", ["bar.sync", "mbarrier.try_wait"])
    def test_a_point_left_out(self, opcode: str) -> None:
        snippet = {"bar.sync": "bar.sync 1, 64;", "mbarrier.try_wait": initialized() + wait()}[opcode]
        point = self._point(snippet, opcode)
        assert run(snippet).blocked
        assert not run(snippet, repair=Repair(skipped=frozenset({point}))).blocked

    LOOP = initialized() + "mov.u32 %r6, 0; L: {} add.u32 %r6, %r6, 1; setp.lt.u32 %p6, %r6, 4; @%p6 bra L;"

    def test_phases_in_turn(self) -> None:
        snippet = self.LOOP.format(ARRIVE + wait(0))
        point = self._point(snippet, "mbarrier.try_wait")
        assert run(snippet, 1).blocked
        machine = run(snippet, 1, repair=Repair(alternating=frozenset({point})))
        assert not machine.blocked
        assert [event.phase for event in happened(machine, Kind.WAIT)] == [0, 1, 2, 3]

    def test_phases_in_turn_from_a_given_parity(self) -> None:
        snippet = self.LOOP.format(wait(0) + ARRIVE)
        point = self._point(snippet, "mbarrier.try_wait")
        machine = run(snippet, 1, repair=Repair(alternating=frozenset({point}), start=1))
        assert not machine.blocked
        assert [event.phase for event in happened(machine, Kind.WAIT)] == [-1, 0, 1, 2]


class TestAgents:
    """Threads in words."""

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("lt.u32 %p2, %r1, 1", "thread 0"),
            ("lt.u32 %p2, %r1, 32", "warp 0"),
            ("lt.u32 %p2, %r1, 96", "warps 0-2"),
            ("lt.u32 %p2, %r1, 20", "threads 0-19"),
            ("ge.u32 %p2, %r1, 64", "warps 2-3"),
        ],
    )
    def test_who(self, condition: str, expected: str) -> None:
        snippet = initialized(500) + f"setp.{condition}; @%p2 mbarrier.arrive.shared::cta.b64 _, [bars];"
        assert agents(run(snippet, 128), Kind.ARRIVE) == [expected]
