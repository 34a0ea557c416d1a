"""Happens-before by fences: memory fences around relaxed operations, tcgen05 fences, initializations, tensor maps.

What is expected follows from the ISA: *Release and Acquire Patterns*, *membar/fence*, *Canonical synchronization
patterns* of tcgen05, *tensormap.cp_fenceproxy*.
"""

from __future__ import annotations

import pytest

from ptxlint.execution.conflict import Failure

from .running import executed, failures, initialized
from .test_order import READ, ROLES, SHARED, UNORDERED, WRITE, found, wait
from .test_order_engines import COMMIT, TestTensorCore, product

NOT_SENT, NOT_TAKEN, OVERWRITTEN = Failure.NOT_SENT, Failure.NOT_TAKEN, Failure.OVERWRITTEN
UNRELEASED, UNACQUIRED, UNPUBLISHED = Failure.UNRELEASED, Failure.UNACQUIRED, Failure.UNPUBLISHED

BEFORE = "tcgen05.fence::before_thread_sync;\n"
AFTER = "tcgen05.fence::after_thread_sync;\n"


def doubts(snippet: str, threads: int = 128) -> set[Failure]:
    """What is missing by a contested reading, in a kernel that lacks nothing else."""
    execution = executed(SHARED + initialized() + ROLES + snippet, threads, 1)
    assert not execution.defects
    assert execution.not_analysed is None
    assert {conflict.failure for conflict in execution.conflicts} == set()
    return {conflict.failure for conflict in execution.contested}


class TestMemoryFences:
    """A fence and then a relaxed arrive are a release pattern, a relaxed wait and then a fence an acquire pattern."""

    ARRIVE = "@%writes mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bars];\n"
    RELEASED = "@%writes mbarrier.arrive.shared::cta.b64 _, [bars];\n"
    RELAXED_WAIT = wait(form="parity.relaxed.cta")

    @pytest.mark.parametrize("fence", ["fence.acq_rel.cta", "fence.sc.cta", "membar.cta", "fence.release.cta"])
    def test_a_release_pattern(self, fence: str) -> None:
        assert found(f"{WRITE}{fence};\n{self.ARRIVE}{wait()}{READ}", first=32) == set()

    def test_a_fence_that_only_acquires_releases_nothing(self) -> None:
        assert found(f"{WRITE}fence.acquire.cta;\n{self.ARRIVE}{wait()}{READ}", first=32) == {UNORDERED}

    def test_writes_after_the_fence_are_not_released(self) -> None:
        assert found(f"fence.acq_rel.cta;\n{WRITE}{self.ARRIVE}{wait()}{READ}", first=32) == {UNORDERED}

    @pytest.mark.parametrize("fence", ["fence.acq_rel.cta", "fence.acquire.cta"])
    def test_an_acquire_pattern(self, fence: str) -> None:
        assert found(f"{WRITE}{self.RELEASED}{self.RELAXED_WAIT}{fence};\n{READ}", first=32) == set()

    def test_a_fence_before_the_wait_acquires_nothing(self) -> None:
        snippet = f"{WRITE}{self.RELEASED}fence.acq_rel.cta;\n{self.RELAXED_WAIT}{READ}"
        assert found(snippet, first=32) == {UNORDERED}

    def test_a_relaxed_arrival_of_the_cluster_after_a_fence(self) -> None:
        snippet = "{}fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n{}"
        assert found(snippet.format(WRITE, READ)) == set()
        assert found(snippet.format(WRITE, READ).replace("fence.acq_rel.cluster;", "")) == {UNORDERED}


