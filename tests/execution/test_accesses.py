"""Data accesses: which bytes and columns each instruction touches, by which proxy, and when that is over."""

from __future__ import annotations

import pytest

from ptxlint.execution import lower
from ptxlint.execution import slice as slices
from ptxlint.execution.accesses import build, is_access, is_asynchronous, registers
from ptxlint.execution.conflict import Access, Interval, Space
from ptxlint.execution.inputs import Assumed
from ptxlint.execution.machine import Machine
from ptxlint.execution.order import Order
from ptxlint.execution.program import Binding, Slots
from ptxlint.execution.schedule import SCHEDULES
from ptxlint.isa import Proxy

from .running import initialized, kernel
from .test_events import instruction

TILE = 1152
"""Where the tile lies: behind the barriers, on 128 bytes."""

BEGIN = (
    initialized()
    + """
.shared .align 128 .b8 tile[1024]; ld.param.u64 %rd1, [p]; mov.u32 %r2, tile;
shr.u32 %r3, %r2, 4; cvt.u64.u32 %rd2, %r3; mov.pred %p8, 0;
"""
)


def touched(snippet: str, threads: int = 32, cluster: int = 1) -> list[Access]:
    """The accesses of a run, each once, in order."""
    found = kernel(BEGIN + snippet)
    data = {
        point: tuple(registers(instruction))
        for point, instruction in enumerate(found.cfg.body)
        if is_access(instruction)
    }
    marks = {point: tuple(slices.synchronization_reads(found.cfg.body[point])) for point in found.slice.seeds}
    wider = slices.compute(found.cfg, {**data, **marks})
    program = lower.lower(found.cfg, wider, found.layout, frozenset(data))
    order = Order()
    binding = Binding((threads, 1, 1), (cluster, 1, 1), (4, 1, 1), 4096, Assumed(13))
    Machine(program, binding, SCHEDULES[0], 20_000, order=order).run()
    kept = [touch for shadow in order.shadow.values() for touch in shadow.between(0, 1 << 64)]
    made = [touch.access._replace(interval=interval) for touch in kept for interval in touch.place.intervals]
    return sorted(made, key=lambda access: (access.point, access.interval))


def intervals(snippet: str, threads: int = 32) -> list[Interval]:
    return [access.interval for access in touched(snippet, threads)]


