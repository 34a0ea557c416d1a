"""Barriers as the ISA counts them: the models by themselves, and as instructions see them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxlint.execution.barriers import ClusterBarrier, Mbarrier, NamedBarrier
from ptxlint.execution.schedule import SCHEDULES
from ptxlint.execution.trace import Fault, Kind

from .running import agents, faults, happened, initialized, run, values

ARRIVE = "@%p1 mbarrier.arrive.shared::cta.b64 _, [bars];\n"
TEST = "@%p1 mbarrier.test_wait.parity.shared::cta.b64 %p5, [bars], {};\nselp.u32 %r9, 1, 0, %p5;\n"

EARLY, LATE = SCHEDULES[0], SCHEDULES[4]


def fresh(expected: int) -> Mbarrier:
    return Mbarrier(1024, 0, 0, None, expected)


def answers(before: str, count: int = 1) -> tuple[int, int]:
    """What thread 0 gets for parity 0 and for parity 1 after some instructions, when nobody else will do anything."""
    snippets = (f"{initialized(count, count)} mov.pred %p5, 0; {before} {TEST.format(parity)}" for parity in (0, 1))
    first, second = (values(snippet, "%r9", 1) for snippet in snippets)
    return first[0], second[0]


FIRST_PHASE, SECOND_PHASE, THIRD_PHASE = (0, 1), (1, 0), (0, 1)
"""The answers while a phase is in progress."""


class TestParity:
    """Which waits return true. Source: PTX ISA, mbarrier.test_wait; fresh objects and over-arrival measured."""

    def test_a_fresh_barrier(self) -> None:
        assert answers("") == FIRST_PHASE

    def test_after_one_phase(self) -> None:
        assert answers(ARRIVE) == SECOND_PHASE

    def test_after_two_phases(self) -> None:
        assert answers(ARRIVE * 2) == THIRD_PHASE

    def test_a_phase_that_lacks_an_arrival(self) -> None:
        assert answers(ARRIVE, count=2) == FIRST_PHASE

    def test_arrivals_in_excess_count_in_the_next_phase(self) -> None:
        excess = "@%p1 mbarrier.arrive.shared::cta.b64 _, [bars], 3;\n"
        assert answers(excess, count=2) == SECOND_PHASE
        assert answers(excess + ARRIVE, count=2) == THIRD_PHASE

    @given(st.integers(1, 5), st.integers(0, 12))
    def test_phases_by_counting(self, expected: int, arrivals: int) -> None:
        barrier = fresh(expected)
        for _ in range(arrivals):
            barrier.pending -= 1
            if barrier.is_due:
                barrier.turn()
        assert barrier.phase == arrivals // expected
        assert barrier.passes(0) == (barrier.phase % 2 == 1)
        assert barrier.passes(1) == (barrier.phase % 2 == 0)

    def test_initializing_anew_starts_from_the_first_phase(self) -> None:
        again = "@%p1 mbarrier.inval.shared.b64 [bars]; @%p1 mbarrier.init.shared.b64 [bars], 1;"
        assert answers(ARRIVE + again) == FIRST_PHASE


class TestTransactions:
    """The tx-count. Source: PTX ISA, Phase Completion."""

    EXPECT = "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 64;\n"
    COMPLETE = "@%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bars], 64;\n"
    ARRIVE_EXPECT = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;\n"

    def test_bytes_that_are_expected_hold_the_phase_open(self) -> None:
        assert answers(self.ARRIVE_EXPECT) == FIRST_PHASE
        assert answers(self.ARRIVE_EXPECT + self.COMPLETE) == SECOND_PHASE

    def test_half_the_bytes_are_not_enough(self) -> None:
        assert answers(self.ARRIVE_EXPECT + self.COMPLETE.replace("64;", "32;")) == FIRST_PHASE

    def test_the_bytes_may_come_first_while_an_arrival_is_pending(self) -> None:
        assert answers(self.COMPLETE) == FIRST_PHASE
        assert answers(self.COMPLETE + self.ARRIVE_EXPECT) == SECOND_PHASE

    def test_the_count_may_pass_through_zero_while_an_arrival_is_pending(self) -> None:
        assert answers(self.EXPECT + self.COMPLETE) == FIRST_PHASE
        assert answers(self.EXPECT + self.COMPLETE + ARRIVE) == SECOND_PHASE

    def test_bytes_that_nobody_expects_hold_the_phase_open(self) -> None:
        assert answers(self.COMPLETE + ARRIVE) == FIRST_PHASE

    def test_transactions_alone_complete_nothing(self) -> None:
        assert answers(self.EXPECT) == FIRST_PHASE

    def test_an_expectation_after_the_last_arrival_counts_in_the_next_phase(self) -> None:
        late = ARRIVE + self.EXPECT
        assert answers(late) == SECOND_PHASE
        assert answers(late + ARRIVE) == SECOND_PHASE
        assert answers(late + ARRIVE + self.COMPLETE) == THIRD_PHASE

    def test_arrive_expect_counts_one_arrival_whatever_the_bytes(self) -> None:
        assert answers(self.ARRIVE_EXPECT + self.COMPLETE, count=2) == FIRST_PHASE

    def test_each_thread_expects_its_own_bytes(self) -> None:
        machine = run(initialized(32) + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 4;")
        assert sum(event.amount for event in happened(machine, Kind.EXPECT)) == 128
        assert machine.mbarriers[1024].pending == 0
        assert machine.mbarriers[1024].tx == 128


class TestForms:
    """arrive_drop, noComplete, counts and tokens."""

    DROP = "@%p1 mbarrier.arrive_drop.shared::cta.b64 _, [bars];\n"

    def test_who_drops_out_counts_in_this_phase_and_no_later_one(self) -> None:
        assert answers(self.DROP, count=2) == FIRST_PHASE
        assert answers(self.DROP + ARRIVE, count=2) == SECOND_PHASE
        assert answers(self.DROP + ARRIVE + ARRIVE, count=2) == THIRD_PHASE
        assert answers(ARRIVE + ARRIVE + ARRIVE, count=2) == SECOND_PHASE

    def test_dropping_with_bytes(self) -> None:
        drop = "@%p1 mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [bars], 16;\n"
        done = "@%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bars], 16;\n"
        assert answers(drop + ARRIVE, count=2) == FIRST_PHASE
        assert answers(drop + ARRIVE + done, count=2) == SECOND_PHASE
        assert answers(drop + ARRIVE + done + ARRIVE, count=2) == THIRD_PHASE

    def test_an_arrive_that_does_not_complete_still_counts(self) -> None:
        partial = "@%p1 mbarrier.arrive.noComplete.shared::cta.b64 %rd9, [bars], 2;\n"
        assert answers(partial, count=3) == FIRST_PHASE
        assert answers(partial + ARRIVE, count=3) == SECOND_PHASE

    def test_a_count_of_arrivals(self) -> None:
        assert answers("@%p1 mbarrier.arrive.shared::cta.b64 _, [bars], 2;\n", count=2) == SECOND_PHASE

    TOKEN = "@%p1 mbarrier.arrive.shared::cta.b64 %rd9, [bars];\n"
    ASK = "@%p1 mbarrier.test_wait.shared::cta.b64 %p5, [bars], %rd9;\nselp.u32 %r9, 1, 0, %p5;\n"

    @pytest.mark.parametrize(
        ("before", "count", "expected"),
        [
            (TOKEN, 1, 1),
            (TOKEN, 2, 0),
            (TOKEN + ARRIVE, 2, 1),
            (ARRIVE + TOKEN, 1, 1),
            (ARRIVE * 2 + TOKEN, 2, 0),
            (ARRIVE * 2 + TOKEN + ARRIVE, 2, 1),
        ],
    )
    def test_a_token_stands_for_the_phase_of_its_arrive(self, before: str, count: int, expected: int) -> None:
        snippet = f"{initialized(count)} mov.pred %p5, 0; {before} {self.ASK}"
        assert values(snippet, "%r9", 1) == [expected]

    def test_each_thread_gets_the_token_of_its_own_arrive(self) -> None:
        snippet = f"""{initialized(1, 9)} {ARRIVE}
        mov.u64 %rd9, 77; setp.lt.u32 %p3, %r1, 2; shl.b32 %r5, %r1, 3; mov.u32 %r6, bars; add.u32 %r6, %r6, %r5;
        @%p3 mbarrier.arrive.shared::cta.b64 %rd9, [%r6];
        """
        assert values(snippet, "%rd9", 4) == [1, 0, 77, 77]


class TestAsyncArrive:
    """cp.async.mbarrier.arrive. Source: PTX ISA, cp.async.mbarrier.arrive."""

    PLAIN = "cp.async.mbarrier.arrive.shared::cta.b64 [bars];\n"
    NO_INC = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bars];\n"

    @pytest.mark.parametrize("schedule", [EARLY, LATE], ids=str)
    def test_with_noinc_it_is_one_of_the_counted_arrivals(self, schedule: object) -> None:
        machine = run(initialized(32) + self.NO_INC, schedule=schedule)
        assert machine.mbarriers[1024].phase == 1

    @pytest.mark.parametrize("schedule", [EARLY, LATE], ids=str)
    def test_without_noinc_the_phase_sees_no_change(self, schedule: object) -> None:
        machine = run(initialized(32) + self.PLAIN, schedule=schedule)
        barrier = machine.mbarriers[1024]
        assert (barrier.phase, barrier.pending) == (0, 32)

    def test_the_copies_hold_the_phase_open_until_they_are_done(self) -> None:
        snippet = initialized(32) + self.PLAIN + "mbarrier.arrive.shared::cta.b64 _, [bars];"
        machine = run(snippet, schedule=LATE)
        kinds = [event.kind for event in machine.events if event.object == 1024]
        assert kinds[-2:] == [Kind.ARRIVE, Kind.PHASE]
        assert happened(machine, Kind.ARRIVE)[-1].agent is None
        assert machine.mbarriers[1024].phase == 1


class TestNamedBarrier:
    """bar and barrier. Source: PTX ISA, bar, barrier."""

    def test_the_whole_cta(self) -> None:
        machine = run("bar.sync 0;", 96)
        assert not machine.blocked
        assert machine.ctas[0].named[0].generation == 1

    def test_a_last_warp_that_is_not_full_counts_as_one(self) -> None:
        machine = run("bar.sync 0; bar.sync 1, 64;", 40)
        assert not machine.blocked
        assert not machine.incidents

    FIRST_LEAVES = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 exit;\n"

    def test_warps_that_have_exited_are_not_waited_for(self) -> None:
        assert not run(self.FIRST_LEAVES + "bar.sync 0;", 64).blocked

    def test_with_a_count_they_are(self) -> None:
        """Measured on an H200: it hangs, also where the count is the size of the CTA."""
        assert run(self.FIRST_LEAVES + "bar.sync 1, 64;", 64).blocked
        assert run(self.FIRST_LEAVES + "bar.sync 1, 64;", 96).blocked == {}

    def test_lanes_that_have_exited_are_not_waited_for(self) -> None:
        machine = run("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; @%p1 exit; barrier.sync 1, 32;")
        assert not machine.blocked

    def test_too_few_threads(self) -> None:
        machine = run("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64;", 64)
        assert [strand.state for strand in machine.blocked] == ["at barrier"]

    def test_arrivals_and_waits_add_up(self) -> None:
        roles = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;\n"
        machine = run(roles + "@%p1 bar.arrive 1, 64; @!%p1 bar.sync 1, 64;", 64)
        assert not machine.blocked
        assert not machine.incidents

    def test_a_warp_that_arrives_and_then_waits_counts_twice(self) -> None:
        machine = run("bar.arrive 1, 64; bar.sync 1, 64;")
        assert not machine.blocked
        assert faults(machine) == set()

    def test_a_warp_that_arrives_twice_is_ahead(self) -> None:
        assert Fault.RUN_AHEAD in faults(run("bar.arrive 1, 96; bar.arrive 1, 96;"))

    def test_an_arrive_does_not_wait(self) -> None:
        machine = run("bar.arrive 1, 64;")
        assert not machine.blocked
        assert machine.ctas[0].named[1].generation == 0

    def test_numbers_are_apart(self) -> None:
        roles = "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;\n"
        assert len(run(roles + "bar.sync %r2, 64;", 64).blocked) == 2
        assert not run(roles + "bar.sync %r2, 32;", 64).blocked

    def test_ctas_are_apart(self) -> None:
        snippet = "mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 0; @%p1 bar.arrive 1, 64; @!%p1 bar.sync 1, 64;"
        assert len(run(snippet, 32, 2).blocked) == 1

    def test_two_counts_of_one_use(self) -> None:
        roles = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;\n"
        machine = run(roles + "@%p1 bar.sync 1, 64; @!%p1 bar.sync 1, 96;", 64)
        incident = next(i for i in machine.incidents if i.fault is Fault.BARRIER_COUNT)
        assert {incident.details["count"], incident.details["other"]} == {64, 96}

    @pytest.mark.parametrize(
        ("operation", "expected"),
        [("popc.u32 %r9", 3), ("popc.u32 %r9", 61), ("and.pred %p9", 0), ("or.pred %p9", 1)],
    )
    def test_reductions_over_all_threads(self, operation: str, expected: int) -> None:
        negation = "!" if expected == 61 else ""
        snippet = f"mov.u32 %r1, %tid.x; setp.ge.u32 %p2, %r1, 61; bar.red.{operation}, 0, {negation}%p2;"
        if "pred" in operation:
            snippet += "selp.u32 %r9, 1, 0, %p9;"
        assert values(snippet, "%r9", 64) == [expected] * 64

    def test_the_model_starts_anew_after_each_use(self) -> None:
        barrier = NamedBarrier(3)
        barrier.admit(0)
        barrier.points[0] = 7
        barrier.reset()
        assert (barrier.generation, barrier.arrived, barrier.warps, barrier.points) == (1, 0, set(), {})
        assert (barrier.generations, barrier.has_counted_twice) == ([(0,)], False)


class TestClusterBarrier:
    """barrier.cluster. Source: PTX ISA, barrier.cluster."""

    MEET = "barrier.cluster.arrive; barrier.cluster.wait;\n"

    def test_all_threads_of_all_ctas(self) -> None:
        machine = run(self.MEET * 2, 64, 2)
        assert not machine.blocked
        assert machine.cluster.generation == 2
        assert [event.phase for event in happened(machine, Kind.CLUSTER_WAIT)] == [0, 0, 1, 1]

    def test_a_cta_that_does_not_arrive(self) -> None:
        snippet = "mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1; @%p1 bra HANG;\n"
        hang = "bra DONE;\nHANG: bar.sync 1, 64;\nDONE:"
        machine = run(snippet + self.MEET + hang, 32, 2)
        assert sorted(strand.state for strand in machine.blocked) == ["at barrier", "at cluster barrier"]

    def test_threads_that_have_exited_are_not_waited_for(self) -> None:
        early = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 40; @%p1 exit;\n"
        assert not run(early + self.MEET, 64, 2).blocked
        whole = "mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1; @%p1 exit;\n"
        assert not run(whole + self.MEET, 64, 2).blocked

    def test_threads_that_exit_after_they_have_arrived(self) -> None:
        """They count no more: the others of their CTA still have to come."""
        snippet = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @!%p1 bra OTHER;"
        snippet += "barrier.cluster.arrive; exit; OTHER: bar.sync 1, 64; barrier.cluster.arrive; barrier.cluster.wait;"
        machine = run(snippet, 64, 1)
        assert machine.cluster.generation == 0
        assert [strand.state for strand in machine.blocked] == ["at barrier"]

    def test_twice_without_a_wait(self) -> None:
        machine = run("barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;", 32, 2)
        assert Fault.CLUSTER_TWICE in faults(machine)

    def test_a_wait_without_an_arrive(self) -> None:
        assert faults(run("barrier.cluster.wait;", 32, 2)) == {Fault.CLUSTER_UNARRIVED}

    def test_work_between_arrive_and_wait_goes_on(self) -> None:
        snippet = "barrier.cluster.arrive; bar.sync 0; barrier.cluster.wait;"
        machine = run(snippet, 64, 2)
        assert not machine.blocked
        assert agents(machine, Kind.SYNC) == ["warps 0-1", "warps 0-1 of CTA 1"]

    def test_lanes_under_a_guard_arrive_alone(self) -> None:
        snippet = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8; @%p1 barrier.cluster.arrive;"
        assert agents(run(snippet, 32, 2), Kind.CLUSTER_ARRIVE) == ["threads 0-7", "threads 0-7 of CTA 1"]

    def test_the_model_counts_each_thread_once(self) -> None:
        barrier = ClusterBarrier()
        assert barrier.arrive(0, (0, 1), 5) is None
        assert barrier.arrive(0, (1, 2), 6) == 5
        assert barrier.arrived == {0: {0, 1, 2}}
        barrier.leave(0, (2,))
        barrier.turn()
        assert (barrier.generation, barrier.arrived) == (1, {})


class TestSchedules:
    """What the choice of hardware changes, and what it does not."""

    def test_copies_land_at_once_or_when_nobody_can_run(self) -> None:
        copy = """
        ld.param.u64 %rd1, [source];
        .shared .align 128 .b8 tile[64];
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 16;
        @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [bars];
        bar.sync 0;
        """
        orders = []
        for schedule in (EARLY, LATE):
            machine = run(
                initialized() + copy + "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 0;\n"
                "@!%p5 bra WAIT;",
                schedule=schedule,
            )
            kinds = [event.kind for event in machine.events]
            orders.append(kinds.index(Kind.COMPLETE) < len(kinds) - 1 - kinds[::-1].index(Kind.SYNC))
        assert orders == [True, False]

    @pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
    def test_a_handover_comes_through_each(self, schedule: object) -> None:
        snippet = (
            initialized(32)
            + """
        setp.lt.u32 %p2, %r1, 32;
        @%p2 mbarrier.arrive.shared::cta.b64 _, [bars];
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 0;
        @!%p5 bra WAIT;
        """
        )
        machine = run(snippet, 64, schedule=schedule)
        assert not machine.blocked
        assert not machine.incidents
        assert {event.phase for event in happened(machine, Kind.WAIT)} == {0}


def test_the_probe_itself_reads_what_each_thread_holds() -> None:
    """The way in which these tests look at registers."""
    assert values("mov.u32 %r9, %tid.x;", "%r9", 40) == list(range(40))
