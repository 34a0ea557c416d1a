"""FlashInfer: attention from its templates, its library sources, and the standalone kernels that its package ships."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import jinja2

from bench.corpus.nvcc import cuda_recipe, yield_to_others
from bench.corpus.produce import Recipe, produce

REQUIREMENTS = (
    "--no-deps",
    "flashinfer-python==0.7.4",
    "apache-tvm-ffi==0.1.15.post2",
    "nvidia-curand==10.4.5.25",
    "Jinja2==3.1.6",
    "MarkupSafe==3.0.4",
)

HEADERS = (
    "flashinfer/data/cccl/libcudacxx/include",
    "flashinfer/data/cccl/cub",
    "flashinfer/data/cccl/thrust",
    "flashinfer/data/include",
    "flashinfer/data/csrc",
    "flashinfer/data/csrc/nv_internal",
    "flashinfer/data/csrc/nv_internal/include",
    "flashinfer/data/cutlass/include",
    "flashinfer/data/cutlass/tools/util/include",
    "flashinfer/data/spdlog/include",
    "tvm_ffi/include",
    "nvidia/cu13/include",
)
SWITCHES = (
    "--expt-relaxed-constexpr",
    "-DFLASHINFER_ENABLE_FP8_E8M0",
    "-DFLASHINFER_ENABLE_FP4_E2M1",
    "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED",
)

LIBRARY = {
    "sm_75": ("cascade", "quantization"),
    "sm_80": ("norm", "rope", "page", "sampling", "cascade", "quantization", "topk", "concat_mla"),
    "sm_90a": ("norm", "page", "renorm", "topk", "vllm_custom_all_reduce", "trtllm_allreduce_fusion", "fmhaReduction",
               "trtllm_mnnvl_allreduce", "mla_kv_pack_fp8", "ulysses_all_to_all", "eagle_verify_fp8kv_sm90",
               "trtllm_allreduce", "trtllm_moe_allreduce_fusion", "nvlink_two_sided_alltoall", "tinygemm2"),
    "sm_100a": ("norm", "tinygemm2_sm100", "fp4_kv_quantization", "fp4_kv_dequantization",
                "nvfp4_smooth_quantize_sm100", "cake_blackwell_softmax_cached_cluster",
                "cake_blackwell_softmax_warp", "alphamoe_sm100", "msa_decode_nvfp4_specialized"),
    "sm_120a": ("cake_minimax_h3_sm120_quant_fc1_swiglu_sm120a", "norm"),
}  # fmt: skip
"""Sources of the library proper that compile alone, by the architecture to compile them for."""

USUAL_SHARE = 4
"""How many of the near-identical kernels of one folder are taken, spread over the list."""

LARGER_SHARE = {"cake_tinygemm2_wgmma": 16}
"""The same for the folder that has most of the wgmma kernels."""

NOT_ALONE = (
    "nv_internal", "xqa", "cutlass_backend", "trtllm_backend", "dcp_spec", "context_hd256_support",
    "cake_bgmv_moe/", "cake_trtllm_moe_allreduce_union", "sm_107", "decode_quant_",
    "cake_fmha_context_nvfp4", "cake_fmha_decode_nvfp4", "noAuxTcKernels", "cake_hopper_msa", "gdn/cake/cuda",
    "kda/bf16",
)  # fmt: skip
"""Parts of paths whose kernels need macros or libraries that the package leaves to its build, or a newer PTX."""

Values = dict[str, object]


@dataclass(frozen=True, slots=True)
class Attention:
    """One attention kernel: the template that instantiates it, the one that configures it, and what they leave open."""

    name: str
    arch: str
    template: str
    configuration: str
    values: Values
    tensors: tuple[str, ...]
    scalars: tuple[str, ...]

    def recipe(self, root: Path, flags: tuple[str, ...]) -> Recipe:
        """The kernel's recipe; the configuration is pasted where the template includes it."""
        csrc = root / "flashinfer/data/csrc"
        declared = [f"{declaration};" for declaration in (*self.tensors, *self.scalars)]
        values = DEFAULTS | self.values | {"additional_params_decl": "\n".join(declared)}
        head, kernel = (jinja2.Template((csrc / name).read_text()) for name in (self.configuration, self.template))
        configuration = head.render(values).replace("#pragma once", "")
        source = re.sub(r'#include "\w+_config\.inc"', lambda _: configuration, kernel.render(values))
        return cuda_recipe(f"attention_{self.name}", self.arch, source, flags)


