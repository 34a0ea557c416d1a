"""Happens-before: each kind of edge orders two accesses, and nothing orders them where it is missing."""

from __future__ import annotations

import pytest

from ptxlint.execution.conflict import Failure

from .running import failures, initialized

SHARED = ".shared .align 1024 .b8 tile[2048];\n"

ROLES = """
.reg .pred %writes;
setp.lt.u32 %writes, %r1, 32;
"""
"""The first warp writes, the others read."""

WRITE = "@%writes st.shared.b32 [tile], %r1;\n"
READ = "@!%writes ld.shared.b32 %r9, [tile];\n"

UNORDERED, UNFENCED, LATE, LANES = Failure.UNORDERED, Failure.UNFENCED, Failure.FENCED_LATE, Failure.LANES


def wait(parity: int = 0, barrier: str = "bars", form: str = "parity", label: str = "WAIT") -> str:
    """A loop that waits for a phase, in every thread."""
    return f"{label}: mbarrier.try_wait.{form}.shared::cta.b64 %p5, [{barrier}], {parity};\n@!%p5 bra {label};\n"


def found(snippet: str, threads: int = 64, cluster: int = 1, *, first: int = 1, second: int = 1) -> set[Failure]:
    return failures(SHARED + initialized(first, second) + ROLES + snippet, threads, cluster)


class TestCtaBarrier:
    """bar and barrier."""

    def test_nothing_between(self) -> None:
        assert found(f"{WRITE} {READ}") == {UNORDERED}

    def test_sync_orders(self) -> None:
        assert found(f"{WRITE} bar.sync 0; {READ}") == set()

    def test_a_barrier_before_both_orders_nothing(self) -> None:
        assert found(f"bar.sync 0; {WRITE} {READ} bar.sync 0;") == {UNORDERED}

    def test_reads_need_no_order(self) -> None:
        assert found(f"ld.shared.b32 %r8, [tile]; {READ}") == set()

    def test_other_bytes_need_no_order(self) -> None:
        assert found(f"{WRITE} @!%writes ld.shared.b32 %r9, [tile+4];") == set()

    def test_a_write_after_a_read_needs_order(self) -> None:
        assert found("@%writes ld.shared.b32 %r9, [tile]; @!%writes st.shared.b32 [tile], %r1;") == {UNORDERED}

    def test_the_last_byte_of_a_wide_access_counts(self) -> None:
        assert found("@%writes st.shared.b8 [tile+15], %r1; @!%writes ld.shared.v4.b32 {%r6,%r7,%r8,%r9}, [tile];") == {
            UNORDERED
        }

    def test_arrive_then_sync_orders(self) -> None:
        assert found(f"{WRITE} @%writes bar.arrive 1, 64; @!%writes bar.sync 1, 64; {READ}") == set()

    def test_who_only_arrives_learns_nothing(self) -> None:
        assert found(f"{WRITE} @%writes bar.sync 1, 64; @!%writes bar.arrive 1, 64; {READ}") == {UNORDERED}

    def test_what_comes_after_the_arrive_is_not_released(self) -> None:
        snippet = f"@%writes bar.arrive 1, 64; {WRITE} @!%writes bar.sync 1, 64; {READ}"
        assert found(snippet) == {UNORDERED}

    def test_another_barrier_of_other_warps_orders_nothing(self) -> None:
        snippet = f"{WRITE} @%writes bar.sync 1, 32; @!%writes bar.sync 2, 32; {READ}"
        assert found(snippet) == {UNORDERED}

    def test_order_is_handed_on_through_a_third_warp(self) -> None:
        snippet = f"""
        .reg .pred %middle; setp.eq.u32 %middle, %r9, 1;
        {WRITE} @%writes bar.arrive 1, 64;
        @%middle bar.sync 1, 64; @%middle bar.arrive 2, 64;
        .reg .pred %last; setp.eq.u32 %last, %r9, 2;
        @%last bar.sync 2, 64; @%last ld.shared.b32 %r8, [tile];
        """
        assert found("shr.u32 %r9, %r1, 5;" + snippet, 96) == set()

    def test_roles_in_branches_without_order(self) -> None:
        snippet = "@%writes bra W; ld.shared.b32 %r9, [tile]; bra D; W: st.shared.b32 [tile], %r1; D: bar.sync 0;"
        assert found(snippet) == {UNORDERED}


