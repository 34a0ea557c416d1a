"""Triton kernels of ours, compiled without a GPU for Ampere, Hopper and Blackwell in many configurations."""

# ruff: noqa: N803, N806

import os
from collections.abc import Iterator, Mapping
from functools import partial

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6", "triton==3.9.0")


@triton.jit
def matmul(a, b, c, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    """Pointer loads that the compiler pipelines with cp.async."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_at = a + rows[:, None] * sam + inner[None, :]
    b_at = b + inner[:, None] * sbk + columns[None, :]
    sums = tl.zeros((BM, BN), ACC)
    for k in range(tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(a_at, mask=inner[None, :] < left, other=0.0)
        y = tl.load(b_at, mask=inner[:, None] < left, other=0.0)
        sums = tl.dot(x, y, sums)
        a_at += BK
        b_at += BK * sbk
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * scm + columns[None, :], sums.to(c.dtype.element_ty), mask=inside)


@triton.jit
def matmul_split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    """Partial sums added to the result with atomics."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.program_id(2) * BK + tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for _ in range(tl.cdiv(K, BK * SPLIT)):
        x = tl.load(a + rows[:, None] * K + inner[None, :], mask=inner[None, :] < K, other=0.0)
        y = tl.load(b + inner[:, None] * N + columns[None, :], mask=inner[:, None] < K, other=0.0)
        sums += tl.dot(x, y)
        inner += BK * SPLIT
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], sums, mask=inside)


@triton.jit
def matmul_tma(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    """Tensor descriptors made on the device."""
    a_tiles = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_tiles = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    c_tiles = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=WS):
        x = a_tiles.load([row, k * BK])
        y = b_tiles.load([column, k * BK])
        sums = tl.dot(x, y.T, sums)
    c_tiles.store([row, column], sums.to(c.dtype.element_ty))