class TestShared:
    """Bytes of shared memory."""

    @pytest.mark.parametrize(
        ("access", "size"),
        [
            ("st.shared.b8 [tile+16], %r1;", 1),
            ("st.shared.b16 [tile+16], %rs1;", 2),
            ("st.shared.b32 [tile+16], %r1;", 4),
            ("st.shared.v4.b32 [tile+16], {%r1, %r1, %r1, %r1};", 16),
            ("ld.shared.v2.b64 {%rd4, %rd5}, [tile+16];", 16),
            ("cp.async.cg.shared.global [tile+16], [%rd1], 16;", 16),
            ("cp.async.ca.shared.global [tile+16], [%rd1], 4;", 4),
            ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [tile+16];", 16),
            ("atom.shared.add.u32 %r4, [tile+16], 1;", 4),
            ("@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile+16], 48;", 48),
        ],
    )
    def test_bytes_of_one_address(self, access: str, size: int) -> None:
        assert intervals(access) == [(TILE + 16, TILE + 16 + size)]

    def test_neighbouring_words_of_a_warp_are_one_interval(self) -> None:
        assert intervals("shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r2; st.shared.b32 [%r4], %r1;") == [
            (TILE, TILE + 128)
        ]

    def test_each_warp_for_itself(self) -> None:
        snippet = "shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r2; st.shared.b32 [%r4], %r1;"
        assert intervals(snippet, 64) == [(TILE, TILE + 128), (TILE + 128, TILE + 256)]

    def test_gaps_stay_open(self) -> None:
        snippet = "shl.b32 %r4, %r1, 3; add.u32 %r4, %r4, %r2; st.shared.b32 [%r4], %r1;"
        assert intervals(snippet, 3) == [(TILE + 8 * i, TILE + 8 * i + 4) for i in range(3)]

    def test_only_the_threads_of_the_guard(self) -> None:
        snippet = "setp.lt.u32 %p2, %r1, 2; shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r2; @%p2 st.shared.b32 [%r4], %r1;"
        assert intervals(snippet) == [(TILE, TILE + 8)]

    @pytest.mark.parametrize(
        ("access", "rows"),
        [
            ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4];", 8),
            ("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r5, %r6}, [%r4];", 16),
            ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4];", 32),
            ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r5, %r6}, [%r4];", 16),
            ("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r5, %r6, %r7, %r8}, [%r4];", 32),
            ("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%r5, %r6}, [%r4];", 16),
            ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r1};", 8),
            ("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r4], {%r1, %r1};", 16),
            ("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r4], {%r1, %r1, %r1, %r1};", 32),
            ("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r4], {%r1, %r1};", 16),
        ],
    )
    def test_the_rows_of_matrices_are_named_by_the_first_lanes(self, access: str, rows: int) -> None:
        """Two warps: the second one's rows lie behind those of the first."""
        snippet = "shl.b32 %r4, %r1, 4; add.u32 %r4, %r4, %r2;" + access
        assert intervals(snippet, 64) == [(TILE, TILE + 16 * rows), (TILE + 512, TILE + 512 + 16 * rows)]

    def test_another_cta(self) -> None:
        snippet = "mapa.shared::cluster.u32 %r4, %r2, 1; barrier.cluster.arrive; barrier.cluster.wait;"
        snippet += "st.shared::cluster.b32 [%r4], %r1; barrier.cluster.arrive; barrier.cluster.wait;"
        assert {access.interval[0] for access in touched(snippet, 32, 2)} == {1 << 24 | TILE}

    def test_global_memory_is_not_looked_at(self) -> None:
        assert touched("st.global.b32 [%rd1], %r1;") == []

    def test_a_generic_access_is_not_taken_for_shared(self) -> None:
        assert touched("st.b32 [%rd1], %r1;") == []

    def test_the_first_row_of_a_descriptor(self) -> None:
        product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd2, %rd2, 1, 1, 1, 0, 0;"
        assert set(intervals(product, 128)) == {(TILE, TILE + 128)}


class TestProxies:
    """By which proxy, and whether it is a write."""

    @pytest.mark.parametrize(
        ("access", "proxy", "is_write"),
        [
            ("st.shared.b32 [tile], %r1;", Proxy.GENERIC, True),
            ("ld.shared.b32 %r4, [tile];", Proxy.GENERIC, False),
            ("cp.async.ca.shared.global [tile], [%rd1], 4;", Proxy.GENERIC, True),
            ("@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;", Proxy.ASYNC, False),
            ("@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [bars];",
             Proxy.ASYNC, True),
            ("@%p1 cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1}],"
             "[bars];", Proxy.ASYNC, True),
            ("red.shared.add.u32 [tile], 1;", Proxy.GENERIC, True),
        ],
    )  # fmt: skip
    def test_instruction(self, access: str, proxy: Proxy, is_write: bool) -> None:
        (made,) = touched(access)
        assert (made.proxy, made.is_write, made.space) == (proxy, is_write, Space.SHARED)

    def test_atomics_are_marked(self) -> None:
        assert touched("atom.shared.add.u32 %r4, [tile], 1;")[0].is_atomic
        assert not touched("st.shared.b32 [tile], 1;")[0].is_atomic