class TestMbarrier:
    """Release by an arrive, acquire by a wait."""

    ARRIVE = "@%writes mbarrier.arrive.shared::cta.b64 _, [bars];\n"
    CLUSTER_ARRIVE = "@%writes mbarrier.arrive.release.cluster.shared::cta.b64 _, [bars];\n"

    def test_arrive_and_wait_order(self) -> None:
        assert found(WRITE + self.ARRIVE + wait() + READ, first=32) == set()

    def test_no_wait(self) -> None:
        assert found(WRITE + self.ARRIVE + READ + wait(), first=32) == {UNORDERED}

    def test_a_write_after_the_arrive(self) -> None:
        assert found(self.ARRIVE + WRITE + wait() + READ, first=32) == {UNORDERED}

    def test_a_relaxed_arrive_hands_nothing_over(self) -> None:
        relaxed = self.ARRIVE.replace(".arrive", ".arrive.relaxed.cta")
        assert found(WRITE + relaxed + wait() + READ, first=32) == {UNORDERED}

    def test_a_relaxed_wait_takes_nothing_over(self) -> None:
        assert found(WRITE + self.ARRIVE + wait(form="parity.relaxed.cta") + READ, first=32) == {UNORDERED}

    def test_cluster_scope_orders_as_well(self) -> None:
        assert found(WRITE + self.CLUSTER_ARRIVE + wait(form="parity.acquire.cluster") + READ, first=32) == set()

    def test_the_free_pass_of_a_fresh_barrier_orders_nothing(self) -> None:
        assert found(WRITE + wait(parity=1) + READ) == {UNORDERED}

    def test_a_wait_on_another_barrier_orders_nothing(self) -> None:
        other = "@%p1 mbarrier.arrive.shared::cta.b64 _, [bars+8];\n"
        other = other.replace("%p1", "%p6")
        snippet = "setp.eq.u32 %p6, %r1, 32;\n" + WRITE + self.ARRIVE + other + wait(barrier="bars+8") + READ
        assert found(snippet, first=32) == {UNORDERED}

    def test_each_phase_hands_over_what_was_written_before_it(self) -> None:
        second = "@%writes st.shared.b32 [tile+4], %r1;\n"
        read = "@!%writes ld.shared.b32 %r9, [tile+4];\n"
        once = WRITE + self.ARRIVE + wait() + second
        assert found(once + read, first=32) == {UNORDERED}
        assert UNORDERED not in found(once + self.ARRIVE + wait(1, label="AGAIN") + read, first=32)


class TestLanes:
    """One lane arrives for its warp."""

    ARRIVE = "@%p1 mbarrier.arrive.shared::cta.b64 _, [bars];\n"

    def test_before_the_warp_has_converged(self) -> None:
        assert found(WRITE + self.ARRIVE + wait() + READ) == {LANES}

    def test_after_a_warp_barrier(self) -> None:
        assert found(WRITE + "bar.warp.sync -1;\n" + self.ARRIVE + wait() + READ) == set()

    def test_after_another_collective_instruction(self) -> None:
        shuffle = "shfl.sync.idx.b32 %r8, %r1, 0, 31, -1;\n"
        assert found(WRITE + shuffle + self.ARRIVE + wait() + READ) == set()

    def test_after_a_barrier_of_the_warps_own(self) -> None:
        assert found(WRITE + "@%writes bar.sync 1, 32;\n" + self.ARRIVE + wait() + READ) == set()

    def test_a_lane_that_wrote_itself(self) -> None:
        assert found("@%p1 st.shared.b32 [tile], %r1;\n" + self.ARRIVE + wait() + READ) == set()


class TestAtomics:
    """Atomic accesses do not race with one another."""

    def test_atomics_with_each_other(self) -> None:
        assert found("atom.shared.add.u32 %r9, [tile], 1; bar.warp.sync -1;") == set()
        assert found("@%writes atom.shared.add.u32 %r9, [tile], 1; @!%writes red.shared.add.u32 [tile], 1;") == set()

    def test_an_atomic_with_a_plain_read(self) -> None:
        assert found(f"@%writes atom.shared.add.u32 %r8, [tile], 1; {READ}") == {UNORDERED}