@triton.jit
def matmul_host_tma(a_tiles, b_tiles, c_tiles, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Tensor descriptors that the host passes as kernel parameters."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = a_tiles.load([row, k * BK])
        y = b_tiles.load([column, k * BK])
        sums = tl.dot(x, y.T, sums)
    c_tiles.store([row, column], sums.to(tl.float16))


@triton.jit
def matmul_persistent(
    a, b, c, M, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    WS: tl.constexpr, FLATTEN: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    """A persistent loop over tiles, flattened or warp-specialized, with a whole or halved epilogue."""
    a_tiles = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_tiles = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    WIDTH: tl.constexpr = BN // 2 if HALVES else BN
    c_tiles = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, WIDTH])
    down, steps = tl.cdiv(M, BM), tl.cdiv(K, BK)
    for tile in tl.range(tl.program_id(0), down * tl.cdiv(N, BN), SMS, flatten=FLATTEN, warp_specialize=WS):
        row, column = tile % down * BM, tile // down * BN
        sums = tl.zeros((BM, BN), tl.float32)
        for k in range(steps):
            x = a_tiles.load([row, k * BK])
            y = b_tiles.load([column, k * BK])
            sums = tl.dot(x, y.T, sums)
        if HALVES:
            low, high = sums.reshape(BM, 2, BN // 2).permute(0, 2, 1).split()
            c_tiles.store([row, column], low.to(c.dtype.element_ty))
            c_tiles.store([row, column + BN // 2], high.to(c.dtype.element_ty))
        else:
            c_tiles.store([row, column], sums.to(c.dtype.element_ty))


@triton.jit
def matmul_grouped(pointers, sizes, groups, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One launch for many products: descriptors are made inside the loop."""
    tile, last = tl.program_id(0), 0
    for group in range(groups):
        M, N, K = tl.load(sizes + group * 3), tl.load(sizes + group * 3 + 1), tl.load(sizes + group * 3 + 2)
        down, tiles = tl.cdiv(M, BM), tl.cdiv(M, BM) * tl.cdiv(N, BN)
        if tile >= last and tile < last + tiles:
            a = tl.load(pointers + group * 3).to(tl.pointer_type(tl.float16))
            b = tl.load(pointers + group * 3 + 1).to(tl.pointer_type(tl.float16))
            c = tl.load(pointers + group * 3 + 2).to(tl.pointer_type(tl.float16))
            a_tiles = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
            b_tiles = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
            c_tiles = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
            while tile >= last and tile < last + tiles:
                row, column = (tile - last) % down * BM, (tile - last) // down * BN
                sums = tl.zeros((BM, BN), tl.float32)
                for k in range(tl.cdiv(K, BK)):
                    sums = tl.dot(a_tiles.load([row, k * BK]), b_tiles.load([column, k * BK]).T, sums)
                c_tiles.store([row, column], sums.to(tl.float16))
                tile += SMS
        last += tiles


@triton.jit
def matmul_scaled(
    a, b, c, a_scale, b_scale, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORMAT: tl.constexpr
):
    """Microscaled operands (mxfp8, mxfp4)."""
    PACK: tl.constexpr = 2 if FORMAT == "e2m1" else 1
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner, blocks = tl.arange(0, BK // PACK), tl.arange(0, BK // 32)
    sums = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(a + rows[:, None] * (K // PACK) + inner[None, :] + k * (BK // PACK))
        y = tl.load(b + columns[None, :] * (K // PACK) + inner[:, None] + k * (BK // PACK))
        x_scale = tl.load(a_scale + rows[:, None] * (K // 32) + blocks[None, :] + k * (BK // 32))
        y_scale = tl.load(b_scale + columns[:, None] * (K // 32) + blocks[None, :] + k * (BK // 32))
        sums = tl.dot_scaled(x, x_scale, FORMAT, y, y_scale, FORMAT, sums)
    tl.store(c + rows[:, None] * N + columns[None, :], sums.to(tl.float16), mask=rows[:, None] < M)


@triton.jit
def attention(q, k, v, out, L, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
              WS: tl.constexpr):  # fmt: skip
    """Forward attention over tensor descriptors, with a running softmax."""
    base = tl.program_id(1) * L * D
    q_tiles = tl.make_tensor_descriptor(q + base, [L, D], [D, 1], [BM, D])
    k_tiles = tl.make_tensor_descriptor(k + base, [L, D], [D, 1], [BN, D])
    v_tiles = tl.make_tensor_descriptor(v + base, [L, D], [D, 1], [BN, D])
    out_tiles = tl.make_tensor_descriptor(out + base, [L, D], [D, 1], [BM, D])
    start = tl.program_id(0) * BM
    rows = start + tl.arange(0, BM)
    queries = q_tiles.load([start, 0])
    largest, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    end = start + BM if CAUSAL else L
    for at in tl.range(0, end, BN, warp_specialize=WS):
        scores = tl.dot(queries, k_tiles.load([at, 0]).T) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= at + tl.arange(0, BN)[None, :], scores, float("-inf"))
        above = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.math.exp2(scores - above[:, None])
        shrink = tl.math.exp2(largest - above)
        total = total * shrink + tl.sum(weights, 1)
        sums = tl.dot(weights.to(tl.float16), v_tiles.load([at, 0]), sums * shrink[:, None])
        largest = above
    out_tiles.store([start, 0], (sums / total[:, None]).to(tl.float16))


@triton.jit
def attention_pointers(q, k, v, out, L, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Forward attention over plain pointers, pipelined with cp.async."""
    base = tl.program_id(1) * L * D
    rows, wide = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + base + rows[:, None] * D + wide[None, :])
    largest, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, D), tl.float32)
    for at in range(0, L, BN):
        keys = base + (at + tl.arange(0, BN))[:, None] * D + wide[None, :]
        scores = tl.dot(queries, tl.load(k + keys).T) * scale
        above = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.math.exp2(scores - above[:, None])
        shrink = tl.math.exp2(largest - above)
        total = total * shrink + tl.sum(weights, 1)
        sums = tl.dot(weights.to(tl.float16), tl.load(v + keys), sums * shrink[:, None])
        largest = above
    tl.store(out + base + rows[:, None] * D + wide[None, :], (sums / total[:, None]).to(tl.float16))


@triton.jit
def attention_backward(q, k, v, g, lse, delta, dk, dv, L, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
                       WS: tl.constexpr):  # fmt: skip
    """Gradients of keys and values: five products a step."""
    q_tiles = tl.make_tensor_descriptor(q, [L, D], [D, 1], [BM, D])
    g_tiles = tl.make_tensor_descriptor(g, [L, D], [D, 1], [BM, D])
    at, wide = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    keys = tl.load(k + at[:, None] * D + wide[None, :])
    values = tl.load(v + at[:, None] * D + wide[None, :])
    key_sums, value_sums = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    for start in tl.range(0, L, BM, warp_specialize=WS):
        rows = start + tl.arange(0, BM)
        queries, gradients = q_tiles.load([start, 0]), g_tiles.load([start, 0])
        weights = tl.math.exp2(tl.dot(keys, queries.T) * scale - tl.load(lse + rows)[None, :])
        value_sums = tl.dot(weights.to(tl.float16), gradients, value_sums)
        change = weights * (tl.dot(values, gradients.T) - tl.load(delta + rows)[None, :])
        key_sums = tl.dot(change.to(tl.float16), queries, key_sums)
    tl.store(dk + at[:, None] * D + wide[None, :], key_sums.to(tl.float16))
    tl.store(dv + at[:, None] * D + wide[None, :], value_sums.to(tl.float16))


@triton.jit
def softmax(x, out, rows, columns, STEP: tl.constexpr, WIDE: tl.constexpr, STAGES: tl.constexpr):
    """Rows in a pipelined persistent loop."""
    at = tl.arange(0, WIDE)
    for row in tl.range(tl.program_id(0), rows, STEP, num_stages=STAGES):
        values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, WIDE: tl.constexpr):
    """Two passes over a row, then the scaled result."""
    row = tl.program_id(0) * columns
    mean, square = tl.zeros((WIDE,), tl.float32), tl.zeros((WIDE,), tl.float32)
    for at in range(0, columns, WIDE):
        place = at + tl.arange(0, WIDE)
        values = tl.load(x + row + place, mask=place < columns, other=0.0).to(tl.float32)
        mean += values
        square += values * values
    centre = tl.sum(mean) / columns
    scale = tl.rsqrt(tl.sum(square) / columns - centre * centre + eps)
    for at in range(0, columns, WIDE):
        place = at + tl.arange(0, WIDE)
        values = tl.load(x + row + place, mask=place < columns, other=0.0).to(tl.float32)
        slope, shift = tl.load(weight + place, mask=place < columns), tl.load(bias + place, mask=place < columns)
        tl.store(out + row + place, (values - centre) * scale * slope + shift, mask=place < columns)


