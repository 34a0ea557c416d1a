"""flash-linear-attention: the Triton kernels of its operators, forward and backward, captured at launch."""

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch

from bench.corpus.produce import Recipe, produce
from bench.corpus.triton_capture import capture

REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6", "triton==3.9.0", "flash-linear-attention==0.6.0")

_SHAPES: Mapping[str, tuple[int, ...]] = {"wide": (2, 1024, 4, 64), "head": (2, 1024, 4), "row": (4,), "state": (4, 64)}
_OPERATORS: Mapping[str, str] = {
    "gla.chunk_gla": "q:wide k:wide v:wide g:wide",
    "gla.fused_recurrent_gla": "q:wide k:wide v:wide gk:wide",
    "retention.chunk_retention": "q:wide k:wide v:wide",
    "retention.parallel_retention": "q:wide k:wide v:wide",
    "linear_attn.chunk_linear_attn": "q:wide k:wide v:wide",
    "delta_rule.chunk_delta_rule": "q:wide k:wide v:wide beta:head",
    "delta_rule.fused_recurrent_delta_rule": "q:wide k:wide v:wide beta:head",
    "gated_delta_rule.chunk_gated_delta_rule": "q:wide k:wide v:wide g:head beta:head",
    "gated_delta_rule.fused_recurrent_gated_delta_rule": "q:wide k:wide v:wide g:head beta:head",
    "simple_gla.chunk_simple_gla": "q:wide k:wide v:wide g:head",
    "simple_gla.parallel_simple_gla": "q:wide k:wide v:wide g:head",
    "forgetting_attn.parallel_forgetting_attn": "q:wide k:wide v:wide g:head",
    "attn.parallel_attn": "q:wide k:wide v:wide",
    "kda.chunk_kda": "q:wide k:wide v:wide g:wide beta:head",
    "rwkv6.chunk_rwkv6": "r:wide k:wide v:wide w:wide u:state",
    "hgrn.chunk_hgrn": "x:head g:head",
    "lightning_attn.chunk_lightning_attn": "q:wide k:wide v:wide layer_idx=1 num_layers=4",
    "based.parallel_based": "q:wide k:wide v:wide",
    "path_attn.parallel_path_attn": "q:wide k:wide v:wide w:wide beta:head",
    "comba.chunk_comba": "q:wide k:wide v:wide p:wide g:head beta:head",
    "stickbreaking_attn.parallel_stickbreaking_attn": "q:wide k:wide v:wide",
    "nsa.parallel_nsa": "q:groups k:narrow v:narrow g_cmp:gates g_slc:gates g_swa:gates block_size=64",
    "mesa_net.chunk_mesa_net": "q:wide k:wide v:wide g:head beta:head lamb:state",
}
_SHAPES = {**_SHAPES, "groups": (2, 1024, 32, 64), "narrow": (2, 1024, 2, 64), "gates": (2, 1024, 32)}


def _call(name: str, arguments: str) -> Callable[[], None]:
    def work() -> None:
        module, function = name.split(".")
        operator = getattr(importlib.import_module(f"fla.ops.{module}"), function)
        given: dict[str, object] = {}
        for argument in arguments.split():
            if "=" in argument:
                key, number = argument.split("=")
                given[key] = int(number)
                continue
            key, shape = argument.split(":")
            kind = torch.float32 if key in {"g", "gk", "beta", "lamb"} else torch.bfloat16
            given[key] = torch.empty(*_SHAPES[shape], dtype=kind, requires_grad=True)
        result = operator(**given)
        out = result[0] if isinstance(result, tuple) else result
        out.backward(torch.empty_like(out))

    return work


def operator(capability: int, name: str, arguments: str, tma: bool, configuration: int) -> dict[str, str]:
    """The kernels that one operator launches."""
    os.environ["FLA_USE_TMA"] = str(int(tma))
    return capture(capability, _call(name, arguments), configuration)


def recipes() -> Iterator[Recipe]:
    """Every operator for Hopper; half of them with bulk copies, and for Blackwell and Ampere."""
    for number, (name, arguments) in enumerate(_OPERATORS.items()):
        short = name.split(".")[1]
        yield Recipe(f"{short}_sm_90a", "sm_90a", partial(operator, 90, name, arguments, False, number))
        if "chunk" in short and number % 2 == 0:
            yield Recipe(f"{short}_sm_100a", "sm_100a", partial(operator, 100, name, arguments, False, number + 1))
        if "delta" in short or "kda" in short:
            yield Recipe(f"{short}_tma_sm_90a", "sm_90a", partial(operator, 90, name, arguments, True, number + 2))
        if short == "chunk_gla":
            yield Recipe(f"{short}_sm_80", "sm_80", partial(operator, 80, name, arguments, False, number))


if __name__ == "__main__":
    raise SystemExit(produce(list(recipes()), "flash-linear-attention", time_limit=1800))
