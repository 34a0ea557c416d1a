"""Computation inside a run: registers, special registers, carries, and instructions without a known meaning."""

from __future__ import annotations

import pytest

from ptxlint.execution.trace import Kind

from .running import PROBE, happened, kernel, run, values

TID = "mov.u32 %r1, %tid.x;\n"


class TestArithmetic:
    """The idioms by which kernels find their stage, parity and role; each form is tested elsewhere."""

    @pytest.mark.parametrize(
        ("snippet", "expected"),
        [
            ("mov.u32 %r9, 7; xor.b32 %r9, %r9, 1;", 6),
            ("mov.u32 %r2, 11; div.u32 %r9, %r2, 4; and.b32 %r9, %r9, 1;", 0),
            ("mov.u32 %r2, 11; rem.u32 %r9, %r2, 4;", 3),
            ("mov.u32 %r2, -1; add.u32 %r9, %r2, 1;", 0),
            ("mov.u32 %r2, 5; setp.eq.u32 %p1, %r2, 5; selp.u32 %r9, 40, 50, %p1;", 40),
            ("mov.u32 %r2, 6; bfe.u32 %r9, %r2, 1, 2;", 3),
            ("mov.u16 %rs1, 9; mul.wide.u16 %r2, %rs1, 7282; shr.u32 %r9, %r2, 16;", 1),
            ("mov.u32 %r2, 1; shl.b32 %r9, %r2, 33;", 0),
            ("mov.u32 %r2, 3; mad.lo.u32 %r9, %r2, 8, 16;", 40),
            ("mov.u32 %r2, 12; not.b32 %r3, %r2; and.b32 %r9, %r3, 1;", 1),
        ],
    )
    def test_of_uniform_values(self, snippet: str, expected: int) -> None:
        assert values(snippet, "%r9", 1) == [expected]

    def test_of_values_that_differ(self) -> None:
        assert values(TID + "mad.lo.u32 %r9, %r1, %r1, 2;", "%r9", 5) == [t * t + 2 for t in range(5)]

    def test_two_results(self) -> None:
        snippet = TID + "setp.lt.u32 %p1|%p2, %r1, 2; selp.u32 %r8, 10, 0, %p1; selp.u32 %r9, 1, 0, %p2;"
        assert values(snippet + "add.u32 %r9, %r8, %r9;", "%r9", 4) == [10, 10, 1, 1]

    def test_a_carry_goes_from_one_instruction_to_the_next(self) -> None:
        snippet = "mov.u32 %r2, -1; add.cc.u32 %r3, %r2, 1; addc.u32 %r9, 0, 0;"
        assert values(snippet, "%r9", 2) == [1, 1]

    def test_a_carry_of_its_own_in_each_thread(self) -> None:
        snippet = TID + "sub.u32 %r2, %r1, 1; add.cc.u32 %r3, %r2, 1; addc.u32 %r9, 0, 0;"
        assert values(snippet, "%r9", 3) == [1, 0, 0]

    def test_halves_of_a_register(self) -> None:
        snippet = "mov.u64 %rd1, 0x0000000200000001; mov.b64 {%r8, %r9}, %rd1;"
        assert values(snippet, "%r9", 1) == [2]
        assert values("mov.u32 %r2, 3; mov.b64 %rd9, {%r2, %r2};", "%rd9", 1) == [3 << 32 | 3]