@triton.jit
def locked_sum(x, out, lock, count, columns, WIDE: tl.constexpr):
    """Rows added up under a spin lock in global memory."""
    at = tl.arange(0, WIDE)
    part = tl.load(x + tl.program_id(0) * columns + at, mask=at < columns, other=0.0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        part += tl.load(out + at, mask=at < columns)
    tl.store(out + at, part, mask=at < columns)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def grid_barrier(x, out, arrived, PROGRAMS: tl.constexpr, WIDE: tl.constexpr):
    """Every program waits for all others through a counter, then reads a neighbour's result."""
    mine = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    tl.store(out + mine, tl.load(x + mine) * 2)
    tl.debug_barrier()
    tl.atomic_add(arrived, 1, sem="release", scope="gpu")
    while tl.atomic_add(arrived, 0, sem="acquire", scope="gpu") < PROGRAMS:
        pass
    other = (tl.program_id(0) + 1) % PROGRAMS * WIDE + tl.arange(0, WIDE)
    tl.store(x + mine, tl.load(out + other))


@triton.jit
def _first_order(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def scans(x, y, out, LONG: tl.constexpr, WIDE: tl.constexpr):
    """A running sum, a linear recurrence, a sort, a histogram and an argmax over one tile."""
    place = tl.arange(0, LONG)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    values, decay = tl.load(x + place), tl.load(y + place)
    _, state = tl.associative_scan((decay, values), 0, _first_order)
    tl.store(out + place, tl.cumsum(values, 1) + state)
    tl.store(out + LONG * WIDE + place, tl.sort(values))
    tl.store(out + 2 * LONG * WIDE + tl.arange(0, LONG), tl.argmax(values, 1).to(tl.float32))
    counts = tl.histogram(tl.ravel(values).to(tl.int32) & 63, 64)
    tl.atomic_add(out + 3 * LONG * WIDE + tl.arange(0, 64), counts.to(tl.float32))


@triton.jit
def gather_rows(x, index, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Rows by index through a descriptor: gather on load, scatter on store."""
    x_tiles = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, BN])
    out_tiles = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, BN])
    rows = tl.load(index + tl.program_id(0) * BM + tl.arange(0, BM))
    for column in range(0, N, BN):
        out_tiles.scatter(x_tiles.gather(rows, column) * 2, rows, column)


@triton.jit
def reduce_tiles(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Tiles added to global memory by the copy engine."""
    x_tiles = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    out_tiles = tl.make_tensor_descriptor(out, [BM, N], [N, 1], [BM, BN])
    for row in tl.range(0, M, BM, num_stages=3):
        out_tiles.atomic_add([0, tl.program_id(0) * BN], x_tiles.load([row, tl.program_id(0) * BN]))


@triton.jit
def copy_blocks(x, out, A, B, C, BA: tl.constexpr, BB: tl.constexpr, BC: tl.constexpr):
    """Three-dimensional tiles there and back."""
    x_tiles = tl.make_tensor_descriptor(x, [A, B, C], [B * C, C, 1], [BA, BB, BC])
    out_tiles = tl.make_tensor_descriptor(out, [A, C, B], [B * C, B, 1], [BA, BC, BB])
    for at in tl.range(0, C, BC, num_stages=2):
        tile = x_tiles.load([tl.program_id(0) * BA, tl.program_id(1) * BB, at])
        out_tiles.store([tl.program_id(0) * BA, at, tl.program_id(1) * BB], tile.permute(0, 2, 1))


def ptx(kernel: object, signature: str, constants: Mapping[str, object], capability: int, **options: int) -> str:
    """Compile one kernel; ``signature`` lists ``name:type`` with pointers and sizes taken as multiples of 16."""
    os.environ["TRITON_CACHE_DIR"] = os.getcwd()
    types = dict(pair.split(":") for pair in signature.split())
    names = list(types)
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if types[name][0] in "*i"}
    source = ASTSource(kernel, types, dict(constants), aligned)
    if capability >= 90:
        options["ptx_version"] = 90
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["ptx"]


def recipe(
    kernel: object, label: str, signature: str, constants: Mapping[str, object], capability: int, **options: int
):
    """One module, named after the kernel, its label and its architecture."""
    arch = f"sm_{capability}a" if capability >= 90 else f"sm_{capability}"
    name = "_".join(part for part in (kernel.__name__, label, arch) if part)
    return Recipe(name, arch, partial(ptx, kernel, signature, constants, capability, **options))


POINTERS = "a:*{0} b:*{0} c:*{1} M:i32 N:i32 K:i32"
TILES = {"BM": 128, "BN": 128, "BK": 64}
ALL = (80, 90, 100, 120)
TMA = (90, 100, 120)


def products() -> Iterator[Recipe]:
    """Matrix products."""
    strided = POINTERS + " sam:i32 sbk:i32 scm:i32"
    for capability in ALL:
        for stages in (2, 3, 4, 5):
            sizes = {"BM": 128, "BN": 64 * (1 + stages % 2), "BK": 32, "ACC": tl.float32}
            yield recipe(matmul, f"f16_s{stages}", strided.format("fp16", "fp16"), sizes, capability, num_stages=stages)
        for kind, warps in (("bf16", 8), ("fp32", 4), ("fp8e5", 4)):
            sizes = {"BM": 128, "BN": 128, "BK": 64, "ACC": tl.float32}
            given = strided.format(kind, "fp32")
            yield recipe(matmul, f"{kind}_w{warps}", given, sizes, capability, num_warps=warps, num_stages=3)
        sizes = {"BM": 64, "BN": 64, "BK": 64, "ACC": tl.int32}
        yield recipe(matmul, "i8", strided.format("i8", "i32"), sizes, capability, num_stages=4)
        given = POINTERS.format("fp16", "fp32")
        yield recipe(matmul_split_k, "", given, {**TILES, "BK": 32, "SPLIT": 4}, capability, num_stages=4, num_warps=8)
    for capability in TMA:
        for stages in (2, 3, 4):
            for special in (False, True):
                label, given = f"s{stages}{'_ws' * special}", POINTERS.format("fp16", "fp16")
                yield recipe(matmul_tma, label, given, {**TILES, "WS": special}, capability, num_stages=stages)
        given, sizes = POINTERS.format("fp8e5", "fp16"), {"BM": 128, "BN": 256, "BK": 128, "WS": True}
        yield recipe(matmul_tma, "fp8_ws_w8", given, sizes, capability, num_stages=2, num_warps=8)
        given, sizes = POINTERS.format("bf16", "bf16"), {"BM": 64, "BN": 256, "BK": 64, "WS": False}
        yield recipe(matmul_tma, "bf16_w8", given, sizes, capability, num_stages=3, num_warps=8)
        given = (
            "a_tiles:tensordesc<fp16[128,64]> b_tiles:tensordesc<fp16[128,64]> c_tiles:tensordesc<fp16[128,128]> K:i32"
        )
        yield recipe(matmul_host_tma, "s3", given, TILES, capability, num_stages=3)
        yield recipe(matmul_host_tma, "s4_w8", given, TILES, capability, num_stages=4, num_warps=8)
        for special, flatten, halves in ((0, 0, 0), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)):
            label = f"{'ws' * special}{'flat' * flatten}{'half' * halves}" or "plain"
            sizes = {**TILES, "SMS": 132, "WS": bool(special), "FLATTEN": bool(flatten), "HALVES": bool(halves)}
            given = POINTERS.format("fp16", "fp16")
            yield recipe(
                matmul_persistent, label, given, sizes, capability, num_stages=3, num_warps=4 + 4 * (flatten ^ 1)
            )
        given = "pointers:*i64 sizes:*i32 groups:i32"
        yield recipe(matmul_grouped, "", given, {**TILES, "SMS": 132}, capability, num_stages=3)
        given = "a:*{0} b:*{0} c:*fp16 a_scale:*u8 b_scale:*u8 M:i32 N:i32 K:i32"
        for kind, scalar in (("e5m2", "fp8e5"), ("e2m1", "u8")):
            sizes = {"BM": 128, "BN": 128, "BK": 128, "FORMAT": kind}
            yield recipe(matmul_scaled, kind, given.format(scalar), sizes, capability, num_stages=3, num_warps=8)


def attentions() -> Iterator[Recipe]:
    """Attention, forward and backward."""
    given = "q:*fp16 k:*fp16 v:*fp16 out:*fp16 L:i32 scale:fp32"
    for capability in TMA:
        for depth, causal, special, warps in (
            (64, 0, 0, 4),
            (64, 1, 1, 4),
            (128, 0, 1, 4),
            (128, 1, 0, 8),
            (128, 0, 1, 8),
        ):
            sizes = {"BM": 128, "BN": 64, "D": depth, "CAUSAL": bool(causal), "WS": bool(special)}
            label = f"d{depth}{'_causal' * causal}{'_ws' * special}_w{warps}"
            yield recipe(attention, label, given, sizes, capability, num_stages=3, num_warps=warps)
        for special in (False, True):
            backward = "q:*fp16 k:*fp16 v:*fp16 g:*fp16 lse:*fp32 delta:*fp32 dk:*fp16 dv:*fp16 L:i32 scale:fp32"
            sizes = {"BM": 64, "BN": 128, "D": 64, "WS": special}
            label = "ws" if special else ""
            yield recipe(attention_backward, label, backward, sizes, capability, num_stages=2, num_warps=4)
    for capability in ALL:
        for stages in (2, 4):
            sizes = {"BM": 128, "BN": 32 * stages, "D": 64}
            yield recipe(attention_pointers, f"s{stages}", given, sizes, capability, num_stages=stages)


def rest() -> Iterator[Recipe]:
    """Rows, scans, atomics, copies."""
    for capability in ALL:
        given, sizes = "x:*fp32 out:*fp32 rows:i32 columns:i32", {"STEP": 264, "WIDE": 2048, "STAGES": 4}
        yield recipe(softmax, "s4", given, sizes, capability, num_warps=8)
        given = "x:*fp16 weight:*fp16 bias:*fp16 out:*fp16 columns:i32 eps:fp32"
        yield recipe(layer_norm, "", given, {"WIDE": 1024}, capability, num_warps=8, num_stages=3)
        yield recipe(locked_sum, "", "x:*fp32 out:*fp32 lock:*i32 count:*i32 columns:i32", {"WIDE": 1024}, capability)
        yield recipe(grid_barrier, "", "x:*fp32 out:*fp32 arrived:*i32", {"PROGRAMS": 132, "WIDE": 512}, capability)
        yield recipe(scans, "", "x:*fp32 y:*fp32 out:*fp32", {"LONG": 64, "WIDE": 64}, capability, num_warps=8)
    for capability in TMA:
        given = "x:*fp16 index:*i32 out:*fp16 M:i32 N:i32"
        if capability == 100:
            yield recipe(gather_rows, "", given, {"BM": 32, "BN": 64}, capability)
        yield recipe(reduce_tiles, "", "x:*fp32 out:*fp32 M:i32 N:i32", {"BM": 64, "BN": 64}, capability)
        given = "x:*fp16 out:*fp16 A:i32 B:i32 C:i32"
        yield recipe(copy_blocks, "", given, {"BA": 2, "BB": 64, "BC": 64}, capability)


if __name__ == "__main__":
    raise SystemExit(produce([*products(), *attentions(), *rest()], "triton"))
