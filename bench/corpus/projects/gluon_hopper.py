"""Gluon kernels of ours for Ampere and Hopper: barriers, bulk copies, warpgroup products and roles written by hand."""

# ruff: noqa: N803, N806, RUF005

from collections.abc import Iterator, Mapping
from functools import partial

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma_wait as wait_products

from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6", "triton==3.9.0")


@gluon.jit
def _load_tiles(tiles, slots, full, empty, steps, STAGES: gl.constexpr):
    for i in range(steps):
        slot, lap = i % STAGES, i // STAGES
        mbarrier.wait(empty.index(slot), (lap & 1) ^ 1)
        mbarrier.expect(full.index(slot), tiles.nbytes_per_cta)
        tma.async_load(tiles, [gl.program_id(0) * tiles.block_shape[0], i * tiles.block_shape[1]], full.index(slot), slots.index(slot))  # fmt: skip  # noqa: E501


@gluon.jit
def _double_tiles(out, slots, staging, full, empty, steps, STAGES: gl.constexpr, LAYOUT: gl.constexpr):
    for i in range(steps):
        slot, lap = i % STAGES, i // STAGES
        mbarrier.wait(full.index(slot), lap & 1)
        values = slots.index(slot).load(LAYOUT)
        mbarrier.arrive(empty.index(slot))
        tma.store_wait(0)
        staging.store(values + values)
        fence_async_shared()
        tma.async_store(out, [gl.program_id(0) * out.block_shape[0], i * out.block_shape[1]], staging)
    tma.store_wait(0)


@gluon.jit
def copy_ring(tiles, out, steps, STAGES: gl.constexpr, LAYOUT: gl.constexpr):
    """A loader warp and a storing warpgroup around a ring of full and empty barriers."""
    slots = gl.allocate_shared_memory(tiles.dtype, [STAGES] + tiles.block_shape, tiles.layout)
    staging = gl.allocate_shared_memory(out.dtype, out.block_shape, out.layout)
    full, empty = mbarrier.allocate_mbarrier(batch=STAGES), mbarrier.allocate_mbarrier(batch=STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_double_tiles, (out, slots, staging, full, empty, steps, STAGES, LAYOUT)),
            (_load_tiles, (tiles, slots, full, empty, steps, STAGES)),
        ],
        [1],
        [24],
    )
    for i in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(i))
        mbarrier.invalidate(empty.index(i))


@gluon.jit
def copy_once(tiles, out, LAYOUT: gl.constexpr):
    """One tile in, one out."""
    slot = gl.allocate_shared_memory(tiles.dtype, tiles.block_shape, tiles.layout)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    fence_async_shared()
    mbarrier.expect(barrier, tiles.nbytes_per_cta)
    tma.async_load(tiles, [gl.program_id(0) * tiles.block_shape[0], 0], barrier, slot)
    mbarrier.wait(barrier, 0, deps=(slot,))
    mbarrier.invalidate(barrier)
    slot.store(slot.load(LAYOUT) * 2)
    fence_async_shared()
    tma.async_store(out, [gl.program_id(0) * out.block_shape[0], 0], slot)
    tma.store_wait(0)


@gluon.jit
def reduce_into(tiles, out, steps, KIND: gl.constexpr):
    """Two alternating buffers whose tiles the copy engine adds (or otherwise folds) into global memory."""
    slots = gl.allocate_shared_memory(tiles.dtype, [2] + tiles.block_shape, tiles.layout)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    fence_async_shared()
    for i in range(steps):
        slot = slots.index(i % 2)
        tma.store_wait(1)
        mbarrier.expect(barrier, tiles.nbytes_per_cta)
        tma.async_load(tiles, [i * tiles.block_shape[0], 0], barrier, slot)
        mbarrier.wait(barrier, i & 1)
        if KIND == "add":
            tma.async_atomic_add(out, [0, 0], slot)
        elif KIND == "max":
            tma.async_atomic_max(out, [0, 0], slot)
        else:
            tma.async_atomic_xor(out, [0, 0], slot)
    tma.store_wait(0, read_only=False)