class TestMoments:
    """When an access is over."""

    @pytest.mark.parametrize(
        ("access", "line", "time"),
        [
            ("cp.async.ca.shared.global [tile], [%rd1], 4;", ("cp.async", 0, 0), 1),
            ("cp.async.ca.shared.global [tile+64], [%rd1], 4; cp.async.commit_group;"
             "cp.async.ca.shared.global [tile+64], [%rd1], 4;", ("cp.async", 0, 0), 2),
            ("@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [bars];",
             ("mbarrier", 0, 1024), 1),
            ("@%p1 mbarrier.arrive.shared::cta.b64 _, [bars];"
             "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [bars];",
             ("mbarrier", 0, 1024), 2),
        ],
    )  # fmt: skip
    def test_asynchronous_ones(self, access: str, line: tuple[str, int, int], time: int) -> None:
        (made,) = touched(access)
        assert (made.moment.line, made.moment.time) == (line, time)

    def test_plain_ones_are_over_at_the_warps_next_step(self) -> None:
        made = touched("shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r2; st.shared.b32 [%r4], %r1;", 64)
        assert [access.moment.line for access in made] == [("warp", 0, 0), ("warp", 0, 1)]


TENSOR = "and.b32 %r4, %r1, 96; shl.b32 %r4, %r4, 16; mov.u32 %r5, 0; mov.u32 %r6, {descriptor};\n"


