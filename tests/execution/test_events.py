"""Synchronization instructions: which they are, and who does what how often."""

from __future__ import annotations

import pytest

from ptxlint.execution.events import is_event, is_remote_access, shared_address
from ptxlint.execution.layout import SHARED_WINDOW
from ptxlint.execution.trace import Event, Fault, Kind
from ptxlint.ir import Instruction
from ptxlint.parse import parse
from ptxlint.testing import module_of

from .running import faults, happened, initialized, run, values

DATA = ".shared .align 128 .b8 tile[1024]; ld.param.u64 %rd1, [p];\n"


def instruction(text: str) -> Instruction:
    """The last instruction of a snippet, before the `ret` at its end."""
    body = parse(module_of(".shared .align 128 .b8 tile[1024];\n" + text)).functions[0].body
    assert body is not None
    return body[-2]


class TestWhich:
    """What is a synchronization point and what is not."""

    @pytest.mark.parametrize(
        "text",
        [
            "mbarrier.init.shared.b64 [tile], 1;",
            "mbarrier.inval.shared.b64 [tile];",
            "mbarrier.arrive_drop.shared.b64 _, [tile];",
            "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [tile], 4;",
            "mbarrier.test_wait.parity.shared.b64 %p1, [tile], 0;",
            "cp.async.mbarrier.arrive.shared.b64 [tile];",
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [tile+64];",
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];",
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [tile];",
            "bar.arrive 1, 64;",
            "barrier.sync 0;",
            "bar.red.popc.u32 %r1, 0, %p1;",
            "barrier.cluster.arrive;",
            "barrier.cluster.wait;",
        ],
    )
    def test_points(self, text: str) -> None:
        assert is_event(instruction(text))

    @pytest.mark.parametrize(
        "text",
        [
            "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;",
            "cp.async.ca.shared.global [tile], [%rd1], 16;",
            "cp.async.wait_group 0;",
            "bar.warp.sync -1;",
            "st.shared.b32 [tile], %r1;",
            "fence.proxy.async.shared::cta;",
            "mbarrier.pending_count.b64 %r1, %rd1;",
        ],
    )
    def test_other_instructions(self, text: str) -> None:
        assert not is_event(instruction(text))

    def test_remote_accesses_are_those_of_the_cluster_window(self) -> None:
        assert is_remote_access(instruction("st.shared::cluster.b32 [%r1], %r2;"))
        assert is_remote_access(instruction("ld.shared::cluster.b32 %r1, [%r2];"))
        assert not is_remote_access(instruction("st.shared::cta.b32 [%r1], %r2;"))
        assert not is_remote_access(
            instruction("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];")
        )

    def test_generic_addresses_of_shared_memory(self) -> None:
        assert shared_address(SHARED_WINDOW + 1024) == 1024
        assert shared_address(1024) == 1024
        assert shared_address(1 << 24 | 8) == 1 << 24 | 8


def did(snippet: str, kind: Kind, threads: int = 32) -> list[tuple[str, int]]:
    """Who did something of a kind, and the amount."""
    events: list[Event] = happened(run(snippet, threads), kind)
    return [(str(event.agent), event.amount) for event in events]


