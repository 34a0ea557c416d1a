"""From symptoms to the fault: each kind of mistake in one small kernel, with the instruction that is blamed."""

from __future__ import annotations

import pytest

from ptxlint.execution.trace import Fault

from .running import executed, initialized, told

RING = (
    initialized(1, 32)
    + """
.shared .align 128 .b8 tile[512]; ld.param.u64 %rd1, [source]; ld.param.u32 %r4, [trips];
mov.u32 %r5, 0; setp.ge.u32 %p2, %r1, 32; @%p2 bra CONSUMER;
mov.u32 %r6, 1;
PRODUCER:
EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars+8], %r6; @!%p5 bra EMPTY;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;
@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bars];
xor.b32 %r6, %r6, 1;
add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r4; @%p3 bra PRODUCER; bra DONE;
CONSUMER:
mov.u32 %r7, 0;
NEXT:
FULL: mbarrier.try_wait.parity.shared::cta.b64 %p6, [bars], %r7; @!%p6 bra FULL;
mbarrier.arrive.shared::cta.b64 _, [bars+8];
xor.b32 %r7, %r7, 1;
add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, %r4; @%p4 bra NEXT;
DONE: bar.sync 0;
"""
)
"""One slot that a warp fills and another empties."""

EMPTY, FULL = "[bars+8], %r6", "[bars], %r7"
INIT_FULL, INIT_EMPTY = "mbarrier.init.shared.b64 [bars], ", "mbarrier.init.shared.b64 [bars+8], "


def changed(*replacements: tuple[str, str], kernel: str = RING) -> str:
    for old, new in replacements:
        assert kernel.count(old) == 1, f"{old} is there {kernel.count(old)} times"
        kernel = kernel.replace(old, new)
    return kernel


def blamed(snippet: str, threads: int = 64, cluster: int = 1) -> tuple[Fault, str]:
    """The only defect of a kernel."""
    (defect,) = told(executed(snippet, threads, cluster))
    return defect


