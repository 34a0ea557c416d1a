"""Gluon kernels of ours for Blackwell: tensor memory, tcgen05 products, CTA pairs, launch control, gathers."""

# ruff: noqa: N803, N806, RUF005, SIM113

from collections.abc import Iterator

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    allocate_tensor_memory,
    clc,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma,
    tcgen05_mma_scaled,
    tma,
)

from bench.corpus.produce import Recipe, produce
from bench.corpus.projects.gluon_hopper import recipe, tiled

REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6", "triton==3.9.0")


@gluon.jit
def _start(barriers, STAGES: gl.constexpr, COUNT: gl.constexpr):
    for i in gl.static_range(STAGES):
        mbarrier.init(barriers.index(i), count=COUNT)


@gluon.jit
def product_once(a, b, c, M: gl.constexpr, N: gl.constexpr, MEMORY: gl.constexpr):
    """One step: load, multiply, wait, store."""
    a_slot = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_slot = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    loaded, multiplied = mbarrier.allocate_mbarrier(), mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(multiplied, count=1)
    fence_async_shared()
    sums = allocate_tensor_memory(gl.float32, [M, N], MEMORY)
    mbarrier.expect(loaded, a.nbytes_per_cta + b.nbytes_per_cta)
    tma.async_load(a, [gl.program_id(0) * M, 0], loaded, a_slot)
    tma.async_load(b, [0, gl.program_id(1) * N], loaded, b_slot)
    mbarrier.wait(loaded, 0)
    tcgen05_mma(a_slot, b_slot, sums, use_acc=False)
    tcgen05_commit(multiplied)
    mbarrier.wait(multiplied, 0)
    mbarrier.invalidate(loaded)
    mbarrier.invalidate(multiplied)
    staging.store(sums.load().to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [gl.program_id(0) * M, gl.program_id(1) * N], staging)
    tma.store_wait(0)


