"""Happens-before of the tensor cores: groups of wgmma, commits and waits of tcgen05."""

from __future__ import annotations

import pytest

from ptxlint.execution.conflict import Failure

from .test_order import UNFENCED, UNORDERED, found, wait

WGMMA = """
mov.u32 %r3, tile; shr.u32 %r3, %r3, 4; cvt.u64.u32 %rd2, %r3; add.u64 %rd3, %rd2, 32;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd2, %rd3, 1, 1, 1, 0, 0;
"""


class TestWgmma:
    """wgmma reads its descriptors' tiles until its group is waited for."""

    REFILL = "st.shared.b32 [tile], %r1;\n"

    @pytest.mark.parametrize(
        ("between", "expected"),
        [
            ("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bar.sync 0;", set()),
            ("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1; bar.sync 0;", {UNORDERED}),
            ("wgmma.commit_group.sync.aligned; bar.sync 0; wgmma.wait_group.sync.aligned 0;", {UNORDERED}),
            ("wgmma.wait_group.sync.aligned 0; bar.sync 0;", {UNORDERED}),
        ],
    )
    def test_groups(self, between: str, expected: set[Failure]) -> None:
        assert found(WGMMA + between + self.REFILL, 256) == expected

    def test_one_warp_waits_for_its_warpgroup(self) -> None:
        between = "wgmma.commit_group.sync.aligned; bar.sync 0; wgmma.wait_group.sync.aligned 0;"
        assert found(WGMMA + between + self.REFILL, 128) == set()

    @pytest.mark.parametrize(
        ("before", "expected"),
        [("fence.proxy.async.shared::cta; bar.sync 0;", set()), ("bar.sync 0;", {UNFENCED})],
    )
    def test_it_reads_by_the_async_proxy(self, before: str, expected: set[Failure]) -> None:
        after = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
        assert found("st.shared.b32 [tile], %r1;" + before + WGMMA + after, 128) == expected


def product(descriptor: str, columns: str = "0") -> str:
    """A tcgen05.mma of thread 0 into tensor memory: 16 columns from `columns` on."""
    return f"@%p1 tcgen05.mma.cta_group::1.kind::f16 [{columns}], {descriptor}, {descriptor}, %r6, %p8;\n"


COMMIT = "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{}];\n"


class TestTensorCore:
    """tcgen05: commits for products, waits for loads and stores."""

    BEGIN = """
    mov.u32 %r3, tile; shr.u32 %r3, %r3, 4; cvt.u64.u32 %rd2, %r3; add.u64 %rd3, %rd2, 64;
    mov.u32 %r6, 0x40000; mov.pred %p8, 0; mov.u32 %r7, 0;
    """

    def _found(self, snippet: str) -> set[Failure]:
        return found(self.BEGIN + snippet, 128)

    def test_a_commit_covers_every_product_before_it(self) -> None:
        both = product("%rd2") + product("%rd3") + COMMIT.format("bars") + wait()
        assert self._found(both + "st.shared.b32 [tile], %r1;") == set()
        assert self._found(both + "st.shared.b32 [tile+1024], %r1;") == set()

    def test_a_commit_covers_none_after_it(self) -> None:
        first = product("%rd2") + COMMIT.format("bars") + product("%rd3") + COMMIT.format("bars+8")
        other = wait(barrier="bars+8", label="OTHER")
        assert self._found(first + wait() + "st.shared.b32 [tile], %r1;" + other) == set()
        assert self._found(first + wait() + "st.shared.b32 [tile+1024], %r1;" + other) == {UNORDERED}
        assert self._found(first + other + wait() + "st.shared.b32 [tile+1024], %r1;") == set()

    def test_the_second_of_two_commits_covers_both_products(self) -> None:
        two = product("%rd2") + COMMIT.format("bars") + product("%rd3") + COMMIT.format("bars+8")
        other = wait(barrier="bars+8", label="OTHER")
        assert self._found(two + other + "st.shared.b32 [tile], %r1;" + wait()) == set()

    def test_a_commit_by_another_thread_covers_nothing(self) -> None:
        other = COMMIT.format("bars").replace("%p1", "%p6")
        snippet = "setp.eq.u32 %p6, %r1, 32;" + product("%rd2") + other + wait()
        assert self._found(snippet + "st.shared.b32 [tile], %r1;") == {UNORDERED}

    LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r9}, [%r8];\n"
    STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {%r9};\n"
    OWN = "and.b32 %r8, %r1, 96; shl.b32 %r8, %r8, 16;\n"
    AFTER = COMMIT.format("bars") + wait()

    @pytest.mark.parametrize(
        ("access", "between", "expected"),
        [
            (LOAD, "tcgen05.wait::ld.sync.aligned; bar.sync 0;", set()),
            (LOAD, "bar.sync 0; tcgen05.wait::ld.sync.aligned;", {UNORDERED}),
            (LOAD, "tcgen05.wait::st.sync.aligned; bar.sync 0;", {UNORDERED}),
            (LOAD, "tcgen05.wait::ld.sync.aligned;", {UNORDERED}),
            (STORE, "tcgen05.wait::st.sync.aligned; bar.sync 0;", set()),
            (STORE, "bar.sync 0; tcgen05.wait::st.sync.aligned;", {UNORDERED}),
        ],
    )
    def test_loads_and_stores_before_a_product(self, access: str, between: str, expected: set[Failure]) -> None:
        assert self._found(self.OWN + access + between + product("%rd2", "%r7") + self.AFTER) == expected

    def test_other_columns_need_no_order(self) -> None:
        elsewhere = "add.u32 %r8, %r8, 16;"
        assert self._found(self.OWN + elsewhere + self.LOAD + product("%rd2", "%r7") + self.AFTER) == set()
        within = "add.u32 %r8, %r8, 15;"
        assert self._found(self.OWN + within + self.LOAD + product("%rd2", "%r7") + self.AFTER) == {UNORDERED}

    def test_a_load_after_the_commit_is_waited_for(self) -> None:
        done = "tcgen05.wait::ld.sync.aligned;"
        assert self._found(self.OWN + product("%rd2", "%r7") + self.AFTER + self.LOAD + done) == set()
        assert self._found(self.OWN + product("%rd2", "%r7") + self.LOAD + done + self.AFTER) == {UNORDERED}

    def test_loads_and_stores_of_one_warp_are_pipelined(self) -> None:
        assert self._found(self.OWN + self.STORE + self.LOAD + "tcgen05.wait::ld.sync.aligned;") == set()

    def test_freeing_the_columns_ends_their_use(self) -> None:
        free = "setp.lt.u32 %p6, %r1, 32; @%p6 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 32;"
        load = self.OWN + self.LOAD + "tcgen05.wait::ld.sync.aligned;"
        assert self._found(load + "bar.sync 0;" + free) == set()
        assert self._found(load + free + "bar.sync 0;") == {UNORDERED}