DEFAULTS: Values = {
    "additional_func_params": "",
    "additional_params_setter": "",
    "variant_decl": "#include <flashinfer/attention/variants.cuh>",
    "dtype_q": "half",
    "dtype_kv": "half",
    "dtype_o": "half",
    "idtype": "int32_t",
    "head_dim_qk": 128,
    "head_dim_vo": 128,
    "pos_encoding_mode": "PosEncodingMode::kNone",
    "mask_mode": "MaskMode::kCausal",
    "use_sliding_window": "false",
    "use_logits_soft_cap": "false",
    "use_fp16_qk_reduction": "false",
    "use_token_head_sf": "false",
    "require_fp4_kv_cache": False,
    "paged_kv_stride_mode": "equal",
    "same_kv_strides_values": ["true"],
}

BF16: Values = {"dtype_q": "nv_bfloat16", "dtype_kv": "nv_bfloat16", "dtype_o": "nv_bfloat16"}
FP8_CACHE: Values = {"dtype_kv": "__nv_fp8_e4m3"}
NARROW: Values = {"head_dim_qk": 64, "head_dim_vo": 64}
WIDE: Values = {"head_dim_qk": 256, "head_dim_vo": 256}
DEEPSEEK: Values = {"head_dim_qk": 192, "head_dim_vo": 128}
NO_MASK: Values = {"mask_mode": "MaskMode::kNone"}
OWN_MASK: Values = {"mask_mode": "MaskMode::kCustom"}
ROTARY: Values = {"pos_encoding_mode": "PosEncodingMode::kRoPELlama"}
WINDOW: Values = {"use_sliding_window": "true"}
SOFT_CAP: Values = {"use_logits_soft_cap": "true"}

HOPPER_VARIANTS = "#include <flashinfer/attention/hopper/variants.cuh>"

SCALARS = ("double logits_soft_cap", "double sm_scale", "double rope_rcp_scale", "double rope_rcp_theta")
MULTI_ITEM = ("uint32_t* maybe_prefix_len_ptr", "uint16_t* maybe_token_pos_in_items_ptr",
              "uint16_t* maybe_max_item_len_ptr")  # fmt: skip


def decode(name: str, arch: str, batch: bool, given: Values) -> Attention:
    """A decoding kernel: one query per sequence."""
    kind = "batch" if batch else "single"
    window, cap = given.get("use_sliding_window", "false"), given.get("use_logits_soft_cap", "false")
    given = given | {"variant_name": f"DefaultAttention<false, {window}, {cap}, false>"}
    templates = f"{kind}_decode_kernel_inst.jinja", f"{kind}_decode_customize_config.jinja"
    return Attention(f"{kind}_decode_{name}", arch, *templates, given, ("float* maybe_alibi_slopes",), SCALARS)


def prefill(name: str, arch: str, kind: str, given: Values) -> Attention:
    """A prefill kernel of the cp.async generation; `kind` is single, batch_paged or batch_ragged."""
    own = given.get("mask_mode") == OWN_MASK["mask_mode"]
    window, cap = given.get("use_sliding_window", "false"), given.get("use_logits_soft_cap", "false")
    given = given | {"variant_name": f"DefaultAttention<{str(own).lower()}, {window}, {cap}, false>"}
    tensors = ("uint8_t* maybe_custom_mask", "float* maybe_alibi_slopes",
               "uint8_t* maybe_k_cache_sf", "uint8_t* maybe_v_cache_sf")  # fmt: skip
    single = kind == "single"
    templates = (
        "single_prefill_kernel_inst.jinja" if single else f"batch_prefill_{kind[6:]}_kernel_inst.jinja",
        f"{kind[:5] if not single else kind}_prefill_customize_config.jinja",
    )
    more = () if single else MULTI_ITEM
    scalars = SCALARS if single else (*SCALARS, "int64_t token_pos_in_items_len")
    return Attention(f"{kind}_prefill_{name}", arch, *templates, given, (*tensors, *more), scalars)


def hopper(name: str, kind: str, given: Values, fp8: bool = False) -> Attention:
    """A prefill kernel that loads by TMA and multiplies by wgmma; `kind` is single, batch_paged or batch_ragged."""
    cap = given.get("use_logits_soft_cap", "false")
    given = given | {"variant_name": f"DefaultAttention<{cap}>", "variant_decl": HOPPER_VARIANTS}
    tensors: tuple[str, ...] = ("float* maybe_scale_v",)
    scalars: tuple[str, ...] = ("double logits_soft_cap", "double sm_scale", "double scale_v_scalar")
    if fp8:
        given = given | {"variant_name": "DefaultFP8Attention", "dtype_q": "__nv_fp8_e4m3", "dtype_kv": "__nv_fp8_e4m3"}
        tensors = ("float* maybe_scale_q", "float* maybe_scale_k", "float* maybe_scale_v")
        scalars = ("double sm_scale", "double scale_q_scalar", "double scale_k_scalar", "double scale_v_scalar")
    elif kind != "single":
        tensors, scalars = (*MULTI_ITEM, *tensors), (*scalars, "int64_t token_pos_in_items_len")
    batch, _, layout = kind.partition("_")
    middle = "_".join(part for part in ("prefill", "fp8" if fp8 else "", layout, "sm90") if part)
    templates = f"{batch}_{middle}_kernel_inst.jinja", f"{batch}_prefill_sm90_customize_config.jinja"
    return Attention(f"{kind}_hopper_{'fp8_' if fp8 else ''}{name}", "sm_90a", *templates, given, tensors, scalars)


