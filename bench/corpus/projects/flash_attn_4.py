"""FlashAttention 4 (CuTe DSL): forward, split, paged, latent and backward attention, compiled on fake tensors."""

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from bench.corpus.cute_dump import assume_hardware, dumped, prepare
from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6", "triton==3.9.0", "flash-attn-4==4.0.0b36")

_PROCESSORS = {"sm_80": "108", "sm_90a": "132", "sm_100a": "148", "sm_120a": "188"}


def _prepare(arch: str, settings: Mapping[str, str]) -> None:
    prepare(arch, FLASH_ATTENTION_ARCH=arch.rstrip("a"), FLASH_ATTENTION_NUM_SMS=_PROCESSORS[arch], **settings)
    assume_hardware()


def _tensor(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="cuda")


def forward(arch: str, given: Mapping[str, object], settings: Mapping[str, str]) -> str:
    """The forward kernel; ``given`` holds shapes and the keywords that the library's own function takes."""
    _prepare(arch, settings)
    from flash_attn.cute import interface

    options = dict(given)
    depth, depth_v = options.pop("depth", 128), options.pop("depth_v", None)
    heads, shared = options.pop("heads", 8), options.pop("heads_kv", 2)
    kind, long = options.pop("dtype", torch.bfloat16), options.pop("long", 2048)
    varlen, paged, sink = options.pop("varlen", False), options.pop("paged", 0), options.pop("sink", False)
    lead = (4 * long,) if varlen else (4, long)
    lead_kv = (64, paged) if paged else lead
    with FakeTensorMode():
        q = _tensor(*lead, heads, depth, dtype=kind)
        k = _tensor(*lead_kv, shared, depth, dtype=kind)
        v = _tensor(*lead_kv, shared, depth_v or depth, dtype=kind)
        if varlen:
            options["cu_seqlens_q"] = options["cu_seqlens_k"] = _tensor(5, dtype=torch.int32)
        if paged:
            options["page_table"] = _tensor(4, 16, dtype=torch.int32)
            options["seqused_k"] = _tensor(4, dtype=torch.int32)
        if sink:
            options["learnable_sink"] = _tensor(heads)
        interface._flash_attn_fwd(q, k, v, **options)
    return dumped("flash_fwd" if options.get("num_splits", 1) > 1 else "")


def latent(arch: str, given: Mapping[str, object], settings: Mapping[str, str]) -> str:
    """Multi-head latent attention (absorbed: 64 rotary and 512 latent dimensions), dense or over gathered keys."""
    _prepare(arch, settings)
    from flash_attn.cute import interface

    options = dict(given)
    heads, long, picked = options.pop("heads", 128), options.pop("long", 1), options.pop("picked", 0)
    with FakeTensorMode():
        q, qv = _tensor(64, long, heads, 64), _tensor(64, long, heads, 512)
        k, v = _tensor(64, 4096, 1, 64), _tensor(64, 4096, 1, 512)
        if picked:
            options["gather_kv_indices"] = _tensor(64, long, picked, dtype=torch.int32)
        interface._flash_attn_fwd(q, k, v, qv=qv, **options)
    return dumped()


def backward(arch: str, given: Mapping[str, object], settings: Mapping[str, str]) -> str:
    """The main backward kernel."""
    _prepare(arch, settings)
    from flash_attn.cute import interface

    options = dict(given)
    depth, depth_v = options.pop("depth", 128), options.pop("depth_v", None)
    heads, shared, varlen = options.pop("heads", 8), options.pop("heads_kv", 8), options.pop("varlen", False)
    kind = options.pop("dtype", torch.bfloat16)
    lead = (8192,) if varlen else (4, 2048)
    with FakeTensorMode():
        q, k = _tensor(*lead, heads, depth, dtype=kind), _tensor(*lead, shared, depth, dtype=kind)
        v = _tensor(*lead, shared, depth_v or depth, dtype=kind)
        out = _tensor(*lead, heads, depth_v or depth, dtype=kind)
        lse = _tensor(*((heads, 8192) if varlen else (4, heads, 2048)), dtype=torch.float32)
        if varlen:
            options["cu_seqlens_q"] = options["cu_seqlens_k"] = _tensor(5, dtype=torch.int32)
        interface._flash_attn_bwd(q, k, v, out, out.clone(), lse, **options)
    return dumped("ackward" if depth == 256 else "flash_bwd_sm")


def preprocess(arch: str, depth: int) -> str:
    """Row sums before the backward kernel."""
    _prepare(arch, {})
    import cutlass
    from flash_attn.cute import interface

    flags = (False, False, False, True, False, True, False, False, False, 1, 8, False, 32)
    interface._compile_bwd_preprocess(cutlass.BFloat16, depth, depth, 128, *flags)
    return dumped()


def combine(arch: str, depth: int) -> str:
    """The sum of split results, in the tiles that the library chooses for a head dimension of 128: 8 rows, 128 columns.

    With 64 columns, 8 rows are half of what 256 threads copy: the other half writes into the next stage.
    """
    _prepare(arch, {})
    import cutlass
    from flash_attn.cute import interface

    flags = (False, False, True, False, False, False)
    number = int(arch.strip("sm_a"))
    interface._compile_fwd_combine(number, cutlass.BFloat16, cutlass.Float32, depth, 8, 8, 128, 5, *flags)
    return dumped()