class TestBulkLoads:
    """A copy into shared memory is over when its phase is."""

    COPY = """
    ld.param.u64 %rd1, [source];
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;
    @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bars];
    """

    def test_a_wait_on_its_barrier(self) -> None:
        assert found(self.COPY + wait() + READ) == set()

    def test_no_wait(self) -> None:
        assert found(self.COPY + READ + wait()) == {UNORDERED}

    def test_a_cta_barrier_is_no_wait(self) -> None:
        assert found(self.COPY + "bar.sync 0;" + READ + wait()) == {UNORDERED}

    def test_a_relaxed_wait_sees_the_copy(self) -> None:
        assert found(self.COPY + wait(form="parity.relaxed.cta") + READ) == set()

    def test_one_thread_waits_and_meets_the_others(self) -> None:
        one = "@!%p1 bra MEET;\n" + wait() + "MEET: bar.sync 0;\n"
        assert found(self.COPY + one + READ) == set()

    def test_bytes_beyond_the_copy(self) -> None:
        assert found(self.COPY + "@!%writes ld.shared.b32 %r9, [tile+64];" + wait()) == set()
        assert found(self.COPY + "@!%writes ld.shared.b32 %r9, [tile+60];" + wait()) == {UNORDERED}

    def test_a_refill_before_the_readers_are_through(self) -> None:
        again = self.COPY.replace("ld.param.u64 %rd1, [source];", "")
        assert UNORDERED in found(self.COPY + wait() + READ + again + wait(1, label="AGAIN"))
        assert found(self.COPY + wait() + READ + "bar.sync 0;" + again + wait(1, label="AGAIN")) == set()


class TestAsyncCopies:
    """cp.async: groups of a thread, and the arrive that waits for them."""

    COPY = "ld.param.u64 %rd1, [source];\n@%writes cp.async.ca.shared.global [tile], [%rd1], 4;\n"
    COMMIT = "cp.async.commit_group;\n"

    @pytest.mark.parametrize(
        ("between", "expected"),
        [
            ("cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;", set()),
            ("cp.async.commit_group; cp.async.wait_group 0;", {UNORDERED}),
            ("cp.async.commit_group; bar.sync 0;", {UNORDERED}),
            ("cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;", {UNORDERED}),
            ("cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;", set()),
            ("cp.async.wait_group 0; bar.sync 0;", {UNORDERED}),
            ("cp.async.wait_all; bar.sync 0;", set()),
            ("cp.async.commit_group; bar.sync 0; cp.async.wait_group 0;", {UNORDERED}),
            ("cp.async.commit_group; @!%writes cp.async.wait_group 0; bar.sync 0;", {UNORDERED}),
        ],
    )
    def test_groups(self, between: str, expected: set[Failure]) -> None:
        assert found(self.COPY + between + READ) == expected

    def test_a_wait_leaves_the_newest_groups_pending(self) -> None:
        second = "@%writes cp.async.ca.shared.global [tile+64], [%rd1], 4;\n" + self.COMMIT
        both = self.COPY + self.COMMIT + second + "cp.async.wait_group 1; bar.sync 0;"
        assert found(both + READ) == set()
        assert found(both + READ.replace("[tile]", "[tile+64]")) == {UNORDERED}

    def test_own_copies_need_no_barrier(self) -> None:
        own = "@%writes ld.shared.b32 %r9, [tile];"
        assert found(self.COPY + self.COMMIT + "cp.async.wait_group 0;" + own) == set()
        assert found(self.COPY + self.COMMIT + own) == {UNORDERED}

    @pytest.mark.parametrize(("form", "count"), [(".noinc", 32), ("", 1)])
    def test_an_mbarrier_that_waits_for_the_copies(self, form: str, count: int) -> None:
        arrive = f"@%writes cp.async.mbarrier.arrive{form}.shared::cta.b64 [bars];\n"
        own = "" if form else "@%p1 mbarrier.arrive.shared::cta.b64 _, [bars];\n"
        assert found(self.COPY + arrive + own + wait() + READ, first=count) == set()

    def test_a_copy_after_the_arrive_is_not_covered(self) -> None:
        arrive = "@%writes cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bars];\n"
        assert found(arrive + self.COPY + wait() + READ, first=32) == {UNORDERED}