@gluon.jit
def product_loop(a, b, c, steps, STAGES: gl.constexpr, M: gl.constexpr, N: gl.constexpr, MEMORY: gl.constexpr):
    """All warps alike: a product's commit frees the slot that the next load fills."""
    K: gl.constexpr = a.block_shape[1]
    a_slots = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_shape, a.layout)
    b_slots = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    full, empty = mbarrier.allocate_mbarrier(batch=STAGES), mbarrier.allocate_mbarrier(batch=STAGES)
    _start(full, STAGES, 1)
    _start(empty, STAGES, 1)
    fence_async_shared()
    sums = allocate_tensor_memory(gl.float32, [M, N], MEMORY)
    row, column = gl.program_id(0) * M, gl.program_id(1) * N
    for i in gl.static_range(STAGES - 1):
        mbarrier.expect(full.index(i), a.nbytes_per_cta + b.nbytes_per_cta, pred=i < steps)
        tma.async_load(a, [row, i * K], full.index(i), a_slots.index(i), pred=i < steps)
        tma.async_load(b, [i * K, column], full.index(i), b_slots.index(i), pred=i < steps)
    for i in range(steps):
        slot, ahead = i % STAGES, i + STAGES - 1
        mbarrier.wait(full.index(slot), i // STAGES & 1)
        tcgen05_mma(a_slots.index(slot), b_slots.index(slot), sums, use_acc=i > 0, mbarriers=[empty.index(slot)])
        next_slot = ahead % STAGES
        if ahead < steps:
            mbarrier.wait(empty.index(next_slot), (ahead // STAGES & 1) ^ 1)
            mbarrier.expect(full.index(next_slot), a.nbytes_per_cta + b.nbytes_per_cta)
            tma.async_load(a, [row, ahead * K], full.index(next_slot), a_slots.index(next_slot))
            tma.async_load(b, [ahead * K, column], full.index(next_slot), b_slots.index(next_slot))
    mbarrier.wait(empty.index((steps - 1) % STAGES), (steps - 1) // STAGES & 1)
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    staging.store(sums.load().to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [row, column], staging)
    tma.store_wait(0)


@gluon.jit
def _load(a, b, a_slots, b_slots, full, empty, tiles, across, steps, STAGES: gl.constexpr):
    K: gl.constexpr = a.block_shape[1]
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, column = tile // across * a.block_shape[0], tile % across * b.block_shape[1]
        for i in range(steps):
            slot = count % STAGES
            mbarrier.wait(empty.index(slot), (count // STAGES & 1) ^ 1)
            mbarrier.expect(full.index(slot), a.nbytes_per_cta + b.nbytes_per_cta)
            tma.async_load(a, [row, i * K], full.index(slot), a_slots.index(slot))
            tma.async_load(b, [i * K, column], full.index(slot), b_slots.index(slot))
            count += 1


@gluon.jit
def _multiply(a_slots, b_slots, sums, full, empty, ready, drained, tiles, steps, STAGES: gl.constexpr,
              BUFFERS: gl.constexpr):  # fmt: skip
    count, turn = 0, 0
    for _ in range(gl.program_id(0), tiles, gl.num_programs(0)):
        buffer = turn % BUFFERS
        mbarrier.wait(drained.index(buffer), (turn // BUFFERS & 1) ^ 1)
        for i in range(steps):
            slot = count % STAGES
            mbarrier.wait(full.index(slot), count // STAGES & 1)
            tcgen05_mma(a_slots.index(slot), b_slots.index(slot), sums.index(buffer), use_acc=i > 0)
            tcgen05_commit(empty.index(slot))
            count += 1
        tcgen05_commit(ready.index(buffer))
        turn += 1


@gluon.jit
def _drain(c, sums, staging, ready, drained, tiles, across, BUFFERS: gl.constexpr, M: gl.constexpr, N: gl.constexpr,
           PARTS: gl.constexpr):  # fmt: skip
    turn = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        buffer = turn % BUFFERS
        mbarrier.wait(ready.index(buffer), turn // BUFFERS & 1)
        for part in gl.static_range(PARTS):
            values = sums.index(buffer).slice(part * (N // PARTS), N // PARTS).load()
            if part == PARTS - 1:
                mbarrier.arrive(drained.index(buffer))
            tma.store_wait(0)
            staging.store(values.to(c.dtype))
            fence_async_shared()
            tma.async_store(c, [tile // across * M, tile % across * N + part * (N // PARTS)], staging)
        turn += 1
    tma.store_wait(0)


@gluon.jit
def product_roles(a, b, c, tiles, across, steps, STAGES: gl.constexpr, BUFFERS: gl.constexpr, M: gl.constexpr,
                  N: gl.constexpr, PARTS: gl.constexpr, MEMORY: gl.constexpr):  # fmt: skip
    """Persistent: a loading warp, a multiplying warp, a draining warpgroup, accumulators in turns."""
    a_slots = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_shape, a.layout)
    b_slots = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    full, empty = mbarrier.allocate_mbarrier(batch=STAGES), mbarrier.allocate_mbarrier(batch=STAGES)
    ready, drained = mbarrier.allocate_mbarrier(batch=BUFFERS), mbarrier.allocate_mbarrier(batch=BUFFERS)
    _start(full, STAGES, 1)
    _start(empty, STAGES, 1)
    _start(ready, BUFFERS, 1)
    _start(drained, BUFFERS, 1)
    fence_async_shared()
    sums = allocate_tensor_memory(gl.float32, [BUFFERS, M, N], MEMORY)
    gl.warp_specialize(
        [
            (_drain, (c, sums, staging, ready, drained, tiles, across, BUFFERS, M, N, PARTS)),
            (_load, (a, b, a_slots, b_slots, full, empty, tiles, across, steps, STAGES)),
            (_multiply, (a_slots, b_slots, sums, full, empty, ready, drained, tiles, steps, STAGES, BUFFERS)),
        ],
        [1, 1],
        [24, 24],
    )


@gluon.jit
def product_pair(a, b, c, steps, M: gl.constexpr, N: gl.constexpr, MEMORY: gl.constexpr, PAIR: gl.constexpr):
    """A cluster of two CTAs, whose products may span both (cta_group::2)."""
    K: gl.constexpr = a.block_shape[1]
    a_slots = gl.allocate_shared_memory(a.dtype, [2] + a.block_shape, a.layout)
    b_slots = gl.allocate_shared_memory(b.dtype, [2] + b.block_shape, b.layout)
    loaded = mbarrier.allocate_mbarrier(batch=2, two_ctas=PAIR)
    multiplied = mbarrier.allocate_mbarrier(batch=2)
    _start(loaded, 2, 1)
    _start(multiplied, 2, 1)
    fence_async_shared(cluster=True)
    blackwell.cluster.barrier()
    sums = allocate_tensor_memory(gl.float32, [M, N], MEMORY)
    for i in range(steps):
        slot, parity = i % 2, i // 2 & 1
        mbarrier.wait(multiplied.index(slot), parity ^ 1)
        mbarrier.expect(loaded.index(slot), a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [gl.program_id(0) * M, i * K], loaded.index(slot), a_slots.index(slot))
        tma.async_load(b, [i * K, gl.program_id(1) * N], loaded.index(slot), b_slots.index(slot))
        mbarrier.wait(loaded.index(slot), parity)
        tcgen05_mma(a_slots.index(slot), b_slots.index(slot), sums, use_acc=i > 0, mbarriers=[multiplied.index(slot)])
    mbarrier.wait(multiplied.index((steps - 1) % 2), (steps - 1) // 2 & 1)
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    staging.store(sums.load().to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [gl.program_id(0) * M, gl.program_id(1) * N], staging)
    tma.store_wait(0)


@gluon.jit
def product_scaled(a, b, c, a_scale, b_scale, M: gl.constexpr, N: gl.constexpr, SCALES: gl.constexpr,
                   MEMORY: gl.constexpr, LAYOUT: gl.constexpr, FORMAT: gl.constexpr):  # fmt: skip
    """Microscaled operands, whose scales lie in tensor memory."""
    a_slot = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_slot = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    loaded, multiplied = mbarrier.allocate_mbarrier(), mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(multiplied, count=1)
    fence_async_shared()
    mbarrier.expect(loaded, a.nbytes_per_cta + b.nbytes_per_cta)
    tma.async_load(a, [0, 0], loaded, a_slot)
    tma.async_load(b, [0, 0], loaded, b_slot)
    columns = gl.arange(0, SCALES, gl.SliceLayout(0, LAYOUT))[None, :]
    a_rows, b_rows = gl.arange(0, M, gl.SliceLayout(1, LAYOUT)), gl.arange(0, N, gl.SliceLayout(1, LAYOUT))
    a_scales = allocate_tensor_memory(gl.uint8, [M, SCALES], TensorMemoryScalesLayout())
    b_scales = allocate_tensor_memory(gl.uint8, [N, SCALES], TensorMemoryScalesLayout())
    a_values = gl.load(a_scale + a_rows[:, None] * SCALES + columns)
    b_values = gl.load(b_scale + b_rows[:, None] * SCALES + columns)
    a_scales.store(gl.convert_layout(a_values, a_scales.get_reg_layout()))
    b_scales.store(gl.convert_layout(b_values, b_scales.get_reg_layout()))
    sums = allocate_tensor_memory(gl.float32, [M, N], MEMORY)
    mbarrier.wait(loaded, 0)
    tcgen05_mma_scaled(a_slot, b_slot.permute((1, 0)), sums, a_scales, b_scales, FORMAT, FORMAT, use_acc=False)
    tcgen05_commit(multiplied)
    mbarrier.wait(multiplied, 0)
    staging = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    staging.store(sums.load().to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [0, 0], staging)
    tma.store_wait(0)


@gluon.jit
def copy_to_tensor_memory(x, out, M: gl.constexpr, N: gl.constexpr, MEMORY: gl.constexpr):
    """Shared to tensor memory and back to global memory."""
    slot = gl.allocate_shared_memory(x.dtype, x.block_shape, x.layout)
    loaded, copied = mbarrier.allocate_mbarrier(), mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(copied, count=1)
    fence_async_shared()
    memory = allocate_tensor_memory(gl.float32, [M, N], MEMORY)
    mbarrier.expect(loaded, x.nbytes_per_cta)
    tma.async_load(x, [0, 0], loaded, slot)
    mbarrier.wait(loaded, 0)
    tcgen05_copy(slot, memory)
    tcgen05_commit(copied)
    mbarrier.wait(copied, 0)
    slot.store(memory.load() * 2)
    fence_async_shared()
    tma.async_store(out, [0, 0], slot)
    tma.store_wait(0)


@gluon.jit
def attention_step(q, k, v, out, steps, D: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, SCORES: gl.constexpr,
                   WEIGHTS: gl.constexpr, SUMS: gl.constexpr):  # fmt: skip
    """Scores to registers, weights back to tensor memory as the left operand of the second product."""
    q_slot = gl.allocate_shared_memory(q.dtype, q.block_shape, q.layout)
    k_slot = gl.allocate_shared_memory(k.dtype, k.block_shape, k.layout)
    v_slot = gl.allocate_shared_memory(v.dtype, v.block_shape, v.layout)
    barriers = mbarrier.allocate_mbarrier(batch=4)
    _start(barriers, 4, 1)
    fence_async_shared()
    scores = allocate_tensor_memory(gl.float32, [BM, BN], SCORES)
    weights = allocate_tensor_memory(gl.float16, [BM, BN], WEIGHTS)
    sums = allocate_tensor_memory(gl.float32, [BM, D], SUMS)
    mbarrier.expect(barriers.index(0), q.nbytes_per_cta)
    tma.async_load(q, [gl.program_id(0) * BM, 0], barriers.index(0), q_slot)
    mbarrier.wait(barriers.index(0), 0)
    total = gl.zeros([BM], gl.float32, gl.SliceLayout(1, scores.get_reg_layout()))
    for i in range(steps):
        mbarrier.expect(barriers.index(1), k.nbytes_per_cta + v.nbytes_per_cta)
        tma.async_load(k, [i * BN, 0], barriers.index(1), k_slot)
        tma.async_load(v, [i * BN, 0], barriers.index(1), v_slot)
        mbarrier.wait(barriers.index(1), i & 1)
        tcgen05_mma(q_slot, k_slot.permute((1, 0)), scores, use_acc=False, mbarriers=[barriers.index(2)])
        mbarrier.wait(barriers.index(2), i & 1)
        powers = gl.exp2(scores.load())
        total += gl.sum(powers, axis=1)
        weights.store(powers.to(gl.float16))
        tcgen05_mma(weights, v_slot, sums, use_acc=i > 0, mbarriers=[barriers.index(3)])
        mbarrier.wait(barriers.index(3), i & 1)
    result = sums.load()
    result = result / gl.convert_layout(total, gl.SliceLayout(1, sums.get_reg_layout()))[:, None]
    staging = gl.allocate_shared_memory(out.dtype, out.block_shape, out.layout)
    staging.store(result.to(out.dtype))
    fence_async_shared()
    tma.async_store(out, [gl.program_id(0) * BM, 0], staging)
    tma.store_wait(0)


@gluon.jit
def launch_control(x, out, WIDE: gl.constexpr, LAYOUT: gl.constexpr):
    """Blocks that take over the work of blocks not yet launched."""
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    fence_async_shared()
    tile, parity, going = gl.program_id(0), 0, True
    while going:
        mbarrier.expect(barrier, 16)
        clc.try_cancel(answer, barrier)
        at = tile * WIDE + gl.arange(0, WIDE, LAYOUT)
        gl.store(out + at, gl.load(x + at) * 2)
        mbarrier.wait(barrier, parity)
        result = clc.load_result(answer)
        going = result.is_canceled()
        tile = result.program_id(0)
        parity ^= 1
    mbarrier.invalidate(barrier)


@gluon.jit
def gather_scatter(x, out, index, N, BM: gl.constexpr, BN: gl.constexpr, LAYOUT: gl.constexpr):
    """Rows by index into shared memory and back."""
    slot = gl.allocate_shared_memory(x.dtype, [BM, BN], x.layout)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    fence_async_shared()
    rows = gl.load(index + gl.program_id(0) * BM + gl.arange(0, BM, LAYOUT))
    for i in range(N // BN):
        mbarrier.expect(barrier, BM * BN * 2)
        tma.async_gather(x, rows, i * BN, barrier, slot)
        mbarrier.wait(barrier, i & 1)
        tma.async_scatter(out, rows, i * BN, slot)
        tma.store_wait(0)


def products() -> Iterator[Recipe]:
    """Products of two matrices."""
    for kind, dtype, step in (("fp16", gl.float16, 64), ("bf16", gl.bfloat16, 64), ("fp8e5", gl.float8e5, 128)):
        for rows, columns, stages in ((128, 128, 3), (128, 256, 3), (64, 64, 2), (128, 64, 5)):
            if kind != "fp16" and rows == 64:
                continue
            a, b = tiled(kind, rows, step, dtype), tiled(kind, step, columns, dtype)
            c = tiled("fp16", rows, columns, gl.float16)
            label, shape = f"{kind}_m{rows}n{columns}", {"M": rows, "N": columns}
            shape["MEMORY"] = TensorMemoryLayout([rows, columns], col_stride=1)
            yield recipe(product_once, label, {"a": a, "b": b, "c": c}, shape, 100)
            types = {"a": a, "b": b, "c": c, "steps": "i32"}
            yield recipe(product_loop, f"{label}_s{stages}", types, {**shape, "STAGES": stages}, 100)
            if rows == 64:
                continue
            for parts, buffers in ((1, 1), (2, 2)):
                c = tiled("fp16", rows, columns // parts, gl.float16)
                types = {"a": a, "b": b, "c": c, "tiles": "i32", "across": "i32", "steps": "i32"}
                constants = {**shape, "STAGES": stages, "PARTS": parts, "BUFFERS": buffers}
                yield recipe(product_roles, f"{label}_s{stages}b{buffers}", types, constants, 100)


def pairs() -> Iterator[Recipe]:
    """Products of a cluster of two."""
    for pair in (False, True):
        a = tiled("fp16", 256, 64, gl.float16, cga_layout=[[1, 0]])
        b = tiled("fp16", 64, 128, gl.float16, cga_layout=[[0, 1]] if pair else [[0, 0]])
        c = tiled("fp16", 256, 128, gl.float16, cga_layout=[[1, 0]])
        memory = TensorMemoryLayout([128, 128], col_stride=1, cga_layout=[[1, 0]], two_ctas=pair)
        constants = {"M": 256, "N": 128, "MEMORY": memory, "PAIR": pair}
        types = {"a": a, "b": b, "c": c, "steps": "i32"}
        yield recipe(product_pair, "pair" if pair else "alone", types, constants, 100, num_ctas=2)


def rest() -> Iterator[Recipe]:
    """Scales, copies, attention, launch control, gathers."""
    for kind, dtype, label, step in (("fp8e5", gl.float8e5, "e5m2", 128), ("fp8e4nv", gl.float8e4nv, "e4m3", 128)):
        operand, c = tiled(kind, 128, step, dtype), tiled("fp16", 128, 128, gl.float16)
        types = {"a": operand, "b": operand, "c": c, "a_scale": "*u8", "b_scale": "*u8"}
        constants = {"M": 128, "N": 128, "SCALES": 4, "MEMORY": TensorMemoryLayout([128, 128], col_stride=1)}
        constants |= {"LAYOUT": gl.BlockedLayout([1, 4], [32, 1], [4, 1], [1, 0]), "FORMAT": label}
        yield recipe(product_scaled, label, types, constants, 100)
    single = tiled("fp32", 128, 32, gl.float32)
    constants = {"M": 128, "N": 32, "MEMORY": TensorMemoryLayout([128, 32], col_stride=1)}
    yield recipe(copy_to_tensor_memory, "", {"x": single, "out": single}, constants, 100)
    for depth in (64, 128):
        types = {name: tiled("fp16", 128, depth, gl.float16) for name in ("q", "k", "v", "out")} | {"steps": "i32"}
        constants = {"D": depth, "BM": 128, "BN": 128, "SCORES": TensorMemoryLayout([128, 128], col_stride=1)}
        constants |= {"WEIGHTS": TensorMemoryLayout([128, 128], col_stride=1)}
        constants |= {"SUMS": TensorMemoryLayout([128, depth], col_stride=1)}
        yield recipe(attention_step, f"d{depth}", types, constants, 100)
    line = gl.BlockedLayout([4], [32], [4], [0])
    yield recipe(launch_control, "", {"x": "*fp32", "out": "*fp32"}, {"WIDE": 1024, "LAYOUT": line}, 100)
    row = tiled("fp16", 1, 64, gl.float16).replace("swizzle_byte_width=0", "swizzle_byte_width=128")
    constants = {"BM": 32, "BN": 64, "LAYOUT": gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0]))}
    types = {"x": row, "out": row, "index": "*i32", "N": "i32"}
    yield recipe(gather_scatter, "", types, constants, 100)


if __name__ == "__main__":
    raise SystemExit(produce([*products(), *pairs(), *rest()], "triton"))