class TestTensorMemoryFences:
    """Who hands tensor memory on fences before the release, who takes it over after the acquire."""

    BEGIN = TestTensorCore.BEGIN + TestTensorCore.OWN
    LOAD = TestTensorCore.LOAD + "tcgen05.wait::ld.sync.aligned;\n"
    STORE = TestTensorCore.STORE + "tcgen05.wait::st.sync.aligned;\n"
    PRODUCT = product("%rd2", "%r7")
    DONE = COMMIT.format("bars") + wait()

    def _doubts(self, snippet: str) -> set[Failure]:
        return doubts(self.BEGIN + snippet)

    @pytest.mark.parametrize("access", [LOAD, STORE])
    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            (BEFORE, AFTER, set()),
            ("", AFTER, {NOT_SENT}),
            (BEFORE, "", {NOT_TAKEN}),
            ("", "", set()),
            ("", BEFORE + AFTER, {NOT_SENT}),
            (AFTER + BEFORE, "", {NOT_TAKEN}),
        ],
    )
    def test_from_all_warps_to_one_thread(self, access: str, before: str, after: str, expected: set[Failure]) -> None:
        snippet = access + before + "bar.sync 0;\n" + after + self.PRODUCT + self.DONE
        assert self._doubts(snippet) == expected

    def test_the_first_fence_may_come_before_the_wait_for_the_loads(self) -> None:
        load, done = self.LOAD.splitlines()
        snippet = f"{load}\n{BEFORE}{done}\nbar.sync 0;\n{AFTER}{self.PRODUCT}{self.DONE}"
        assert self._doubts(snippet) == set()
        late = f"{BEFORE}{load}\n{done}\nbar.sync 0;\n{AFTER}{self.PRODUCT}{self.DONE}"
        assert self._doubts(late) == {NOT_SENT}

    def test_a_commit_contains_the_first_fence(self) -> None:
        assert self._doubts(self.PRODUCT + self.DONE + AFTER + self.LOAD) == set()

    def test_the_waiter_for_a_product_needs_the_second(self) -> None:
        assert self._doubts(self.PRODUCT + self.DONE + self.LOAD + BEFORE) == {NOT_TAKEN}
        assert self._doubts(self.PRODUCT + AFTER + self.DONE + self.LOAD) == {NOT_TAKEN}

    def test_the_thread_that_made_the_product_needs_it_as_well(self) -> None:
        own = "setp.lt.u32 %p6, %r1, 32; @!%p6 bra OUT;\n"
        done = COMMIT.format("bars") + wait()
        assert self._doubts(own + self.PRODUCT + done + self.LOAD + "OUT: " + BEFORE) == {NOT_TAKEN}
        assert self._doubts(own + self.PRODUCT + done + AFTER + self.LOAD + "OUT: bar.sync 0;") == set()

    def test_a_warp_needs_no_fence_for_what_it_has_waited_for_itself(self) -> None:
        own = "setp.lt.u32 %p6, %r1, 32; @!%p6 bra OUT;\n"
        assert self._doubts(own + self.LOAD + self.PRODUCT + self.DONE + "OUT: " + BEFORE) == set()

    def test_the_fences_hold_through_a_third_warp(self) -> None:
        """The composed pattern: the one who passes it on need not touch tensor memory."""
        snippet = self.STORE + BEFORE + "bar.sync 0;\nbar.sync 1, 128;\n" + AFTER + self.PRODUCT + self.DONE
        assert self._doubts(snippet) == set()

    def test_the_second_fence_is_not_handed_on(self) -> None:
        snippet = """
        {begin} {store} {before}
        setp.ge.u32 %p6, %r1, 32; @%p6 bra OTHERS;
        bar.sync 1, 128; {first} bar.sync 2, 128; {second} {use} bra OUT;
        OTHERS: bar.sync 1, 128; {after} bar.sync 2, 128;
        OUT: {wait}
        """
        parts = {"begin": self.BEGIN, "store": self.STORE, "before": BEFORE, "after": AFTER, "wait": wait()}
        use = self.PRODUCT + COMMIT.format("bars")
        assert doubts(snippet.format(first="", second="", use=use, **parts)) == {NOT_TAKEN}
        assert doubts(snippet.format(first="", second=AFTER, use=use, **parts)) == set()
        assert doubts(snippet.format(first=AFTER, second="", use=use, **parts)) == set()

    @pytest.mark.parametrize(
        ("before", "after", "expected"), [(BEFORE, AFTER, set()), ("", AFTER, {UNORDERED}), (BEFORE, "", {UNORDERED})]
    )
    @pytest.mark.parametrize("first", ["copy", "product"])
    def test_a_pipeline_of_two_threads(self, first: str, before: str, after: str, expected: set[Failure]) -> None:
        other = "setp.eq.u32 %p6, %r1, 32;\n"
        begun = "@%p1 tcgen05.cp.cta_group::1.128x256b [%r7], %rd2;\n" if first == "copy" else self.PRODUCT
        use = (self.PRODUCT + COMMIT.format("bars")).replace("@%p1", "@%p6") + wait()
        ended = COMMIT.format("bars+8") + wait(barrier="bars+8", label="ENDED")
        snippet = self.BEGIN + other + begun + before + "bar.sync 0;\n" + after + use + ended
        assert found(snippet, 128) == expected

    def test_a_pipeline_covers_nothing_after_the_fence(self) -> None:
        other = "setp.eq.u32 %p6, %r1, 32;\n"
        use = (self.PRODUCT + COMMIT.format("bars")).replace("@%p1", "@%p6") + wait()
        ended = COMMIT.format("bars+8") + wait(barrier="bars+8", label="ENDED")
        snippet = self.BEGIN + other + BEFORE + self.PRODUCT + "bar.sync 0;\n" + AFTER + use + ended
        assert found(snippet, 128) == {UNORDERED}

    def test_freeing_needs_none(self) -> None:
        free = "setp.lt.u32 %p6, %r1, 32; @%p6 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 32;"
        assert self._doubts(AFTER + self.LOAD + "bar.sync 0;" + free) == set()


