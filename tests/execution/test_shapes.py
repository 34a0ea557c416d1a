"""Launch shapes that are tried when nobody states one."""

from __future__ import annotations

import pytest

from ptxlint.execution.shapes import MOST_THREADS, Shapes
from ptxlint.launch import Dimensions, Launch

from .running import executed, kernel

TID = "mov.u32 %r1, %tid.x;\n"


def shapes(snippet: str, launch: Launch | None = None) -> list[tuple[Dimensions, Dimensions]]:
    found = kernel(snippet)
    return list(Shapes(found.cfg, found.slice, launch or Launch()))


def least(snippet: str) -> int:
    """The smallest block that is tried."""
    return min(block[0] for block, _ in shapes(TID + snippet))


class TestBlocks:
    """Comparisons of the thread or warp index that a block would make idle."""

    @pytest.mark.parametrize(
        ("condition", "threads"),
        [
            ("setp.lt.u32 %p1, %r1, 160; @%p1 bar.sync 1, 64;", 192),
            ("setp.eq.u32 %p1, %r1, 160; @%p1 bar.arrive 1, 64;", 192),
            ("setp.ge.u32 %p1, %r1, 256; @%p1 bar.sync 1, 64;", 288),
            ("setp.gt.u32 %p1, %r1, 31; @%p1 bar.sync 1, 64;", 64),
            ("setp.le.u32 %p1, %r1, 30; @%p1 bar.sync 1, 64;", 32),
            ("shr.u32 %r2, %r1, 5; setp.gt.u32 %p1, %r2, 3; @%p1 bar.sync 1, 64;", 160),
            ("shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 4; @%p1 bar.sync 1, 64;", 160),
            ("shr.u32 %r2, %r1, 5; setp.lt.u32 %p1, %r2, 4; @%p1 bar.sync 1, 64;", 160),
            ("shr.u32 %r2, %r1, 7; setp.eq.u32 %p1, %r2, 2; @%p1 bar.sync 1, 64;", 384),
            ("shr.u32 %r2, %r1, 5; shfl.sync.idx.b32 %r3, %r2, 0, 31, -1; setp.eq.u32 %p1, %r3, 6; @%p1 bar.sync 1;",
             224),
        ],
    )  # fmt: skip
    def test_each_role_has_threads(self, condition: str, threads: int) -> None:
        assert least(condition) == threads

    def test_without_comparisons_any_number_of_warps(self) -> None:
        assert least("bar.sync 0;") == 32

    def test_a_comparison_outside_the_slice_says_nothing(self) -> None:
        snippet = ".shared .align 4 .b32 x; setp.lt.u32 %p1, %r1, 500; @%p1 st.shared.b32 [x], %r1; bar.sync 0;"
        assert least(snippet) == 32

    def test_no_block_is_larger_than_hardware_allows(self) -> None:
        assert all(block[0] <= MOST_THREADS for block, _ in shapes(TID + "bar.sync 0;"))
        assert least("setp.lt.u32 %p1, %r1, 5000; @%p1 bar.sync 0;") == 32

    def test_the_likeliest_comes_first_and_none_twice(self) -> None:
        blocks = [block for block, _ in shapes(TID + "bar.sync 0;")]
        assert blocks[0] == (128, 1, 1)
        assert len(blocks) == len(set(blocks))

    def test_a_block_in_which_a_role_is_idle_hides_nothing(self) -> None:
        """In a block of 64 threads `tid < 64` would hold throughout, and the barrier would be no role's own."""
        execution = executed(TID + "setp.lt.u32 %p1, %r1, 64; @%p1 bar.sync 1, 96;")
        assert execution.defects

    def test_rows_of_a_warp_come_first_where_only_the_product_is_known(self) -> None:
        text = ".version 8.8 .target sm_90a .address_size 64 .entry k() .maxntid 256 { .reg .b32 %r1; "
        rows = kernel(f"{text} mov.u32 %r1, %tid.y; bar.sync 0; ret; }}")
        line = kernel(f"{text} mov.u32 %r1, %tid.x; bar.sync 0; ret; }}")
        assert [block for block, _ in Shapes(rows.cfg, rows.slice, Launch())] == [(32, 8, 1), (256, 1, 1)]
        assert [block for block, _ in Shapes(line.cfg, line.slice, Launch())] == [(256, 1, 1)]


class TestClusters:
    """Clusters are tried where what a kernel does depends on them."""

    def test_a_kernel_without_a_cluster(self) -> None:
        assert {cluster for _, cluster in shapes("bar.sync 0;")} == {(1, 1, 1)}

    @pytest.mark.parametrize(
        "snippet",
        [
            "barrier.cluster.arrive; barrier.cluster.wait;",
            "mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 0; @%p1 bar.sync 0;",
            ".shared .align 8 .b64 bar; mapa.shared::cluster.u32 %r2, bar, 0;"
            "mbarrier.arrive.shared::cluster.b64 _, [%r2];",
        ],
    )
    def test_a_kernel_with_one(self, snippet: str) -> None:
        clusters = [cluster for _, cluster in shapes(snippet)]
        assert clusters[0] == (1, 1, 1)
        assert {(2, 1, 1), (4, 1, 1), (2, 2, 1)} <= set(clusters)


class TestStated:
    """What is stated is not searched."""

    def test_a_block_and_a_cluster(self) -> None:
        launch = Launch((96, 2, 1), (2, 1, 1))
        assert shapes("barrier.cluster.arrive; barrier.cluster.wait;", launch) == [((96, 2, 1), (2, 1, 1))]

    def test_only_a_block(self) -> None:
        found = shapes("barrier.cluster.arrive; barrier.cluster.wait;", Launch((96, 1, 1)))
        assert {block for block, _ in found} == {(96, 1, 1)}
        assert len(found) > 1
