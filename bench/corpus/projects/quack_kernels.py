"""QuACK (CuTe DSL): matrix products in many tilings and row kernels over clusters, compiled on fake tensors."""

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from bench.corpus.cute_dump import assume_hardware, dumped, prepare
from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6", "triton==3.9.0", "quack-kernels==0.6.5")


def _prepare(arch: str) -> None:
    prepare(arch, QUACK_ARCH=arch.rstrip("a"), QUACK_CACHE_ENABLED="0")
    assume_hardware()


def _tensor(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="cuda")


def product(arch: str, tile: tuple[int, int], cluster: tuple[int, int], given: Mapping[str, object]) -> str:
    """A product D = A B (+ C); ``given`` holds what to vary and keywords of the library's own function."""
    _prepare(arch)
    from quack import gemm

    gemm.run_gemm_plan = lambda *_, **__: None
    options = dict(given)
    kind, many = options.pop("dtype", torch.bfloat16), options.pop("batched", True)
    added, rows, columns = options.pop("added", False), options.pop("rows", False), options.pop("columns", False)
    lead, total = ((4,), 4) if many else ((), 1)
    out = torch.bfloat16 if kind.itemsize == 1 else kind
    with FakeTensorMode():
        a, b = _tensor(*lead, 2048, 4096, dtype=kind), _tensor(*lead, 3072, 4096, dtype=kind)
        d = _tensor(*lead, 2048, 3072, dtype=out)
        if options.pop("varlen_m", False):
            a, b, d = (
                _tensor(8192, 4096, dtype=kind),
                _tensor(4, 3072, 4096, dtype=kind),
                _tensor(8192, 3072, dtype=out),
            )
            options["cu_seqlens_m"] = _tensor(5, dtype=torch.int32)
            if options.pop("gather", False):
                options["A_idx"] = _tensor(8192, dtype=torch.int32)
        if options.pop("varlen_k", False):
            a, b = _tensor(8192, 2048, dtype=kind).mT, _tensor(8192, 3072, dtype=kind).mT
            options["cu_seqlens_k"] = _tensor(5, dtype=torch.int32)
        if options.pop("transposed", False):
            a, b = _tensor(*lead, 4096, 2048, dtype=kind).mT, _tensor(*lead, 4096, 3072, dtype=kind).mT
        if options.get("is_dynamic_persistent") and arch == "sm_90a":
            options["tile_count_semaphore"] = _tensor(1, dtype=torch.int32)
        if scaled := options.pop("scaled", ""):
            vector, scale = (16, torch.float8_e4m3fn) if scaled == "nvfp4" else (32, torch.float8_e8m0fnu)
            options["bs_format_a"] = options["bs_format_b"] = scaled
            options["SFA"] = _tensor(total, 16, 4096 // vector // 4, 32, 4, 4, dtype=scale)
            options["SFB"] = _tensor(total, 24, 4096 // vector // 4, 32, 4, 4, dtype=scale)
            if "fp4" in scaled:
                a, b = (_tensor(*lead, n, 2048, dtype=torch.float4_e2m1fn_x2) for n in (2048, 3072))
        c = _tensor(*d.shape, dtype=out) if added else None
        if rows:
            options["rowvec_bias"] = _tensor(total, 3072)
        if columns:
            options["colvec_bias"] = _tensor(total, 2048)
        gemm.gemm(a, b, d, c, options.pop("tile_count_semaphore", None), *tile, *cluster, **options)
    return dumped()


def symmetric(arch: str, tile: tuple[int, int], cluster: tuple[int, int], given: Mapping[str, object]) -> str:
    """A product with a symmetric result."""
    _prepare(arch)
    from quack import gemm_symmetric

    gemm_symmetric.run_gemm_symmetric_plan = lambda *_, **__: None
    with FakeTensorMode():
        a, d = _tensor(4, 2048, 4096), _tensor(4, 2048, 2048)
        gemm_symmetric.gemm_symmetric(a, a, d, None, None, *tile, *cluster, **given)
    return dumped()


def rows(arch: str, kind: str, wide: int) -> str:
    """A kernel over rows, whose CTAs form a cluster when the row is long."""
    _prepare(arch)
    import cutlass
    from quack import cross_entropy, rmsnorm, softmax, topk

    half, single, whole = cutlass.BFloat16, cutlass.Float32, cutlass.Int64
    if kind == "softmax":
        softmax.Softmax.compile(half, half, wide)
    elif kind == "softmax_backward":
        softmax.SoftmaxBackward.compile(half, half, half, wide)
    elif kind == "rmsnorm":
        rmsnorm._compile_rmsnorm_fwd(half, half, half, single, None, half, wide, True, False, False, False)
    elif kind == "layernorm":
        rmsnorm._compile_rmsnorm_fwd(half, half, None, single, single, None, wide, True, True, True, False)
    elif kind == "rmsnorm_backward":
        rmsnorm._compile_rmsnorm_bwd(wide, half, half, half, single, False, None, None, True)
    elif kind == "cross_entropy":
        cross_entropy.CrossEntropy.compile(half, whole, None, wide, True, False, None, 1)
    elif kind == "cross_entropy_with_gradient":
        cross_entropy.CrossEntropy.compile(half, whole, None, wide, True, True, None, 1)
    elif kind == "cross_entropy_backward":
        cross_entropy.CrossEntropyBackward.compile(half, whole, wide, None)
    else:
        topk.TopK.compile(half, wide, 16, True)
    return dumped()


def _named(make, label: str, arch: str, tile: tuple[int, int], cluster: tuple[int, int], given: Mapping[str, object]):
    shape = f"{tile[0]}x{tile[1]}_c{cluster[0]}{cluster[1]}"
    name = "_".join(part for part in (make.__name__, shape, label, arch) if part)
    return Recipe(name, arch, partial(make, arch, tile, cluster, given))


def hopper() -> Iterator[Recipe]:
    """Products for sm_90a."""
    half, byte = torch.float16, torch.float8_e4m3fn
    for tile, cluster in (((128, 192), (2, 1)), ((128, 128), (1, 1)), ((192, 128), (1, 2))):
        yield _named(product, "pingpong", "sm_90a", tile, cluster, {"pingpong": True})
    for tile, cluster in (((256, 128), (2, 1)), ((128, 256), (1, 2)), ((256, 192), (2, 1)), ((128, 128), (2, 2))):
        yield _named(product, "", "sm_90a", tile, cluster, {})
    cases: dict[str, dict[str, object]] = {
        "added": {"added": True, "beta": 0.5},
        "bias": {"rows": True, "columns": True, "dtype": half},
        "once": {"persistent": False},
        "flat": {"batched": False},
        "transposed": {"transposed": True},
        "dynamic": {"is_dynamic_persistent": True},
        "dynamic_pingpong": {"is_dynamic_persistent": True, "pingpong": True},
        "varlen_m": {"varlen_m": True},
        "varlen_k": {"varlen_k": True},
        "gather": {"varlen_m": True, "gather": True},
        "gather_pingpong": {"varlen_m": True, "gather": True, "pingpong": True},
        "split": {"split_k": 4},
        "split_parallel": {"split_k": 4, "split_k_mode": 1},
        "fp8": {"dtype": byte},
        "fp8_pingpong": {"dtype": byte, "pingpong": True},
        "into": {"add_to_output": True},
    }
    for label, given in cases.items():
        cluster = (1, 1) if "gather" in label else (2, 1)
        yield _named(product, label, "sm_90a", (128, 128), cluster, given)
    yield _named(symmetric, "", "sm_90a", (128, 128), (2, 1), {})
    yield _named(symmetric, "pingpong", "sm_90a", (128, 128), (1, 1), {"pingpong": True})


def blackwell() -> Iterator[Recipe]:
    """Products for sm_100a and sm_120a."""
    byte = torch.float8_e4m3fn
    for tile, cluster in (((256, 256), (2, 1)), ((128, 128), (1, 1)), ((256, 192), (2, 2)), ((128, 64), (1, 2))):
        for dynamic in (False, True):
            label = "control" if dynamic else ""
            yield _named(product, label, "sm_100a", tile, cluster, {"is_dynamic_persistent": dynamic})
    cases: dict[str, dict[str, object]] = {
        "added": {"added": True, "beta": 0.5},
        "bias": {"rows": True, "columns": True},
        "once": {"persistent": False},
        "transposed": {"transposed": True},
        "varlen_m": {"varlen_m": True},
        "varlen_k": {"varlen_k": True},
        "gather": {"varlen_m": True, "gather": True},
        "gather_tma": {"varlen_m": True, "gather": True, "use_tma_gather": True},
        "gather_control": {"varlen_m": True, "gather": True, "is_dynamic_persistent": True},
        "split": {"split_k": 4},
        "split_parallel": {"split_k": 4, "split_k_mode": 1},
        "fp8": {"dtype": byte},
        "mxfp8": {"dtype": byte, "scaled": "mxfp8_e4m3"},
        "nvfp4": {"scaled": "nvfp4"},
    }
    for label, given in cases.items():
        for tile, cluster in (((256, 128), (2, 1)), ((128, 128), (1, 1))):
            yield _named(product, label, "sm_100a", tile, cluster, given)
    yield _named(symmetric, "", "sm_100a", (256, 256), (2, 1), {})
    for tile in ((128, 128), (128, 64), (64, 128)):
        for pingpong in (False, True):
            label = "pingpong" if pingpong else ""
            yield _named(product, label, "sm_120a", tile, (1, 1), {"pingpong": pingpong})
    yield _named(product, "mxfp8", "sm_120a", (128, 128), (1, 1), cases["mxfp8"])
    for tile, warps in (((128, 128), 4), ((128, 256), 8), ((64, 128), 4)):
        given = {"num_warps": warps, "tile_K": 32, "persistent": False}
        yield _named(product, f"w{warps}", "sm_80", tile, (1, 1), given)


def over_rows() -> Iterator[Recipe]:
    """Row kernels."""
    long = ("softmax", "softmax_backward", "rmsnorm", "rmsnorm_backward", "layernorm", "cross_entropy")
    for arch in ("sm_90a", "sm_100a"):
        for kind in (*long, "cross_entropy_with_gradient", "cross_entropy_backward"):
            for wide in (4096, 65536) if arch == "sm_90a" else (131072,):
                yield Recipe(f"{kind}_{wide}_{arch}", arch, partial(rows, arch, kind, wide))
        yield Recipe(f"topk_1024_{arch}", arch, partial(rows, arch, "topk", 1024))


if __name__ == "__main__":
    raise SystemExit(produce([*hopper(), *blackwell(), *over_rows()], "quack-kernels", time_limit=1800))