def _recipe(make, label: str, arch: str, given: Mapping[str, object], settings: Mapping[str, str]) -> Recipe:
    return Recipe(f"{make.__name__}_{label}_{arch}", arch, partial(make, arch, given, settings))


def forwards() -> Iterator[Recipe]:
    """Forward kernels."""
    shared: dict[str, dict[str, object]] = {
        "d64": {"depth": 64},
        "d128": {},
        "d128_causal": {"causal": True},
        "d128_mha_causal": {"heads_kv": 8, "causal": True},
        "d64_local": {"depth": 64, "window_size_left": 256, "window_size_right": 0},
        "d128_varlen": {"varlen": True, "causal": True},
        "d128_lse_sink": {"return_lse": True, "sink": True},
        "d96_f16": {"depth": 96, "dtype": torch.float16},
        "d128_softcap": {"softcap": 30.0},
    }
    wide: dict[str, dict[str, object]] = {
        "d192_128": {"depth": 192, "depth_v": 128, "causal": True},
        "d256": {"depth": 256, "causal": True},
        "d128_paged": {"paged": 128, "causal": True},
        "d128_paged16": {"paged": 16, "causal": True},
        "d128_split": {"num_splits": 4, "long": 64},
        "d128_packed": {"heads": 16, "heads_kv": 1, "pack_gqa": True, "causal": True},
        "d128_short": {"long": 128},
    }
    for arch in _PROCESSORS:
        for label, given in shared.items() if arch in {"sm_90a", "sm_100a"} else list(shared.items())[:4]:
            yield _recipe(forward, label, arch, given, {})
    for arch in ("sm_90a", "sm_100a"):
        for label, given in wide.items():
            if label != "d128_split" or arch == "sm_100a":
                yield _recipe(forward, label, arch, given, {})
    for tile, rs, overlap in (((128, 128), True, False), ((128, 128), False, True), ((192, 128), True, True)):
        given = {"depth": 64, "tile_mn": tile, "mma_pv_is_rs": rs, "intra_wg_overlap": overlap}
        yield _recipe(forward, f"d64_m{tile[0]}{'_rs' * rs}{'_overlap' * overlap}", "sm_90a", given, {})
    for label, settings in {"clc": {"FA_CLC": "1"}, "single": {"FA_DISABLE_2CTA": "1"}}.items():
        for causal in (False, True):
            name = f"d128_{label}{'_causal' * causal}"
            yield _recipe(forward, name, "sm_100a", {"causal": causal}, settings)
    yield _recipe(forward, "d128_clc_varlen", "sm_100a", {"varlen": True, "causal": True}, {"FA_CLC": "1"})
    yield _recipe(forward, "d128_unpaired", "sm_100a", {"causal": True}, {"FA_DISABLE_S_PING_PONG": "1"})
    yield _recipe(forward, "d128_fp8", "sm_100a", {"dtype": torch.float8_e4m3fn}, {})
    for label, given in {
        "dense": {"heads": 128, "long": 128, "causal": True},
        "decode": {"heads": 64},
        "gathered": {"heads": 128, "picked": 2048},
        "gathered_h64": {"heads": 64, "picked": 1024},
    }.items():
        for route in "01":
            name = f"{label}_{'single' if route == '1' else 'pair'}"
            yield _recipe(latent, name, "sm_100a", given, {"FLASH_ATTENTION_MLA_1CTA": route})


def backwards() -> Iterator[Recipe]:
    """Backward kernels."""
    cases: dict[str, dict[str, object]] = {
        "d64": {"depth": 64},
        "d64_causal": {"depth": 64, "causal": True},
        "d128": {},
        "d128_causal_gqa": {"heads_kv": 2, "causal": True},
        "d128_deterministic": {"causal": True, "deterministic": True},
        "d128_varlen": {"varlen": True, "causal": True},
        "d96_local_f16": {"depth": 96, "window_size_left": 128, "window_size_right": 0, "dtype": torch.float16},
        "d192_128": {"depth": 192, "depth_v": 128, "causal": True},
        "d256": {"depth": 256, "causal": True},
    }
    for arch in ("sm_90a", "sm_100a", "sm_120a"):
        for label, given in cases.items() if arch != "sm_120a" else list(cases.items())[:3]:
            yield _recipe(backward, label, arch, given, {})
    for label in ("d64_causal", "d128"):
        yield _recipe(backward, f"{label}_single", "sm_100a", cases[label], {"FA_DISABLE_2CTA": "1"})
    for arch in ("sm_90a", "sm_100a"):
        yield Recipe(f"preprocess_d128_{arch}", arch, partial(preprocess, arch, 128))
        yield Recipe(f"combine_d128_{arch}", arch, partial(combine, arch, 128))


if __name__ == "__main__":
    raise SystemExit(produce([*forwards(), *backwards()], "flash-attn-4", time_limit=1800))