class TestBulkStores:
    """A store out of shared memory reads it until its group is waited for."""

    FILL = "st.shared.b32 [tile], %r1; fence.proxy.async.shared::cta; bar.sync 0;\n"
    STORE = "ld.param.u64 %rd1, [out];\n@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 64;\n"
    REFILL = "@!%p1 st.shared.b32 [tile], %r1;\n"

    @pytest.mark.parametrize(
        ("between", "expected"),
        [
            ("@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 0; bar.sync 0;", set()),
            ("@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0; bar.sync 0;", set()),
            ("@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 1; bar.sync 0;", {UNORDERED}),
            ("@%p1 cp.async.bulk.commit_group; bar.sync 0;", {UNORDERED}),
            ("@%p1 cp.async.bulk.wait_group.read 0; bar.sync 0;", {UNORDERED}),
            ("@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 0;", {UNORDERED}),
        ],
    )
    def test_groups(self, between: str, expected: set[Failure]) -> None:
        assert found(self.FILL + self.STORE + between + self.REFILL) == expected

    def test_a_wait_by_a_warp_that_committed_nothing(self) -> None:
        other = "@%p1 cp.async.bulk.commit_group; @!%writes cp.async.bulk.wait_group.read 0; bar.sync 0;"
        assert found(self.FILL + self.STORE + other + self.REFILL) == {UNORDERED}

    def test_a_wait_by_a_lane_that_committed_nothing(self) -> None:
        lane = "setp.eq.u32 %p6, %r1, 1; @%p1 cp.async.bulk.commit_group; @%p6 cp.async.bulk.wait_group.read 0;"
        assert found(self.FILL + self.STORE + lane + "bar.sync 0;" + self.REFILL) == {UNORDERED}


class TestProxyFence:
    """Generic writes that the async proxy reads."""

    STORE = """
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 64;
    @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group 0;
    """

    @pytest.mark.parametrize(
        ("before", "expected"),
        [
            ("st.shared.b32 [tile], %r1; fence.proxy.async.shared::cta; bar.sync 0;", set()),
            ("st.shared.b32 [tile], %r1; fence.proxy.async; bar.sync 0;", set()),
            ("st.shared.b32 [tile], %r1; fence.proxy.async.shared::cluster; bar.sync 0;", set()),
            ("st.shared.b32 [tile], %r1; bar.sync 0;", {UNFENCED}),
            ("st.shared.b32 [tile], %r1; fence.proxy.async.global; bar.sync 0;", {UNFENCED}),
            ("fence.proxy.async.shared::cta; st.shared.b32 [tile], %r1; bar.sync 0;", {UNFENCED}),
            ("st.shared.b32 [tile], %r1; bar.sync 0; fence.proxy.async.shared::cta;", {LATE}),
            ("@%p1 st.shared.b32 [tile], %r1; @%p1 fence.proxy.async.shared::cta;", set()),
            ("@%p1 st.shared.b32 [tile], %r1;", {UNFENCED}),
            ("@!%writes st.shared.b32 [tile], %r1; @%writes fence.proxy.async.shared::cta; bar.sync 0;", {UNFENCED}),
        ],
    )
    def test_fences(self, before: str, expected: set[Failure]) -> None:
        assert found("ld.param.u64 %rd1, [out];" + before + self.STORE) == expected

    def test_a_fence_that_a_loop_of_no_trips_skips(self) -> None:
        snippet = """
        ld.param.u64 %rd1, [out]; ld.param.u32 %r5, [n]; mov.u32 %r6, 0;
        st.shared.b32 [tile], %r1;
        TEST: setp.ge.u32 %p7, %r6, %r5; @%p7 bra DONE;
        fence.proxy.async.shared::cta; add.u32 %r6, %r6, 1; bra TEST;
        DONE: bar.sync 0;
        """
        assert found(snippet + self.STORE) == {UNFENCED}

    def test_copied_bytes_need_no_fence(self) -> None:
        load = TestBulkLoads.COPY + wait() + "bar.sync 0; ld.param.u64 %rd1, [out];"
        assert found(load + self.STORE) == set()

    def test_cp_async_writes_by_the_generic_proxy(self) -> None:
        copy = "ld.param.u64 %rd1, [out]; cp.async.ca.shared.global [tile], [%rd1], 4; cp.async.wait_all;"
        assert found(copy + "bar.sync 0;" + self.STORE) == {UNFENCED}
        assert found(copy + "fence.proxy.async.shared::cta; bar.sync 0;" + self.STORE) == set()