class TestTensorMemory:
    """Columns of tensor memory, by 16 of the lanes."""

    @pytest.mark.parametrize(
        ("shape", "columns"),
        [("32x32b.x1", 1), ("32x32b.x8", 8), ("16x64b.x4", 4), ("16x128b.x2", 4), ("16x256b.x1", 4)],
    )
    def test_columns_of_a_load(self, shape: str, columns: int) -> None:
        count = {"32x32b.x1": 1, "32x32b.x8": 8, "16x64b.x4": 4, "16x128b.x2": 4, "16x256b.x1": 4}[shape]
        results = ", ".join(f"%r{20 + i}" for i in range(count))
        load = f"tcgen05.ld.sync.aligned.{shape}.b32 {{{results}}}, [%r4];"
        made = touched(TENSOR.format(descriptor=0) + load, 128)
        assert {access.space for access in made} == {Space.TENSOR}
        assert {access.interval[1] - access.interval[0] for access in made} == {columns}
        slabs = range(8) if shape.startswith("32") else (0, 2, 4, 6)
        assert [access.interval[0] >> 16 for access in made] == list(slabs)

    def test_lanes_of_a_load_of_sixteen(self) -> None:
        load = "add.u32 %r4, %r4, 1048576; tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r20}, [%r4];"
        made = touched(TENSOR.format(descriptor=0) + load, 128)
        assert [access.interval[0] >> 16 for access in made] == [1, 3, 5, 7]

    @pytest.mark.parametrize(
        ("rows", "group", "base", "slabs"),
        [(64, 1, 0, [0, 2, 4, 6]), (64, 1, 16, [1, 3, 5, 7]), (128, 1, 0, list(range(8))), (64, 2, 0, list(range(8)))],
    )
    def test_lanes_of_a_product(self, rows: int, group: int, base: int, slabs: list[int]) -> None:
        """A product of 64 rows fills every other 16 lanes."""
        product = f"@%p1 tcgen05.mma.cta_group::{group}.kind::f16 [%r5+{base << 16}], %rd2, %rd2, %r6, %p8;"
        made = touched(TENSOR.format(descriptor=rows // 16 << 24 | 2 << 17) + product, 128)
        assert [access.interval[0] >> 16 for access in made if access.space is Space.TENSOR] == slabs

    @pytest.mark.parametrize(("descriptor", "columns"), [(2 << 17, 16), (32 << 17, 256)])
    def test_columns_of_a_product(self, descriptor: int, columns: int) -> None:
        product = "@%p1 tcgen05.mma.cta_group::1.kind::f16 [%r5], %rd2, %rd2, %r6, %p8;"
        made = touched(TENSOR.format(descriptor=descriptor) + product, 128)
        written = [access for access in made if access.space is Space.TENSOR]
        assert [access.interval[1] - access.interval[0] for access in written] == [columns] * 8
        assert [access.interval[0] >> 16 for access in written] == list(range(8))
        assert {access.interval for access in made if access.space is Space.SHARED} == {(TILE, TILE + 128)}

    def test_columns_of_an_operand(self) -> None:
        """K is 32 bytes for every dense kind: eight columns, whatever N is."""
        product = "mov.u32 %r7, 64; @%p1 tcgen05.mma.cta_group::1.kind::f16 [%r5], [%r7], %rd2, %r6, %p8;"
        made = touched(TENSOR.format(descriptor=2 << 17) + product, 128)
        read = [access.interval for access in made if access.space is Space.TENSOR and not access.is_write]
        assert read == [(slab << 16 | 64, slab << 16 | 72) for slab in range(8)]

    @pytest.mark.parametrize(
        ("group", "rows", "width", "columns"),
        [(1, 1, 8, (4, 1)), (1, 1, 256, (4, 8)), (2, 2, 64, (4, 2)), (2, 1, 48, (2, 2))],
    )
    def test_columns_of_scale_factors(self, group: int, rows: int, width: int, columns: tuple[int, int]) -> None:
        """One column for 32 rows of A in this CTA, and for 32 columns of B, however wide the result is."""
        product = f"mov.u32 %r4, 300; mov.u32 %r7, 400; @%p1 tcgen05.mma.cta_group::{group}.kind::mxf8f6f4.block_scale"
        product += ".scale_vec::1X [%r5], %rd2, %rd2, %r6, [%r4], [%r7], %p8;"
        made = touched(TENSOR.format(descriptor=rows << 27 | width // 8 << 17) + product, 128)
        read = [a.interval for a in made if a.space is Space.TENSOR and not a.is_write and not a.interval[0] >> 16]
        assert read == [(300, 300 + columns[0]), (400, 400 + columns[1])]

    def test_columns_that_are_freed(self) -> None:
        free = "setp.lt.u32 %p2, %r1, 32; @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 64;"
        made = touched(TENSOR.format(descriptor=0) + free, 128)
        assert {access.interval[1] - access.interval[0] for access in made} == {64}
        assert len(made) == 8


class TestWhich:
    """Instructions of the data side."""

    @pytest.mark.parametrize(
        "text",
        [
            "st.shared.b32 [tile], %r1;",
            "cp.async.wait_group 0;",
            "cp.async.bulk.commit_group;",
            "wgmma.wait_group.sync.aligned 0;",
            "fence.proxy.async.shared::cta;",
            "fence.proxy.async;",
            "bar.warp.sync -1;",
            "tcgen05.wait::ld.sync.aligned;",
            "elect.sync _|%p1, -1;",
        ],
    )
    def test_inside(self, text: str) -> None:
        assert is_access(instruction(text))

    @pytest.mark.parametrize(
        "text",
        [
            "st.global.b32 [%rd1], %r1;",
            "fence.proxy.async.global;",
            "fence.proxy.tensormap::generic.release.gpu;",
            "add.u32 %r1, %r1, 1;",
            "bar.sync 0;",
            "mbarrier.arrive.shared.b64 _, [tile];",
        ],
    )
    def test_outside(self, text: str) -> None:
        assert not is_access(instruction(text))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("cp.async.ca.shared.global [tile], [%rd1], 4;", True),
            ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;", True),
            ("st.shared.b32 [tile], %r1;", False),
            ("cp.async.bulk.prefetch.L2.global [%rd1], 16;", False),
        ],
    )
    def test_asynchronous(self, text: str, expected: bool) -> None:
        assert is_asynchronous(instruction(text)) is expected

    def test_a_run_without_clocks_pays_nothing(self) -> None:
        """The closure asks for the order of the run first."""
        step = build(instruction("st.shared.b32 [tile], %r1;"), 0, Slots())
        machine = kernel("bar.sync 0;").machine()
        step(machine.ready[0])
        assert machine.events == []