class TestWritesAfterReads:
    """A generic read, then an async write of the same bytes: contested."""

    COPY = """
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;
    @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bars];
    """

    @pytest.mark.parametrize(
        ("between", "expected"),
        [
            ("fence.proxy.async.shared::cta; bar.sync 0;", set()),
            ("bar.sync 0; fence.proxy.async.shared::cta;", set()),
            ("bar.sync 0;", {OVERWRITTEN}),
            ("fence.proxy.async.global; bar.sync 0;", {OVERWRITTEN}),
        ],
    )
    def test_a_refill(self, between: str, expected: set[Failure]) -> None:
        begin = "ld.param.u64 %rd1, [source];\nld.shared.b32 %r9, [tile];\n"
        assert doubts(begin + between + self.COPY + wait(), 64) == expected

    def test_it_takes_the_place_of_no_other_conflict(self) -> None:
        begin = "ld.param.u64 %rd1, [source];\nld.shared.b32 %r9, [tile];\nld.shared.b32 %r8, [tile+64];\nbar.sync 0;\n"
        race = "@!%writes st.shared.b32 [tile+64], %r1;\n@%writes st.shared.b32 [tile+64], %r5;\n"
        execution = executed(SHARED + initialized() + ROLES + begin + race + self.COPY + wait(), 64, 1)
        assert {conflict.failure for conflict in execution.conflicts} == {UNORDERED}
        assert {conflict.failure for conflict in execution.contested} == {OVERWRITTEN}


class TestInitialization:
    """Who uses an mbarrier has to be ordered after its initialization; a relaxed arrival alone orders nothing."""

    KERNEL = """
    .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
    mbarrier.init.shared.b64 [full], 1;
    {fence}
    READY: {local}
    barrier.cluster.arrive{semantics}; barrier.cluster.wait;
    mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1;
    mapa.shared::cluster.u32 %r3, full, %r2;
    @!%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];
    barrier.cluster.arrive; barrier.cluster.wait;
    """

    @pytest.mark.parametrize(
        ("fence", "semantics", "expected"),
        [
            ("fence.mbarrier_init.release.cluster;", ".relaxed", set()),
            ("fence.acq_rel.cluster;", ".relaxed", set()),
            ("fence.release.sync_restrict::shared::cta.cluster;", ".relaxed", set()),
            ("", "", set()),
            ("", ".release", set()),
            ("", ".relaxed", {UNPUBLISHED}),
            ("fence.acquire.sync_restrict::shared::cluster.cluster;", ".relaxed", {UNPUBLISHED}),
        ],
    )
    def test_use_by_another_cta(self, fence: str, semantics: str, expected: set[Failure]) -> None:
        assert failures(self.KERNEL.format(fence=fence, local="", semantics=semantics), 64, 2) == expected

    def test_a_barrier_of_the_cta_publishes_nothing_to_the_other_cta(self) -> None:
        snippet = self.KERNEL.format(fence="", local="bar.sync 0;", semantics=".relaxed")
        assert failures(snippet, 64, 2) == {UNPUBLISHED}

    def test_a_fence_before_the_initialization(self) -> None:
        early = self.KERNEL.replace("mbarrier.init", "fence.mbarrier_init.release.cluster; mbarrier.init", 1)
        assert failures(early.format(fence="", local="", semantics=".relaxed"), 64, 2) == {UNPUBLISHED}

    def test_a_fence_by_another_thread(self) -> None:
        other = "setp.eq.u32 %p2, %r1, 32; @%p2 fence.mbarrier_init.release.cluster;"
        assert failures(self.KERNEL.format(fence="", local=other, semantics=".relaxed"), 64, 2) == {UNPUBLISHED}