class TestRing:
    """One mistake each in a ring of one slot."""

    def test_the_right_one(self) -> None:
        execution = executed(RING, 64, 1)
        assert told(execution) == []
        assert execution.not_analysed is None
        assert not execution.conflicts
        assert not execution.uncovered

    @pytest.mark.parametrize(
        ("replacements", "fault", "place"),
        [
            ([("xor.b32 %r7, %r7, 1;", "")], Fault.PARITY_CONSTANT, FULL),
            ([("xor.b32 %r6, %r6, 1;", "")], Fault.PARITY_CONSTANT, EMPTY),
            ([("mov.u32 %r6, 1;", "mov.u32 %r6, 0;")], Fault.PARITY_INITIAL, EMPTY),
            ([("mov.u32 %r7, 0;", "mov.u32 %r7, 1;")], Fault.PARITY_INITIAL, FULL),
            ([(INIT_FULL + "1;", INIT_FULL + "2;")], Fault.ARRIVALS_MISSING, INIT_FULL),
            ([(INIT_EMPTY + "32;", INIT_EMPTY + "33;")], Fault.ARRIVALS_MISSING, INIT_EMPTY),
            ([(INIT_EMPTY + "32;", INIT_EMPTY + "1;")], Fault.OVER_ARRIVAL, "mbarrier.arrive.shared::cta"),
            ([("mbarrier.arrive.shared::cta.b64 _, [bars+8];", "")], Fault.NO_ARRIVAL, EMPTY),
            ([("@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;", ""),
              ("@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bars];", "")],
             Fault.NO_ARRIVAL, FULL),
            ([("_, [bars], 64;", "_, [bars], 80;")], Fault.BYTES, "[bars], 80"),
            ([("[%rd1], 64, [bars];", "[%rd1], 48, [bars];")], Fault.BYTES, "[bars], 64"),
            ([("@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;",
               "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 64;")],
             Fault.EXPECT_WITHOUT_ARRIVAL, "mbarrier.expect_tx"),
        ],
    )  # fmt: skip
    def test_a_mistake(self, replacements: list[tuple[str, str]], fault: Fault, place: str) -> None:
        found, text = blamed(changed(*replacements))
        assert (found, place in text) == (fault, True), (found, text)

    def test_the_numbers_of_a_count(self) -> None:
        execution = executed(changed((INIT_EMPTY + "32;", INIT_EMPTY + "40;")), 64, 1)
        (defect,) = execution.defects
        assert (defect.incident.details["expected"], defect.incident.details["arrivals"]) == (40, 32)

    def test_the_number_that_would_be_right(self) -> None:
        (defect,) = executed(changed((INIT_EMPTY + "32;", INIT_EMPTY + "8;")), 64, 1).defects
        assert defect.fault is Fault.OVER_ARRIVAL
        assert (defect.incident.details["expected"], defect.incident.details["arrivals"]) == (8, 32)

    def test_warps_that_arrive_one_after_the_other(self) -> None:
        apart = changed(
            (INIT_EMPTY + "32;", INIT_EMPTY + "1;"),
            ("NEXT:\n", "and.b32 %r9, %r1, 31; setp.eq.u32 %p7, %r9, 0; setp.ge.u32 %p6, %r1, 64; @%p6 bra NEXT;"
             "bar.sync 2, 32;\nNEXT:\n"),
            ("mbarrier.arrive.shared::cta.b64 _, [bars+8];", "@%p7 mbarrier.arrive.shared::cta.b64 _, [bars+8];"),
        )  # fmt: skip
        (defect,) = executed(apart, 128, 1).defects
        assert defect.fault is Fault.OVER_ARRIVAL
        assert defect.incident.details["arrivals"] == 3
        assert defect.incident.details["arrived"] > 0

    def test_the_numbers_of_bytes(self) -> None:
        execution = executed(changed(("_, [bars], 64;", "_, [bars], 80;")), 64, 1)
        (defect,) = execution.defects
        assert (defect.incident.details["expected"], defect.incident.details["copied"]) == (80, 64)

    def test_a_parity_that_changes_every_other_trip(self) -> None:
        slow = changed(
            ("xor.b32 %r7, %r7, 1;", ""),
            ("setp.lt.u32 %p4, %r5, %r4;", "setp.lt.u32 %p4, %r5, %r4; shr.u32 %r7, %r5, 1; and.b32 %r7, %r7, 1;"),
        )
        fault, text = blamed(slow)
        assert fault is Fault.PARITY_OF_OTHER_SLOT
        assert FULL in text

    def test_a_producer_that_does_not_wait(self) -> None:
        fault, text = blamed(
            changed(
                ("EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars+8], %r6; @!%p5 bra EMPTY;", ""),
            )
        )
        assert fault is Fault.OVERTAKE
        assert "[bars]" in text

    def test_an_inner_loop_that_starts_its_parity_anew(self) -> None:
        outer = changed(
            ("mov.u32 %r6, 1;\n", "mov.u32 %r6, 1; mov.u32 %r10, 0;\n"),
            ("mov.u32 %r7, 0;\n", "mov.u32 %r10, 0;\nOUTER: mov.u32 %r7, 0; mov.u32 %r5, 0;\n"),
            ("PRODUCER:\n", "AGAIN: mov.u32 %r5, 0;\nPRODUCER:\n"),
            ("@%p3 bra PRODUCER;", "@%p3 bra PRODUCER; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 3;"
             "@%p3 bra AGAIN;"),
            ("@%p4 bra NEXT;", "@%p4 bra NEXT; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 3; @%p4 bra OUTER;"),
        ).replace("ld.param.u32 %r4, [trips];", "mov.u32 %r4, 3;")  # fmt: skip
        fault, text = blamed(outer)
        assert fault is Fault.PARITY_RESTARTED
        assert FULL in text