class TestSpecialRegisters:
    """Special registers of a block of 4 x 3 x 2 in a cluster of 2 x 2."""

    @pytest.mark.parametrize(
        ("register", "expected"),
        [
            ("%tid.x", [0, 1, 2, 3] * 6),
            ("%tid.y", [0] * 4 + [1] * 4 + [2] * 4 + [0] * 4 + [1] * 4 + [2] * 4),
            ("%tid.z", [0] * 12 + [1] * 12),
            ("%ntid.x", [4] * 24),
            ("%ntid.y", [3] * 24),
            ("%ntid.z", [2] * 24),
            ("%laneid", list(range(24))),
            ("%warpid", [0] * 24),
        ],
    )
    def test_threads(self, register: str, expected: list[int]) -> None:
        assert values(f"mov.u32 %r9, {register};", "%r9", (4, 3, 2), cluster=(2, 2, 1)) == expected

    def test_lanes_and_warps_of_a_larger_block(self) -> None:
        assert values("mov.u32 %r9, %laneid;", "%r9", 40) == [*range(32), *range(8)]
        assert values("mov.u32 %r9, %warpid;", "%r9", 40) == [0] * 32 + [1] * 8

    @pytest.mark.parametrize(
        ("register", "by_rank"),
        [
            ("%cluster_ctarank", [0, 1, 2, 3]),
            ("%cluster_ctaid.x", [0, 1, 0, 1]),
            ("%cluster_ctaid.y", [0, 0, 1, 1]),
            ("%cluster_nctaid.x", [2] * 4),
            ("%cluster_nctarank", [4] * 4),
            ("%ctaid.x", [6, 7, 6, 7]),
            ("%ctaid.y", [2, 2, 3, 3]),
            ("%clusterid.x", [3] * 4),
            ("%nctaid.x", [8] * 4),
            ("%nclusterid.x", [4] * 4),
            ("%is_explicit_cluster", [1] * 4),
        ],
    )
    def test_ctas_and_clusters(self, register: str, by_rank: list[int]) -> None:
        snippet = f"mov.u32 %r9, %cluster_ctarank; mov.u32 %r8, {register}; shfl.sync.idx.b32 %r9, %r8, 0, 31, -1;"
        if register == "%is_explicit_cluster":
            snippet = f"mov.pred %p1, {register}; selp.u32 %r9, 1, 0, %p1;"
        found = []
        for rank in range(4):
            guard = f"mov.u32 %r7, %cluster_ctarank; setp.ne.u32 %p7, %r7, {rank}; @%p7 exit;"
            found.append(_of_rank(guard + snippet, rank))
        assert found == by_rank

    @pytest.mark.parametrize(
        ("register", "expected"),
        [
            ("%lanemask_eq", [1 << lane for lane in range(32)]),
            ("%lanemask_lt", [(1 << lane) - 1 for lane in range(32)]),
            ("%lanemask_le", [(2 << lane) - 1 for lane in range(32)]),
            ("%lanemask_gt", [0xFFFFFFFF ^ ((2 << lane) - 1) for lane in range(32)]),
            ("%lanemask_ge", [0xFFFFFFFF ^ ((1 << lane) - 1) for lane in range(32)]),
        ],
    )
    def test_lane_masks(self, register: str, expected: list[int]) -> None:
        assert values(f"mov.u32 %r9, {register};", "%r9") == expected

    def test_a_clock_goes_on(self) -> None:
        snippet = "mov.u32 %r2, %clock; mov.u32 %r3, %clock; setp.lt.u32 %p1, %r2, %r3; selp.u32 %r9, 1, 0, %p1;"
        assert values(snippet, "%r9", 1) == [1]


def _of_rank(snippet: str, rank: int) -> int:
    """What %r9 holds in the only thread of the CTA of this rank, the others having left."""
    machine = run(PROBE.format(snippet=snippet, register="%r9"), 1, (2, 2, 1), position=(3, 1, 0))
    (event,) = happened(machine, Kind.EXPECT)
    assert event.agent is not None
    assert event.agent.rank == rank
    return event.amount


class TestUnknown:
    """Instructions whose meaning is not known."""

    def test_their_results_are_zero_and_they_are_noted(self) -> None:
        snippet = "mov.u32 %r2, 5; mov.u32 %r9, 7; vadd.s32.s32.s32 %r9, %r2, %r2;"
        assert values(snippet, "%r9", 2) == [0, 0]
        found = kernel(".shared .align 8 .b64 bar;" + snippet + "mbarrier.init.shared.b64 [bar], %r9;")
        assert [found.cfg.body[point].opcode for point in found.program.unknown] == ["vadd"]