class TestTensorMaps:
    """A change of a tensor map: release, synchronization, acquire, use; and no change while a copy uses it."""

    BEGIN = """
    ld.param.u64 %rd1, [maps]; ld.param.u64 %rd2, [source]; mov.u32 %r7, 0; mov.u32 %r8, 0;
    setp.eq.u32 %p6, %r1, 32;
    """
    CHANGE = "@%p1 tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;\n"
    STORE = "@%p1 st.global.b64 [%rd1+16], %rd2;\n"
    RELEASE = "@%p1 fence.proxy.tensormap::generic.release.gpu;\n"
    ACQUIRE = "@{} fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;\n"
    USE = """
    @{0} mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;
    @{0} cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1, {{%r7}}], [bars];
    """

    def _found(self, snippet: str) -> set[Failure]:
        return found(self.BEGIN + snippet)

    @pytest.mark.parametrize("change", [CHANGE, STORE])
    @pytest.mark.parametrize(
        ("release", "meet", "acquire", "user", "expected"),
        [
            (RELEASE, "", ACQUIRE.format("%p1"), "%p1", set()),
            (RELEASE, "bar.sync 0;", ACQUIRE.format("%p6"), "%p6", set()),
            (RELEASE + ACQUIRE.format("%p1"), "bar.sync 0;", "", "%p6", set()),
            ("", "", ACQUIRE.format("%p1"), "%p1", {UNRELEASED}),
            (RELEASE, "", "", "%p1", {UNACQUIRED}),
            (ACQUIRE.format("%p1") + RELEASE, "", "", "%p1", {UNACQUIRED}),
            (RELEASE, "", ACQUIRE.format("%p1").replace("[%rd1]", "[%rd2]"), "%p1", {UNACQUIRED}),
            (RELEASE, "", ACQUIRE.format("%p6"), "%p6", {UNORDERED}),
        ],
    )
    def test_fences(
        self, change: str, release: str, meet: str, acquire: str, user: str, expected: set[Failure]
    ) -> None:
        assert self._found(change + release + meet + acquire + self.USE.format(user) + wait()) == expected

    def test_neither_fence(self) -> None:
        assert self._found(self.CHANGE + self.USE.format("%p1") + wait()) == {UNRELEASED}

    def test_what_is_released_before_the_change(self) -> None:
        snippet = self.RELEASE + self.CHANGE + self.ACQUIRE.format("%p1") + self.USE.format("%p1") + wait()
        assert self._found(snippet) == {UNRELEASED}

    def test_a_copy_that_contains_the_release(self) -> None:
        copy = """
        setp.ge.u32 %p7, %r1, 32; @%p7 bra COPIED;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [tile+1024], 128;
        COPIED:
        """
        use = self.USE.format("%p1") + wait()
        assert self._found(copy + self.ACQUIRE.format("%p1") + use) == set()
        assert self._found(copy + use) == {UNACQUIRED}

    @pytest.mark.parametrize(
        ("after", "expected"),
        [
            (wait(), set()),
            ("@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 0;" + wait(), set()),
            ("", {UNORDERED}),
            ("@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 1;", {UNORDERED}),
        ],
    )
    def test_a_change_after_a_use(self, after: str, expected: set[Failure]) -> None:
        begin = "@%p1 fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;\n" + self.USE.format("%p1")
        last = wait(label="LAST") if "WAIT" not in after else ""
        assert self._found(begin + after + self.CHANGE + last) == expected

    def test_maps_of_ctas_by_their_sm(self) -> None:
        own = "mov.u32 %r9, %smid; mul.wide.u32 %rd4, %r9, 128; add.u64 %rd1, %rd1, %rd4;\n"
        fences = self.RELEASE + self.ACQUIRE.format("%p1")
        snippet = own + self.CHANGE + fences + self.USE.format("%p1") + wait()
        assert found(self.BEGIN + snippet, 64, 2) == set()
        assert found(self.BEGIN + snippet.replace(own, ""), 64, 2) == {UNORDERED}

    def test_other_memory_is_no_tensor_map(self) -> None:
        elsewhere = self.STORE.replace("[%rd1+16]", "[%rd2+16]")
        assert self._found(elsewhere + self.ACQUIRE.format("%p1") + self.USE.format("%p1") + wait()) == set()

    def test_kernels_that_have_nothing_for_tensor_maps_are_not_looked_at(self) -> None:
        assert self._found(self.STORE + self.USE.format("%p1") + wait()) == set()