class TestWaits:
    """Waits without a mistake of parity or count."""

    WAIT = "{label}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [{barrier}], 0; @!%p5 bra {label};\n"
    ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [{}];\n"

    def test_two_agents_that_wait_for_each_other(self) -> None:
        snippet = initialized(32, 32) + "setp.lt.u32 %p2, %r1, 32; @%p2 bra A;\n"
        snippet += self.WAIT.format(label="ONE", barrier="bars") + self.ARRIVE.format("bars+8") + "bra D;\nA:"
        snippet += self.WAIT.format(label="TWO", barrier="bars+8") + self.ARRIVE.format("bars") + "D:"
        assert blamed(snippet)[0] is Fault.CYCLE

    def test_arrivals_behind_further_waits_are_no_hope(self) -> None:
        """What stands behind waits and barriers that nobody has come to yet is reached once nobody is held up."""
        snippet = initialized(32, 32) + "setp.lt.u32 %p2, %r1, 32; @%p2 bra A;\n"
        snippet += self.WAIT.format(label="ONE", barrier="bars")
        snippet += self.WAIT.format(label="MORE", barrier="bars").replace(", 0;", ", 1;") + "bar.sync 1, 64;\n"
        snippet += self.ARRIVE.format("bars+8") + "bra D;\nA:"
        snippet += self.WAIT.format(label="TWO", barrier="bars+8") + self.ARRIVE.format("bars") + "D:"
        assert blamed(snippet)[0] is Fault.CYCLE

    def test_the_right_order(self) -> None:
        snippet = initialized(32, 32) + "setp.lt.u32 %p2, %r1, 32; @%p2 bra A;\n"
        snippet += self.WAIT.format(label="ONE", barrier="bars") + self.ARRIVE.format("bars+8") + "bra D;\nA:"
        snippet += self.ARRIVE.format("bars") + self.WAIT.format(label="TWO", barrier="bars+8") + "D:"
        assert told(executed(snippet, 64, 1)) == []

    def test_a_barrier_that_nobody_arrives_at(self) -> None:
        fault, text = blamed(initialized() + self.WAIT.format(label="ONE", barrier="bars"), 32)
        assert fault is Fault.NO_ARRIVAL
        assert "try_wait" in text

    MORE = changed(
        ("ld.param.u32 %r4, [trips];", "mov.u32 %r4, 5;"),
        ("setp.lt.u32 %p4, %r5, %r4;", "setp.le.u32 %p4, %r5, %r4;"),
    )

    def test_a_consumer_that_goes_round_once_more(self) -> None:
        fault, text = blamed(changed(("DONE: bar.sync 0;", "DONE:"), kernel=self.MORE))
        assert fault is Fault.STUCK
        assert FULL in text

    def test_a_consumer_that_goes_round_once_more_before_a_last_barrier(self) -> None:
        fault, text = blamed(self.MORE)
        assert fault is Fault.STUCK
        assert FULL in text


ROLES = "mov.u32 %r1, %tid.x; setp.lt.u32 %p2, %r1, 32;\n"


class TestNamedBarriers:
    """bar and barrier."""

    @pytest.mark.parametrize(
        ("snippet", "threads", "fault", "place"),
        [
            ("@%p2 bra A; bra D; A: bar.sync 0; bra E; D: bar.sync 1, 32; bar.sync 1, 64; E:", 64, Fault.CYCLE, "bar"),
            ("@%p2 bar.sync 1, 96;", 64, Fault.STUCK_BARRIER, "bar.sync 1, 96"),
            ("bar.sync 1, 96;", 64, Fault.STUCK_BARRIER, "bar.sync 1, 96"),
            ("@%p2 bar.sync 1, 64; @!%p2 bar.sync 1, 96;", 64, Fault.BARRIER_COUNT, "bar.sync 1"),
            ("bar.arrive 1, 128; bar.arrive 1, 128;", 64, Fault.RUN_AHEAD, "bar.arrive"),
            ("setp.lt.u32 %p3, %r1, 16; @%p3 bra A; bar.sync 0; bra D; A: bar.sync 0; D:", 32, Fault.DIVERGENT, "bar"),
        ],
    )  # fmt: skip
    def test_a_mistake(self, snippet: str, threads: int, fault: Fault, place: str) -> None:
        found = told(executed(ROLES + snippet, threads, 1))
        assert found, "silent"
        assert (found[0][0], place in found[0][1]) == (fault, True), found

    def test_a_cta_barrier_inside_a_role(self) -> None:
        """The warp that goes round a ring meets the whole CTA in the first trip, the others do not."""
        role = changed(("PRODUCER:\n", "PRODUCER: bar.sync 0;\n"))
        fault, text = blamed(role)
        assert fault is Fault.ROLE_BARRIER
        assert text == "bar.sync 0;"

    @pytest.mark.parametrize(
        "snippet",
        [
            "bar.sync 0;",
            "@%p2 bar.arrive 1, 64; @!%p2 bar.sync 1, 64;",
            "@%p2 barrier.sync 0; @!%p2 barrier.sync 0;",
            "@%p2 bar.sync 1, 32; @!%p2 bar.sync 2, 32;",
            "bar.sync 1, 64; bar.sync 1, 64;",
        ],
    )
    def test_right_ones(self, snippet: str) -> None:
        assert told(executed(ROLES + snippet, 64, 1)) == []


