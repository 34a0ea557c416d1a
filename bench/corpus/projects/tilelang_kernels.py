"""TileLang kernels of ours: TileLang writes CUDA C++, nvcc makes PTX of it."""

# ruff: noqa: N803, N806, N812

import subprocess
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import tilelang
import tilelang.language as T

from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6", "tilelang==0.1.15")

_PACKAGE = Path(tilelang.__file__).parent
_INCLUDES = (_PACKAGE / "src", _PACKAGE / "3rdparty/cutlass/include")


def product(BM=128, BN=128, BK=64, stages=3, threads=128, dtype="float16", transposed=False, swizzle=False):
    """A product, pipelined over K."""
    M, N, K = 4096, 4096, 4096
    shape = (N, K) if transposed else (K, N)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor(shape, dtype), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            a = T.alloc_shared((BM, BK), dtype)
            b = T.alloc_shared((BN, BK) if transposed else (BK, BN), dtype)
            c = T.alloc_shared((BM, BN), "float16")
            sums = T.alloc_fragment((BM, BN), "float32")
            T.use_swizzle(panel_size=10, enable=swizzle)
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(A[by * BM, k * BK], a)
                if transposed:
                    T.copy(B[bx * BN, k * BK], b)
                else:
                    T.copy(B[k * BK, bx * BN], b)
                T.gemm(a, b, sums, transpose_B=transposed)
            T.copy(sums, c)
            T.copy(c, C[by * BM, bx * BN])

    return main