@gluon.jit
def product_loop(a, b, c, steps, STAGES: gl.constexpr, M: gl.constexpr, N: gl.constexpr, LAYOUT: gl.constexpr,
                 PENDING: gl.constexpr):  # fmt: skip
    """Every warp loads ahead, multiplies and waits: no roles. PENDING products stay in flight."""
    a_slots = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_shape, a.layout)
    b_slots = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
    fence_async_shared()
    K: gl.constexpr = a.block_shape[1]
    AHEAD: gl.constexpr = STAGES - 1 - PENDING
    row, column = gl.program_id(0) * M, gl.program_id(1) * N
    for i in gl.static_range(AHEAD):
        mbarrier.expect(full.index(i), a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [row, i * K], full.index(i), a_slots.index(i))
        tma.async_load(b, [i * K, column], full.index(i), b_slots.index(i))
    sums = gl.zeros((M, N), dtype=gl.float32, layout=LAYOUT)
    for i in range(steps):
        slot, ahead = i % STAGES, i + AHEAD
        mbarrier.expect(full.index(ahead % STAGES), a.nbytes_per_cta + b.nbytes_per_cta, pred=ahead < steps)
        tma.async_load(a, [row, ahead * K], full.index(ahead % STAGES), a_slots.index(ahead % STAGES), pred=ahead < steps)  # fmt: skip  # noqa: E501
        tma.async_load(b, [ahead * K, column], full.index(ahead % STAGES), b_slots.index(ahead % STAGES), pred=ahead < steps)  # fmt: skip  # noqa: E501
        mbarrier.wait(full.index(slot), i // STAGES & 1)
        sums = warpgroup_mma(a_slots.index(slot), b_slots.index(slot), sums, is_async=True)
        sums = wait_products(PENDING, deps=(sums,))
    sums = wait_products(0, deps=(sums,))
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    staging.store(sums.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [row, column], staging)
    tma.store_wait(0)


@gluon.jit
def _load_operands(a, b, a_slots, b_slots, full, empty, tiles, across, steps, STAGES: gl.constexpr):
    count = 0
    K: gl.constexpr = a.block_shape[1]
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, column = tile // across * a.block_shape[0], tile % across * b.block_shape[1]
        for i in range(steps):
            slot, lap = count % STAGES, count // STAGES
            mbarrier.wait(empty.index(slot), (lap & 1) ^ 1)
            mbarrier.expect(full.index(slot), a.nbytes_per_cta + b.nbytes_per_cta)
            tma.async_load(a, [row, i * K], full.index(slot), a_slots.index(slot))
            tma.async_load(b, [i * K, column], full.index(slot), b_slots.index(slot))
            count += 1


@gluon.jit
def _multiply(c, a_slots, b_slots, staging, full, empty, tiles, across, steps, STAGES: gl.constexpr, M: gl.constexpr,
              N: gl.constexpr, LAYOUT: gl.constexpr):  # fmt: skip
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        sums = gl.zeros((M, N), dtype=gl.float32, layout=LAYOUT)
        for i in range(steps):
            slot, lap = count % STAGES, count // STAGES
            mbarrier.wait(full.index(slot), lap & 1)
            sums = warpgroup_mma(a_slots.index(slot), b_slots.index(slot), sums, is_async=True)
            sums = wait_products(1, deps=(sums,))
            mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES), pred=i > 0)
            count += 1
        sums = wait_products(0, deps=(sums,))
        mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES))
        tma.store_wait(0)
        staging.store(sums.to(c.dtype))
        fence_async_shared()
        tma.async_store(c, [tile // across * M, tile % across * N], staging)
    tma.store_wait(0)


@gluon.jit
def product_roles(a, b, c, tiles, across, steps, STAGES: gl.constexpr, M: gl.constexpr, N: gl.constexpr,
                  LAYOUT: gl.constexpr, REGISTERS: gl.constexpr):  # fmt: skip
    """Persistent: one loading warp, the others multiply and store."""
    a_slots = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_shape, a.layout)
    b_slots = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    full, empty = mbarrier.allocate_mbarrier(batch=STAGES), mbarrier.allocate_mbarrier(batch=STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_multiply, (c, a_slots, b_slots, staging, full, empty, tiles, across, steps, STAGES, M, N, LAYOUT)),
            (_load_operands, (a, b, a_slots, b_slots, full, empty, tiles, across, steps, STAGES)),
        ],
        [1],
        REGISTERS,
    )