class TestCluster:
    """Shared memory of another CTA."""

    BEGIN = """
    mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p6, %r2, 0;
    mov.u32 %r3, tile; mapa.shared::cluster.u32 %r4, %r3, 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p6 st.shared::cluster.b32 [%r4], %r1;
    """
    END = "@!%p6 ld.shared.b32 %r9, [tile]; barrier.cluster.arrive; barrier.cluster.wait;"

    def test_a_cluster_barrier_orders(self) -> None:
        assert found(self.BEGIN + "barrier.cluster.arrive; barrier.cluster.wait;" + self.END, 32, 2) == set()

    def test_a_relaxed_arrive_does_not(self) -> None:
        snippet = self.BEGIN + "barrier.cluster.arrive.relaxed; barrier.cluster.wait;" + self.END
        assert found(snippet, 32, 2) == {UNORDERED}

    def test_the_same_place_of_another_cta_is_other_memory(self) -> None:
        own = self.END.replace("@!%p6", "@%p6")
        snippet = self.BEGIN + "barrier.cluster.arrive.relaxed; barrier.cluster.wait;" + own
        assert found(snippet, 32, 2) == set()


class TestBetweenCtas:
    """Copies and stores into another CTA that complete on its mbarrier."""

    BEGIN = """
    mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p6, %r2, 0;
    mapa.shared::cluster.u32 %r4, tile, 1; mapa.shared::cluster.u32 %r5, bars, 1;
    {before}
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p6 bra SEND;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], {size};
    {receive}
    bra DONE;
    SEND: {send}
    DONE: barrier.cluster.arrive; barrier.cluster.wait;
    """
    WAIT = wait(form="parity.acquire.cluster")
    READ = "ld.shared.b32 %r9, [tile];\n"
    STORE = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %r1, [%r5];\n"
    COPY = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], [tile+256], 64, [%r5];\n"

    def _found(self, send: str, receive: str, size: int, before: str = "") -> set[Failure]:
        return found(self.BEGIN.format(send=send, receive=receive, size=size, before=before), 1, 2)

    def test_a_store_that_is_waited_for(self) -> None:
        assert self._found(self.STORE, self.WAIT + self.READ, 4) == set()

    def test_a_store_that_is_not(self) -> None:
        assert self._found(self.STORE, self.READ + self.WAIT, 4) == {UNORDERED}

    def test_a_store_brings_nothing_but_its_own_bytes(self) -> None:
        generic = "st.shared::cluster.b32 [%r4+64], %r1;\n"
        assert self._found(generic + self.STORE, self.WAIT + "ld.shared.b32 %r9, [tile+64];", 4) == {UNORDERED}

    def test_a_copy(self) -> None:
        assert self._found(self.COPY, self.WAIT + self.READ, 64) == set()
        assert self._found(self.COPY, self.READ + self.WAIT, 64) == {UNORDERED}

    FILL = "st.shared.b32 [tile+256], %r1;\n"

    def test_the_source_of_a_copy_is_fenced(self) -> None:
        assert self._found(self.COPY, self.WAIT, 64, self.FILL + "fence.proxy.async.shared::cta;") == set()

    def test_the_source_of_a_copy_needs_a_fence(self) -> None:
        assert self._found(self.COPY, self.WAIT, 64, self.FILL) == {UNFENCED}

    def test_the_source_of_a_copy_is_not_refilled(self) -> None:
        assert self._found(self.COPY + self.FILL, self.WAIT, 64) == {UNORDERED}
