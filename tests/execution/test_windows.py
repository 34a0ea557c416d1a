"""Windows of the address space: generic, shared::cta, shared::cluster and mapa addresses name one object."""

from __future__ import annotations

import pytest

from ptxlint.execution.trace import Kind

from .running import PROBE, happened, run, values

ARRIVED = 1024
"""The first shared variable of CTA 0; other CTAs have their rank above bit 24."""

BEGIN = """
.shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, %cluster_ctarank;
@%p1 mbarrier.init.shared.b64 [bar], 100;
barrier.cluster.arrive; barrier.cluster.wait;
mov.u32 %r3, bar; cvt.u64.u32 %rd3, %r3; cvta.shared.u64 %rd4, %rd3;
setp.eq.u32 %p2, %r2, 1;
"""
END = "barrier.cluster.arrive; barrier.cluster.wait;\n"


def target(snippet: str) -> list[int]:
    """Where the arrivals of a cluster of two CTAs with one thread each go."""
    machine = run(BEGIN + snippet + END, 1, 2)
    assert not machine.incidents
    arrivals = happened(machine, Kind.ARRIVE)
    return [event.object or 0 for event in sorted(arrivals, key=lambda event: event.agent or ())]


class TestAliases:
    """One barrier by its different addresses."""

    @pytest.mark.parametrize(
        "arrive",
        [
            "mbarrier.arrive.shared::cta.b64 _, [bar];",
            "mbarrier.arrive.shared::cta.b64 _, [%r3];",
            "mbarrier.arrive.shared::cluster.b64 _, [%r3];",
            "mbarrier.arrive.b64 _, [%rd4];",
            "mapa.shared::cluster.u32 %r5, %r3, %r2; mbarrier.arrive.shared::cluster.b64 _, [%r5];",
            "mapa.u64 %rd5, %rd4, %r2; mbarrier.arrive.b64 _, [%rd5];",
            "cvta.to.shared.u64 %rd5, %rd4; cvt.u32.u64 %r5, %rd5; mbarrier.arrive.shared::cta.b64 _, [%r5];",
            "sub.u32 %r5, %r3, 16; mbarrier.arrive.shared::cta.b64 _, [%r5+16];",
        ],
    )
    def test_the_own_barrier(self, arrive: str) -> None:
        assert target(arrive) == [ARRIVED, 1 << 24 | ARRIVED]

    @pytest.mark.parametrize(
        "arrive",
        [
            "mapa.shared::cluster.u32 %r5, %r3, 0; mbarrier.arrive.shared::cluster.b64 _, [%r5];",
            "mapa.shared::cluster.u32 %r5, bar, 0; mbarrier.arrive.shared::cluster.b64 _, [%r5];",
            "mapa.u64 %rd5, %rd4, 0; mbarrier.arrive.b64 _, [%rd5];",
            "and.b32 %r5, %r3, 0xFEFFFFFF; mbarrier.arrive.shared::cluster.b64 _, [%r5];",
            "and.b32 %r5, %r3, -16777217; mbarrier.arrive.shared::cluster.b64 _, [%r5];",
        ],
    )
    def test_the_barrier_of_the_leading_cta(self, arrive: str) -> None:
        assert target(arrive) == [ARRIVED, ARRIVED]

    def test_the_peer_of_a_pair(self) -> None:
        assert target(
            "xor.b32 %r6, %r2, 1; mapa.shared::cluster.u32 %r5, %r3, %r6;mbarrier.arrive.shared::cluster.b64 _, [%r5];"
        ) == [1 << 24 | ARRIVED, ARRIVED]

    GENERIC = ".shared .align 8 .b8 tile[16]; mov.u64 %rd1, tile; cvta.shared.u64 %rd2, %rd1;\n"

    def test_memory_written_by_its_generic_address(self) -> None:
        assert values(self.GENERIC + "st.b32 [%rd2+4], 9; ld.shared.b32 %r9, [tile+4];", "%r9", 1) == [9]

    def test_memory_read_by_its_generic_address(self) -> None:
        assert values(self.GENERIC + "st.shared.b32 [tile+4], 9; ld.b32 %r9, [%rd2+4];", "%r9", 1) == [9]


class TestQuestions:
    """getctarank and isspacep."""

    ADDRESSES = """
    .shared .align 8 .b8 tile[16]; .local .align 8 .b8 own[16];
    mov.u64 %rd1, tile; cvta.shared.u64 %rd2, %rd1; mapa.u64 %rd3, %rd2, 1;
    mov.u64 %rd6, own; cvta.local.u64 %rd4, %rd6; ld.param.u64 %rd5, [pointer]; cvta.to.global.u64 %rd5, %rd5;
    """

    def test_the_rank_of_an_address(self) -> None:
        snippet = self.ADDRESSES + "getctarank.u64 %r9, %rd3;"
        assert values(snippet, "%r9", 1, cluster=2) == [1]
        snippet = self.ADDRESSES + "mapa.shared::cluster.u32 %r2, tile, 3; getctarank.shared::cluster.u32 %r9, %r2;"
        assert values(snippet, "%r9", 1, cluster=4) == [3]

    @pytest.mark.parametrize(
        ("space", "own", "remote", "local", "pointer"),
        [
            ("shared", 1, 0, 0, 0),
            ("shared::cta", 1, 0, 0, 0),
            ("shared::cluster", 1, 1, 0, 0),
            ("local", 0, 0, 1, 0),
            ("global", 0, 0, 0, 1),
        ],
    )
    def test_the_space_of_an_address(self, space: str, own: int, remote: int, local: int, pointer: int) -> None:
        for register, expected in (("%rd2", own), ("%rd3", remote), ("%rd4", local), ("%rd5", pointer)):
            snippet = self.ADDRESSES + f"isspacep.{space} %p2, {register}; selp.u32 %r9, 1, 0, %p2;"
            assert values(snippet, "%r9", 1, cluster=2) == [expected], register

    @pytest.mark.parametrize(("register", "expected"), [("%rd2", [1, 1]), ("%rd3", [0, 1])])
    def test_the_own_window_is_that_of_each_cta(self, register: str, expected: list[int]) -> None:
        """%rd2 is an address of the CTA itself, %rd3 one of CTA 1."""
        question = self.ADDRESSES + f"isspacep.shared %p2, {register}; selp.u32 %r9, 1, 0, %p2;"
        machine = run(PROBE.format(snippet=question, register="%r9"), 1, 2)
        assert [event.amount for event in happened(machine, Kind.EXPECT)] == expected