class TestAmounts:
    """Threads, counts and bytes."""

    def test_all_threads_of_an_agent_arrive_at_once(self) -> None:
        assert did(initialized(64) + "mbarrier.arrive.shared::cta.b64 _, [bars];", Kind.ARRIVE, 64) == [
            ("warps 0-1", 64)
        ]

    def test_each_with_its_count(self) -> None:
        assert did(initialized(99) + "mbarrier.arrive.shared::cta.b64 _, [bars], 3;", Kind.ARRIVE) == [("warp 0", 96)]

    def test_a_count_that_differs(self) -> None:
        snippet = initialized(99) + "and.b32 %r5, %r1, 1; add.u32 %r5, %r5, 1;"
        assert did(snippet + "mbarrier.arrive.shared::cta.b64 _, [bars], %r5;", Kind.ARRIVE, 4) == [
            ("2 threads from 0 to 2", 2),
            ("2 threads from 1 to 3", 4),
        ]

    @pytest.mark.parametrize(("guard", "expected"), [("@%p2", "threads 0-4"), ("@!%p2", "threads 5-31")])
    def test_only_the_threads_of_the_guard(self, guard: str, expected: str) -> None:
        snippet = initialized(99) + f"setp.lt.u32 %p2, %r1, 5; {guard} mbarrier.arrive.shared::cta.b64 _, [bars];"
        ((agent, _),) = did(snippet, Kind.ARRIVE)
        assert agent == expected

    def test_a_guard_that_holds_nowhere(self) -> None:
        snippet = initialized() + "setp.gt.u32 %p2, %r1, 500; @%p2 mbarrier.arrive.shared::cta.b64 _, [bars];"
        assert did(snippet, Kind.ARRIVE) == []

    def test_one_initialization_for_each_slot(self) -> None:
        snippet = """
        .shared .align 8 .b8 ring[64]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 3; mov.u32 %r3, ring;
        add.u32 %r3, %r3, %r2; setp.lt.u32 %p1, %r1, 8; @%p1 mbarrier.init.shared.b64 [%r3], 5;
        """
        machine = run(snippet)
        assert sorted(machine.mbarriers) == [1024 + 8 * slot for slot in range(8)]
        assert faults(machine) == set()

    def test_each_thread_copies(self) -> None:
        snippet = (
            initialized()
            + DATA
            + """
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [bars];
        """
        )
        assert [amount for _, amount in did(snippet, Kind.COMPLETE, 3)] == [16, 16, 16]

    def test_where_a_copy_lands(self) -> None:
        snippet = (
            initialized()
            + DATA
            + """
        @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+256], [%rd1], 16, [bars];
        """
        )
        machine = run(snippet)
        (event,) = happened(machine, Kind.COPY)
        assert event.source == 1152 + 256

    @pytest.mark.parametrize(("offset", "expected"), [(16, set()), (8, {Fault.MISALIGNED})])
    def test_copies_begin_on_16_bytes(self, offset: int, expected: set[Fault]) -> None:
        copy = "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 16; "
        copy += "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+{}], [%rd1], 16, [bars];"
        assert faults(run(initialized() + DATA + copy.format(offset))) == expected

    @pytest.mark.parametrize(("offset", "expected"), [(128, set()), (16, {Fault.MISALIGNED})])
    def test_tensor_copies_begin_on_128_bytes(self, offset: int, expected: set[Fault]) -> None:
        copy = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 16;"
        copy += "@%p1 cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes "
        assert faults(run(initialized() + DATA + copy + f"[tile+{offset}], [%rd1, {{%r5}}], [bars];")) == expected

    @pytest.mark.parametrize(("vector", "size"), [("b32", 4), ("b64", 8), ("v2.b32", 8), ("v4.b32", 16)])
    def test_bytes_of_a_remote_store(self, vector: str, size: int) -> None:
        value = {"v2.b32": "{%r1, %r1}", "v4.b32": "{%r1, %r1, %r1, %r1}", "b64": "%rd1"}.get(vector, "%r1")
        snippet = (
            initialized()
            + DATA
            + f"""
        mapa.shared::cluster.u32 %r5, tile, 0; mapa.shared::cluster.u32 %r6, bars, 0;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.{vector} [%r5], {value}, [%r6];
        """
        )
        assert [amount for _, amount in did(snippet, Kind.COMPLETE, 2)] == [2 * size]

    def test_the_threads_that_a_named_barrier_asks_for(self) -> None:
        assert did("bar.sync 2, 64;", Kind.SYNC, 64) == [("warps 0-1", 64)]
        assert did("bar.sync 0;", Kind.SYNC, 96) == [("warps 0-2", 96)]


class TestResults:
    """What the instructions leave in registers."""

    def test_a_wait_that_passes(self) -> None:
        snippet = initialized() + "mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 1; selp.u32 %r9, 1, 0, %p5;"
        assert values(snippet, "%r9", 2) == [1, 1]

    def test_a_parity_of_several_bits(self) -> None:
        """The parity operand counts by its lowest bit: kernels keep the phases of a ring as bits of one register."""
        snippet = initialized() + "mov.u32 %r5, 6; shr.u32 %r5, %r5, 1;"
        snippet += "mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], %r5; selp.u32 %r9, 1, 0, %p5;"
        assert values(snippet, "%r9", 1) == [1]