def attention() -> Iterator[Attention]:
    """The attention kernels, TMA ones first."""
    yield hopper("f16_128_causal", "single", {})
    yield hopper("bf16_64", "single", BF16 | NARROW | NO_MASK)
    yield hopper("f16_256_window", "single", WIDE | WINDOW)
    yield hopper("e4m3_128", "single", {}, fp8=True)
    yield hopper("f16_128_causal", "batch_paged", {})
    yield hopper("bf16_128_softcap", "batch_ragged", BF16 | SOFT_CAP)
    yield hopper("bf16_192_128", "batch_ragged", BF16 | DEEPSEEK)
    yield hopper("e4m3_64", "batch_paged", NARROW, fp8=True)
    yield prefill("f16_128", "sm_80", "single", {})
    yield prefill("bf16_64_mask", "sm_80", "single", BF16 | NARROW | OWN_MASK)
    yield prefill("f16_128_rotary", "sm_75", "single", ROTARY | NO_MASK)
    yield prefill("f16_256", "sm_90a", "single", WIDE)
    yield prefill("f16_128", "sm_80", "batch_paged", {})
    yield prefill("e4m3cache_128", "sm_100a", "batch_paged", FP8_CACHE | WINDOW)
    yield prefill("bf16_128", "sm_120a", "batch_ragged", BF16 | SOFT_CAP)
    for arch in ("sm_80", "sm_90a", "sm_100a"):
        yield decode("f16_128", arch, batch=False, given={})
        yield decode("bf16_64_window", arch, batch=True, given=BF16 | NARROW | WINDOW)
    yield decode("e4m3cache_256", "sm_89", batch=True, given=FP8_CACHE | WIDE)
    yield decode("f16_128_rotary", "sm_75", batch=False, given=ROTARY)


def architecture(path: str, text: str) -> str:
    """The architecture that a standalone kernel's path or the instructions in its text ask for."""
    named = re.search(r"sm_?(90|100|103|120)", path)
    if named:
        return f"sm_{named[1]}a"
    if "wgmma" in text:
        return "sm_90a"
    if re.search(r"tcgen05|e2m1|f32x2|Max3 requires|redux\.\S*f32|\.v8\.b32|\.f32\.bf16", text):
        return "sm_100a"
    if "kind::mxf" in text:
        return "sm_120a"
    return "sm_90a" if re.search(r"mbarrier|cp\.async\.bulk|griddepcontrol", text) else "sm_80"


def standalone(root: Path, flags: tuple[str, ...]) -> Iterator[Recipe]:
    """Some kernels of each folder of standalone kernels."""
    csrc = root / "flashinfer/data/csrc"
    folders = defaultdict(list)
    for path in sorted(csrc.glob("*/**/*.cu")):
        if "binding" not in path.name and not any(part in str(path) for part in NOT_ALONE):
            text = path.read_text(encoding="utf-8", errors="replace")
            if "__global__" in text:
                folders[path.parent].append((path, architecture(str(path.relative_to(csrc)), text)))
    for folder, kernels in folders.items():
        share = LARGER_SHARE.get(folder.name, USUAL_SHARE)
        for path, arch in kernels[:: max(1, len(kernels) // share)][:share]:
            name = "_".join(path.relative_to(csrc).with_suffix("").parts)
            yield cuda_recipe(name, arch, path, (*flags, f"-I{folder}"))


def recipes(root: Path) -> Iterator[Recipe]:
    """Every module of the project."""
    flags = (*SWITCHES, *(f"-I{root / folder}" for folder in HEADERS))
    for kernel in attention():
        yield kernel.recipe(root, flags)
    for arch, names in LIBRARY.items():
        for name in names:
            yield cuda_recipe(f"library_{name}", arch, root / f"flashinfer/data/csrc/{name}.cu", flags)
    yield from standalone(root, flags)


def main() -> int:
    """Build the modules into the folder named on the command line."""
    yield_to_others()
    root = Path(str(distribution("flashinfer-python").locate_file("")))
    return produce(list(recipes(root)), "flashinfer-python", time_limit=1800)


if __name__ == "__main__":
    raise SystemExit(main())