@gluon.jit
def groups_ring(x, out, steps, WIDE: gl.constexpr, STAGES: gl.constexpr, LAYOUT: gl.constexpr, SHARED: gl.constexpr):
    """cp.async with commit groups: STAGES buffers, all warps alike."""
    at = gl.program_id(0) * steps * WIDE + gl.arange(0, WIDE, LAYOUT)
    slots = gl.allocate_shared_memory(gl.float32, [STAGES, WIDE], SHARED)
    for i in gl.static_range(STAGES - 1):
        async_copy.async_load(slots.index(i), x + at + i * WIDE, mask=gl.full([WIDE], i, gl.int32, LAYOUT) < steps)
        async_copy.commit_group()
    for i in range(steps):
        ahead = i + STAGES - 1
        async_copy.wait_group(STAGES - 2)
        gl.barrier()
        values = slots.index(i % STAGES).load(LAYOUT)
        gl.store(out + at + i * WIDE, gl.exp2(values))
        mask = gl.full([WIDE], 0, gl.int32, LAYOUT) + ahead < steps
        async_copy.async_load(slots.index(ahead % STAGES), x + at + ahead * WIDE, mask=mask)
        async_copy.commit_group()
    async_copy.wait_group(0)


@gluon.jit
def _copy_ahead(x, slots, full, empty, steps, WIDE: gl.constexpr, STAGES: gl.constexpr, LAYOUT: gl.constexpr):
    at = gl.program_id(0) * steps * WIDE + gl.arange(0, WIDE, LAYOUT)
    for i in range(steps):
        mbarrier.wait(empty.index(i % STAGES), (i // STAGES & 1) ^ 1)
        async_copy.async_load(slots.index(i % STAGES), x + at + i * WIDE)
        async_copy.mbarrier_arrive(full.index(i % STAGES), increment_count=False)


@gluon.jit
def _take(out, slots, full, empty, steps, WIDE: gl.constexpr, STAGES: gl.constexpr, LAYOUT: gl.constexpr):
    at = gl.program_id(0) * steps * WIDE + gl.arange(0, WIDE, LAYOUT)
    for i in range(steps):
        mbarrier.wait(full.index(i % STAGES), i // STAGES & 1)
        values = slots.index(i % STAGES).load(LAYOUT)
        mbarrier.arrive(empty.index(i % STAGES))
        gl.store(out + at + i * WIDE, values * values)


@gluon.jit
def arrive_ring(x, out, steps, WIDE: gl.constexpr, STAGES: gl.constexpr, TAKE: gl.constexpr, COPY: gl.constexpr,
                SHARED: gl.constexpr, WARPS: gl.constexpr):  # fmt: skip
    """cp.async that arrives on a barrier, a copying role and a taking role."""
    slots = gl.allocate_shared_memory(gl.float32, [STAGES, WIDE], SHARED)
    full, empty = mbarrier.allocate_mbarrier(batch=STAGES), mbarrier.allocate_mbarrier(batch=STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=WARPS * 32)
        mbarrier.init(empty.index(i), count=1)
    gl.barrier()
    gl.warp_specialize(
        [
            (_take, (out, slots, full, empty, steps, WIDE, STAGES, TAKE)),
            (_copy_ahead, (x, slots, full, empty, steps, WIDE, STAGES, COPY)),
        ],
        [WARPS],
    )


@gluon.jit
def groups_product(a, b, c, K, M: gl.constexpr, N: gl.constexpr, STEP: gl.constexpr, STAGES: gl.constexpr,
                   LOAD: gl.constexpr, A_SHARED: gl.constexpr, B_SHARED: gl.constexpr, SUMS: gl.constexpr):  # fmt: skip
    """mma.sync on operands that cp.async brings."""
    rows = gl.program_id(0) * M + gl.arange(0, M, gl.SliceLayout(1, LOAD))
    columns = gl.program_id(1) * N + gl.arange(0, N, gl.SliceLayout(0, LOAD))
    a_at = a + rows[:, None] * K + gl.arange(0, STEP, gl.SliceLayout(0, LOAD))[None, :]
    b_at = b + gl.arange(0, STEP, gl.SliceLayout(1, LOAD))[:, None] * K + columns[None, :]
    a_slots = gl.allocate_shared_memory(gl.float16, [STAGES, M, STEP], A_SHARED)
    b_slots = gl.allocate_shared_memory(gl.float16, [STAGES, STEP, N], B_SHARED)
    for i in gl.static_range(STAGES - 1):
        async_copy.async_load(a_slots.index(i), a_at + i * STEP)
        async_copy.async_load(b_slots.index(i), b_at + i * STEP * K)
        async_copy.commit_group()
    sums = gl.zeros((M, N), dtype=gl.float32, layout=SUMS)
    steps = K // STEP
    for i in range(steps):
        async_copy.wait_group(STAGES - 2)
        gl.barrier()
        x = a_slots.index(i % STAGES).load(gl.DotOperandLayout(0, SUMS, 2))
        y = b_slots.index(i % STAGES).load(gl.DotOperandLayout(1, SUMS, 2))
        ahead = i + STAGES - 1
        if ahead < steps:
            async_copy.async_load(a_slots.index(ahead % STAGES), a_at + ahead * STEP)
            async_copy.async_load(b_slots.index(ahead % STAGES), b_at + ahead * STEP * K)
        async_copy.commit_group()
        sums = mma_v2(x, y, sums)
    at_rows = gl.program_id(0) * M + gl.arange(0, M, gl.SliceLayout(1, SUMS))
    at_columns = gl.program_id(1) * N + gl.arange(0, N, gl.SliceLayout(0, SUMS))
    gl.store(c + at_rows[:, None] * K + at_columns[None, :], sums.to(gl.float16))


@gluon.jit
def multicast(tiles, out, steps, LAYOUT: gl.constexpr):
    """A cluster of two: each tile is loaded once and lands in both CTAs."""
    slot = gl.allocate_shared_memory(tiles.dtype, tiles.block_shape, tiles.layout)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    fence_async_shared(cluster=True)
    hopper.cluster.barrier()
    rows = gl.arange(0, tiles.block_shape[0], gl.SliceLayout(1, LAYOUT))
    columns = gl.arange(0, tiles.block_shape[1], gl.SliceLayout(0, LAYOUT))
    for i in range(steps):
        mbarrier.expect(barrier, tiles.nbytes_per_cta)
        tma.async_load(tiles, [i * tiles.block_shape[0], 0], barrier, slot, multicast=True)
        mbarrier.wait(barrier, i & 1)
        values = slot.load(LAYOUT)
        hopper.cluster.barrier()
        gl.store(out + i * 4096 + rows[:, None] * 64 + columns[None, :], values)
    mbarrier.invalidate(barrier)


@gluon.jit
def cluster_store(x, out, M: gl.constexpr, N: gl.constexpr, LAYOUT: gl.constexpr, SHARED: gl.constexpr):
    """st.async into the shared memory of the cluster, counted by a barrier there."""
    rows, columns = gl.arange(0, M, gl.SliceLayout(1, LAYOUT)), gl.arange(0, N, gl.SliceLayout(0, LAYOUT))
    at = rows[:, None] * N + columns[None, :]
    slot = gl.allocate_shared_memory(gl.float32, [M, N], SHARED)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    hopper.cluster.barrier()
    mbarrier.expect(barrier, M * N * 4 // 2)
    hopper.async_store(slot, gl.load(x + at), barrier)
    mbarrier.wait(barrier, 0)
    gl.store(out + at, slot.load(LAYOUT))
    hopper.cluster.barrier()


def ptx(
    kernel: object, types: Mapping[str, str], constants: Mapping[str, object], capability: int, **options: int
) -> str:
    """Compile one kernel; pointers and sizes are taken as multiples of 16."""
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(types.values()) if kind[0] in "*i"}
    source = GluonASTSource(kernel, dict(types), dict(constants), aligned)
    if capability >= 90:
        options["ptx_version"] = 90
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["ptx"]


def recipe(
    kernel, label: str, types: Mapping[str, str], constants: Mapping[str, object], capability: int, **options: int
):
    """One module, named after the kernel, its label and its architecture."""
    arch = f"sm_{capability}a" if capability >= 90 else f"sm_{capability}"
    name = "_".join(part for part in (kernel.__name__, label, arch) if part)
    return Recipe(name, arch, partial(ptx, kernel, types, constants, capability, **options))


def tiled(kind: str, rows: int, columns: int, dtype: gl.dtype, **layout: object) -> str:
    """The type of a host tensor descriptor."""
    shared = gl.NVMMASharedLayout.get_default_for([rows, columns], dtype, **layout)
    return f"tensordesc<{kind}[{rows}, {columns}],{shared!r}>"


def blocked(rows: int, warps: int, cga: object = ()) -> gl.BlockedLayout:
    """A plain register layout of two dimensions; ``rows`` warps lie along the first."""
    return gl.BlockedLayout([1, 8], [4, 8], [rows, warps // rows], [1, 0], cga_layout=list(cga))


HALVES = {"a": "*fp16", "b": "*fp16", "c": "*fp16", "K": "i32"}
GROUPS = {
    "M": 64,
    "N": 64,
    "STEP": 32,
    "LOAD": gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0]),
    "A_SHARED": gl.SwizzledSharedLayout(8, 2, 4, [1, 0]),
    "B_SHARED": gl.SwizzledSharedLayout(8, 1, 8, [1, 0]),
    "SUMS": gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8]),
}


def copies() -> Iterator[Recipe]:
    """Copies and reductions."""
    line = gl.BlockedLayout([4], [32], [4], [0])
    flat = gl.SwizzledSharedLayout(1, 1, 1, [0])
    half, single = tiled("fp16", 64, 64, gl.float16), tiled("fp32", 64, 32, gl.float32)
    for capability in (90, 100, 120):
        for stages in (2, 3, 4, 7):
            types = {"tiles": half, "out": half, "steps": "i32"}
            yield recipe(copy_ring, f"s{stages}", types, {"STAGES": stages, "LAYOUT": blocked(4, 4)}, capability)
        types = {"tiles": half, "out": half}
        yield recipe(copy_once, "", types, {"LAYOUT": blocked(4, 4)}, capability)
        for kind in ("add", "max", "xor"):
            tile = single if kind == "add" else tiled("i32", 64, 32, gl.int32)
            types = {"tiles": tile, "out": tile, "steps": "i32"}
            yield recipe(reduce_into, kind, types, {"KIND": kind}, capability)
        for warps in (1, 4):
            types = {"x": "*fp32", "out": "*fp32", "steps": "i32"}
            copier = gl.BlockedLayout([4], [32], [warps], [0])
            constants = {"WIDE": 1024, "STAGES": 3, "TAKE": line, "COPY": copier, "SHARED": flat, "WARPS": warps}
            yield recipe(arrive_ring, f"w{warps}", types, constants, capability)
    for capability in (80, 90, 100):
        for stages in (2, 3, 4):
            types = {"x": "*fp32", "out": "*fp32", "steps": "i32"}
            constants = {"WIDE": 1024, "STAGES": stages, "LAYOUT": line, "SHARED": flat}
            yield recipe(groups_ring, f"s{stages}", types, constants, capability)
            yield recipe(groups_product, f"s{stages}", HALVES, {**GROUPS, "STAGES": stages}, capability)


def products() -> Iterator[Recipe]:
    """Warpgroup products (Hopper)."""
    for kind, dtype, step in (("fp16", gl.float16, 64), ("bf16", gl.bfloat16, 64), ("fp8e4nv", gl.float8e4nv, 128)):
        for rows, columns, warps, stages, pending in ((64, 64, 4, 3, 0), (128, 128, 4, 4, 1), (128, 256, 8, 3, 1)):
            if kind != "fp16" and rows == 64:
                continue
            sums = gl.NVMMADistributedLayout([3, 0], [warps, 1], [16, columns, 16])
            a = tiled(kind, rows, step, dtype)
            b = tiled(kind, step, columns, dtype, transposed=True) if step == 128 else tiled(kind, step, columns, dtype)
            c = tiled("fp16", rows, columns, gl.float16)
            label = f"{kind}_m{rows}n{columns}s{stages}p{pending}"
            shape = {"STAGES": stages, "M": rows, "N": columns, "LAYOUT": sums}
            types = {"a": a, "b": b, "c": c, "steps": "i32"}
            if step == 64:
                yield recipe(product_loop, label, types, {**shape, "PENDING": pending}, 90, num_warps=warps)
                types = {"a": a, "b": b, "c": c, "tiles": "i32", "across": "i32", "steps": "i32"}
                for registers in (24, 40):
                    name = f"{label}_r{registers}"
                    yield recipe(product_roles, name, types, {**shape, "REGISTERS": [registers]}, 90, num_warps=warps)


def clusters() -> Iterator[Recipe]:
    """Clusters of two."""
    both = [[0, 0]]
    for capability in (90, 100):
        tile = tiled("fp16", 64, 64, gl.float16, cga_layout=both)
        types = {"tiles": tile, "out": "*fp16", "steps": "i32"}
        yield recipe(multicast, "", types, {"LAYOUT": blocked(4, 4, both)}, capability, num_ctas=2)
        split = [[1, 0]]
        constants = {"M": 64, "N": 64, "LAYOUT": blocked(4, 4, split)}
        constants["SHARED"] = gl.SwizzledSharedLayout(1, 1, 1, [1, 0], cga_layout=split)
        yield recipe(cluster_store, "", {"x": "*fp32", "out": "*fp32"}, constants, capability, num_ctas=2)


if __name__ == "__main__":
    raise SystemExit(produce([*copies(), *products(), *clusters()], "triton"))