MEET = "barrier.cluster.arrive; barrier.cluster.wait;\n"
REMOTE = "mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; mapa.shared::cluster.u32 %r4, bars, %r3;\n"
STORE = "st.shared::cluster.b32 [%r4+32], %r2;\n"


class TestClusters:
    """The cluster barrier, and memory of other CTAs."""

    @pytest.mark.parametrize(
        ("snippet", "fault"),
        [
            ("barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;", Fault.CLUSTER_TWICE),
            ("barrier.cluster.wait;", Fault.CLUSTER_UNARRIVED),
            ("barrier.cluster.arrive;", Fault.CLUSTER_UNWAITED),
            (initialized() + REMOTE + STORE + MEET, Fault.REMOTE_EARLY),
            (initialized() + REMOTE + MEET + STORE, Fault.REMOTE_LATE),
        ],
    )
    def test_a_mistake(self, snippet: str, fault: Fault) -> None:
        assert fault in {found for found, _ in told(executed(snippet, 32, 2))}

    def test_the_right_frame(self) -> None:
        assert told(executed(initialized() + REMOTE + MEET + STORE + MEET, 32, 2)) == []


ONE = ".shared .align 8 .b8 bars[16]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
INIT = "@%p1 mbarrier.init.shared.b64 [bars], 32;\n"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [bars];\n"
LEADER = "@%p1 mbarrier.arrive.shared::cta.b64 _, [bars];\n"


class TestLife:
    """Faults that are what they seem."""

    @pytest.mark.parametrize(
        ("snippet", "fault", "place"),
        [
            (ARRIVE, Fault.BEFORE_INIT, "mbarrier.arrive"),
            (INIT + "@%p1 mbarrier.inval.shared.b64 [bars]; bar.sync 0;" + LEADER, Fault.AFTER_INVAL, "mbarrier.arr"),
            (INIT + INIT, Fault.REINIT, "mbarrier.init"),
            (INIT.replace("32;", "0;"), Fault.BAD_COUNT, "mbarrier.init"),
            (INIT.replace("bars", "bars+4"), Fault.MISALIGNED, "mbarrier.init"),
        ],
    )  # fmt: skip
    def test_a_mistake(self, snippet: str, fault: Fault, place: str) -> None:
        found = told(executed(ONE + snippet, 32, 1))
        assert found
        assert (found[0][0], place in found[0][1]) == (fault, True), found

    def test_an_initialization_that_nothing_publishes(self) -> None:
        snippet = ONE + "setp.lt.u32 %p2, %r1, 32; @!%p2 bra OTHER;" + INIT + "bra D; OTHER:" + ARRIVE + "D:"
        fault, text = blamed(snippet)
        assert fault is Fault.UNPUBLISHED
        assert "mbarrier.init" in text

    def test_a_barrier_between_publishes_it(self) -> None:
        snippet = ONE + INIT + "bar.sync 0; setp.lt.u32 %p2, %r1, 32; @%p2 bra D;" + ARRIVE + "D:"
        assert told(executed(snippet, 64, 1)) == []