def product_split(BM=128, BN=128, BK=32, stages=3, threads=128, splits=4):
    """Partial sums added with atomics."""
    M, N, K = 1024, 1024, 8192

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), splits, threads=threads) as (bx, by, bz):
            a = T.alloc_shared((BM, BK), "float16")
            b = T.alloc_shared((BK, BN), "float16")
            sums = T.alloc_fragment((BM, BN), "float32")
            T.clear(sums)
            for k in T.Pipelined(K // splits // BK, num_stages=stages):
                T.copy(A[by * BM, bz * (K // splits) + k * BK], a)
                T.copy(B[bz * (K // splits) + k * BK, bx * BN], b)
                T.gemm(a, b, sums)
            for i, j in T.Parallel(BM, BN):
                T.atomic_add(C[by * BM + i, bx * BN + j], sums[i, j])

    return main


def attention(BM=128, BN=128, D=64, stages=2, threads=256, causal=False):
    """Forward attention with a running softmax."""
    heads, long = 16, 4096
    shape = (2, long, heads, D)
    scale = D**-0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        Out: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(long, BM), heads, 2, threads=threads) as (bx, by, bz):
            q, k, v = (
                T.alloc_shared((BM, D), "float16"),
                T.alloc_shared((BN, D), "float16"),
                T.alloc_shared((BN, D), "float16"),
            )
            out = T.alloc_shared((BM, D), "float16")
            scores, weights = T.alloc_fragment((BM, BN), "float32"), T.alloc_fragment((BM, BN), "float16")
            sums = T.alloc_fragment((BM, D), "float32")
            largest, before = T.alloc_fragment((BM,), "float32"), T.alloc_fragment((BM,), "float32")
            shrink, part, total = (
                T.alloc_fragment((BM,), "float32"),
                T.alloc_fragment((BM,), "float32"),
                T.alloc_fragment((BM,), "float32"),
            )
            T.copy(Q[bz, bx * BM : (bx + 1) * BM, by, :], q)
            T.fill(sums, 0)
            T.fill(total, 0)
            T.fill(largest, -T.infinity("float32"))
            steps = T.ceildiv((bx + 1) * BM, BN) if causal else T.ceildiv(long, BN)
            for n in T.Pipelined(steps, num_stages=stages):
                T.copy(K[bz, n * BN : (n + 1) * BN, by, :], k)
                if causal:
                    for i, j in T.Parallel(BM, BN):
                        scores[i, j] = T.if_then_else(bx * BM + i >= n * BN + j, 0, -T.infinity("float32"))
                else:
                    T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(V[bz, n * BN : (n + 1) * BN, by, :], v)
                T.copy(largest, before)
                T.fill(largest, -T.infinity("float32"))
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i in T.Parallel(BM):
                    largest[i] = T.max(largest[i], before[i])
                    shrink[i] = T.exp2(before[i] * scale - largest[i] * scale)
                for i, j in T.Parallel(BM, BN):
                    scores[i, j] = T.exp2(scores[i, j] * scale - largest[i] * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(BM):
                    total[i] = total[i] * shrink[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(BM, D):
                    sums[i, j] *= shrink[i]
                T.gemm(weights, v, sums, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(BM, D):
                sums[i, j] /= total[i]
            T.copy(sums, out)
            T.copy(out, Out[bz, bx * BM : (bx + 1) * BM, by, :])

    return main


def row_sums(wide=4096, stages=2, threads=128):
    """Rows summed piece by piece."""

    @T.prim_func
    def main(X: T.Tensor((4096, wide), "float32"), Out: T.Tensor((4096,), "float32")):
        with T.Kernel(4096 // 16, threads=threads) as bx:
            piece, local = T.alloc_shared((16, 256), "float32"), T.alloc_fragment((16, 256), "float32")
            part, total = T.alloc_fragment((16,), "float32"), T.alloc_fragment((16,), "float32")
            T.clear(total)
            for k in T.Pipelined(wide // 256, num_stages=stages):
                T.copy(X[bx * 16, k * 256], piece)
                T.copy(piece, local)
                T.reduce_sum(local, part, dim=1)
                for i in T.Parallel(16):
                    total[i] += part[i]
            T.copy(total, Out[bx * 16])

    return main


def ptx(build, given: Mapping[str, object], arch: str, settings: Mapping[str, object]) -> str:
    """Lower one kernel to CUDA C++ and compile that, with line information."""
    target = tilelang.tvm.target.Target({"kind": "cuda", "arch": arch})
    with tilelang.tvm.transform.PassContext(opt_level=3, config=dict(settings)), target:
        lowered = tilelang.lower(build(**given), target=target, enable_host_codegen=False, enable_device_compile=False)
    source = Path("kernel.cu")
    source.write_text(lowered.kernel_source, encoding="utf-8")
    includes = [f"-I{folder}" for folder in _INCLUDES]
    flags = ["-ptx", "-O3", "-std=c++17", "-lineinfo", f"-arch={arch}", "-DENABLE_BF16"]
    ran = subprocess.run(
        ["nvcc", *flags, *includes, str(source), "-o", "kernel.ptx"], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(next((line for line in ran.stderr.splitlines() if "error" in line), ran.stderr))
    return Path("kernel.ptx").read_text(encoding="utf-8")


def _recipe(build, label: str, given: Mapping[str, object], arch: str, **settings: object) -> Recipe:
    name = "_".join(part for part in (build.__name__, label, arch) if part)
    return Recipe(name, arch, partial(ptx, build, given, arch, settings))


def recipes() -> Iterator[Recipe]:
    """All kernels."""
    plain = {"tl.disable_warp_specialized": True}
    older = {"tl.disable_warp_specialized": True, "tl.disable_tma_lower": True}
    for arch in ("sm_90a", "sm_100a", "sm_120a", "sm_80"):
        stages = (2, 3, 4) if arch == "sm_90a" else (3,)
        for count in stages:
            yield _recipe(product, f"s{count}", {"stages": count}, arch)
        yield _recipe(product, "bf16_t", {"dtype": "bfloat16", "transposed": True, "stages": 2}, arch)
        yield _recipe(product, "k32_swizzle", {"BK": 32, "swizzle": True, "stages": 2}, arch)
        yield _recipe(product_split, "", {}, arch)
        yield _recipe(row_sums, "", {}, arch)
        for causal in (False, True):
            given = {"causal": causal, "BM": 64, "BN": 64, "threads": 128} if arch != "sm_90a" else {"causal": causal}
            yield _recipe(attention, "causal" if causal else "", given, arch)
    for label, settings in {"plain": plain, "older": older}.items():
        yield Recipe(f"product_{label}_sm_90a", "sm_90a", partial(ptx, product, {}, "sm_90a", settings))
        yield Recipe(f"attention_{label}_sm_90a", "sm_90a", partial(ptx, attention, {}, "sm_90a", settings))
    yield _recipe(product, "n256_w8", {"BN": 256, "threads": 256, "stages": 3}, "sm_90a")
    yield _recipe(product, "m256_w8", {"BM": 256, "threads": 256, "stages": 2}, "sm_90a")
    yield _recipe(product, "fp8", {"dtype": "float8_e4m3", "transposed": True, "BK": 128}, "sm_90a")
    yield _recipe(attention, "d128", {"D": 128}, "sm_90a")
    yield _recipe(attention, "d128_s1", {"D": 128, "stages": 1, "causal": True}, "sm_90a")


if __name__ == "__main__":
    raise SystemExit(produce(list(recipes()), "tilelang", time_limit=1800))
