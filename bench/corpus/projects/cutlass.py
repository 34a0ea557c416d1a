"""CUTLASS kernels: GEMMs put together by its collective builders, and the programs its package ships as examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from bench.corpus.nvcc import cuda_recipe, yield_to_others
from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ("--no-deps", "nvidia-cutlass==4.2.0.0", "nvidia-curand==10.4.5.25")

Flags = tuple[str, ...]

BUILDER_KERNEL = """\
#include "cute/tensor.hpp"
#include "cutlass/gemm/dispatch_policy.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/device_kernel.h"

using namespace cute;
using TileShape = {tile};
using ClusterShape = {cluster};
using CollectiveEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::{chip}, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
    cutlass::epilogue::collective::EpilogueTileAuto, {sum}, {scale},
    {result}, cutlass::layout::RowMajor, 128 / cutlass::sizeof_bits_v<{result}>,
    {result}, cutlass::layout::RowMajor, 128 / cutlass::sizeof_bits_v<{result}>,
    cutlass::epilogue::{epilogue}>::CollectiveOp;
using CollectiveMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::{chip}, cutlass::arch::OpClassTensorOp,
    {element}, cutlass::layout::RowMajor, 128 / cutlass::sizeof_bits_v<{element}>,
    {element}, cutlass::layout::ColumnMajor, 128 / cutlass::sizeof_bits_v<{element}>, {sum},
    TileShape, ClusterShape,
    cutlass::gemm::collective::{stages},
    cutlass::gemm::{schedule}>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<
    Shape<int, int, int, int>, CollectiveMainloop, CollectiveEpilogue, {scheduler}>;
template __global__ void cutlass::device_kernel<Kernel>(const __grid_constant__ typename Kernel::Params);
"""

MULTISTAGE_KERNEL = """\
#include "cutlass/gemm/device/gemm_universal.h"
#include "cutlass/device_kernel.h"

using Gemm = cutlass::gemm::device::GemmUniversal<
    {element}, cutlass::layout::RowMajor, {element}, cutlass::layout::ColumnMajor,
    {result}, cutlass::layout::RowMajor, {sum},
    cutlass::arch::OpClassTensorOp, cutlass::arch::{chip},
    cutlass::gemm::GemmShape<{block}>, cutlass::gemm::GemmShape<{warp}>, cutlass::gemm::GemmShape<{mma}>,
    cutlass::epilogue::thread::LinearCombination<{result}, 128 / cutlass::sizeof_bits<{result}>::value, {sum}, {sum}>,
    {swizzle}, {stages}>;
template __global__ void cutlass::Kernel2<typename Gemm::GemmKernel>(typename Gemm::GemmKernel::Params);
"""

HALF, BF16, FLOAT, INT8 = "cutlass::half_t", "cutlass::bfloat16_t", "float", "int8_t"
E4M3, E5M2, TF32 = "cutlass::float_e4m3_t", "cutlass::float_e5m2_t", "cutlass::tfloat32_t"
SPELLED = {HALF: "f16", BF16: "bf16", INT8: "s8", E4M3: "e4m3", E5M2: "e5m2", TF32: "tf32", "double": "f64"}
PERSISTENT, STREAM_K = "cutlass::gemm::PersistentScheduler", "cutlass::gemm::StreamKScheduler"


@dataclass(frozen=True, slots=True)
class Gemm:
    """One kernel of the builders: tile and cluster in the builder's M, N, K order, stages 0 for as many as fit."""

    label: str
    schedule: str
    epilogue: str
    element: str = HALF
    tile: tuple[int, int, int] = (128, 128, 64)
    cluster: tuple[int, int] = (1, 1)
    stages: int = 0
    scheduler: str = PERSISTENT

    @property
    def name(self) -> str:
        """A name that tells every parameter."""
        tile, cluster = "x".join(map(str, self.tile)), "x".join(map(str, self.cluster))
        scheduler = "_streamk" if self.scheduler == STREAM_K else ""
        stages = f"_{self.stages}stages" if self.stages else ""
        return f"gemm_{self.label}_{SPELLED[self.element]}_{tile}_cluster{cluster}{stages}{scheduler}"

    def recipe(self, arch: str, chip: str, flags: Flags) -> Recipe:
        """The kernel's source for one architecture, by the builder's name of it."""
        carve_out = "StageCountAutoCarveout<static_cast<int>(sizeof(typename CollectiveEpilogue::SharedStorage))>"
        source = BUILDER_KERNEL.format(
            tile="Shape<{}>".format(", ".join(f"_{extent}" for extent in self.tile)),
            cluster="Shape<{}>".format(", ".join(f"_{extent}" for extent in (*self.cluster, 1))),
            chip=chip,
            element=self.element,
            result={INT8: "int8_t", TF32: "float"}.get(self.element, HALF),
            sum="int32_t" if self.element == INT8 else "float",
            scale="float",
            epilogue=self.epilogue,
            stages=f"StageCount<{self.stages}>" if self.stages else carve_out,
            schedule=self.schedule,
            scheduler=self.scheduler,
        )
        return cuda_recipe(self.name, arch, source, flags)


COOPERATIVE = ("cooperative", "KernelTmaWarpSpecializedCooperative", "TmaWarpSpecializedCooperative")
PINGPONG = ("pingpong", "KernelTmaWarpSpecializedPingpong", "TmaWarpSpecialized")
WARP_SPECIALIZED = ("ws", "KernelTmaWarpSpecialized", "TmaWarpSpecialized")
TMA = ("tma", "KernelTma", "NoSmemWarpSpecialized")
CP_ASYNC = ("cpasync_cooperative", "KernelCpAsyncWarpSpecializedCooperative", "NoSmemWarpSpecialized")
CP_ASYNC_PINGPONG = ("cpasync_pingpong", "KernelCpAsyncWarpSpecializedPingpong", "NoSmemWarpSpecialized")
CP_ASYNC_WS = ("cpasync_ws", "KernelCpAsyncWarpSpecialized", "NoSmemWarpSpecialized")
MULTISTAGE = ("multistage", "KernelMultistage", "NoSmemWarpSpecialized")
FP8_FAST = ("fp8fast", "KernelTmaWarpSpecializedCooperativeFP8FastAccum", "TmaWarpSpecializedCooperative")
FP8_FAST_PINGPONG = ("fp8fast_pingpong", "KernelTmaWarpSpecializedPingpongFP8FastAccum", "TmaWarpSpecialized")

HOPPER = (
    Gemm(*COOPERATIVE, cluster=(2, 1)),
    Gemm(*PINGPONG, tile=(64, 128, 64), cluster=(2, 2)),
    Gemm(*WARP_SPECIALIZED),
    Gemm(*PINGPONG, cluster=(1, 1), stages=3),
    Gemm(*COOPERATIVE, element=E4M3, tile=(128, 128, 128), cluster=(2, 1)),
    Gemm(*COOPERATIVE, element=INT8, tile=(128, 128, 128)),
    Gemm(*TMA),
    Gemm(*CP_ASYNC),
    Gemm(*CP_ASYNC_PINGPONG, tile=(64, 128, 64)),
    Gemm(*CP_ASYNC_WS, tile=(64, 128, 64)),
    Gemm(*MULTISTAGE),
    Gemm(*COOPERATIVE, tile=(256, 128, 64), cluster=(2, 2)),
    Gemm(*COOPERATIVE, tile=(128, 256, 64), cluster=(2, 1), stages=2),
    Gemm(*COOPERATIVE, cluster=(2, 1), scheduler=STREAM_K),
    Gemm(*COOPERATIVE, element=TF32, tile=(128, 128, 32), cluster=(1, 2)),
    Gemm(*COOPERATIVE, element=BF16, tile=(128, 64, 64), cluster=(4, 1)),
    Gemm(*PINGPONG, element=E5M2, tile=(64, 128, 128), cluster=(2, 1)),
    Gemm(*PINGPONG, element=INT8, tile=(64, 128, 128), cluster=(1, 2)),
    Gemm(*PINGPONG, element=BF16, tile=(64, 256, 64), cluster=(1, 2), stages=2),
    Gemm(*PINGPONG, element=TF32, tile=(64, 64, 32), stages=4),
    Gemm(*FP8_FAST, element=E4M3, tile=(128, 256, 128), cluster=(2, 1)),
    Gemm(*FP8_FAST_PINGPONG, element=E4M3, tile=(64, 128, 128), cluster=(1, 2)),
    Gemm(*WARP_SPECIALIZED, element=BF16, tile=(64, 64, 64), cluster=(2, 2), stages=7),
    Gemm(*WARP_SPECIALIZED, element=INT8, tile=(64, 128, 128), cluster=(2, 1)),
    Gemm(*TMA, element=BF16, tile=(64, 64, 64), cluster=(2, 1), stages=5),
    Gemm(*MULTISTAGE, element=TF32, tile=(64, 64, 32)),
)

ONE_SM = ("1sm", "KernelTmaWarpSpecialized1SmSm100", "TmaWarpSpecialized1Sm")
TWO_SM = ("2sm", "KernelTmaWarpSpecialized2SmSm100", "TmaWarpSpecialized2Sm")
ONE_SM_DIRECT = ("1sm_direct", "KernelTmaWarpSpecialized1SmSm100", "NoSmemWarpSpecialized1Sm")
MIXED_LOADS = ("1sm_cpasync", "KernelMixedTmaCpAsyncWarpSpecialized1SmSm100", "NoSmemWarpSpecialized1Sm")

BLACKWELL = (
    Gemm(*ONE_SM),
    Gemm(*TWO_SM, tile=(256, 128, 64), cluster=(2, 1)),
    Gemm(*TWO_SM, tile=(256, 256, 64), cluster=(4, 2)),
    Gemm(*ONE_SM, cluster=(2, 2)),
    Gemm(*ONE_SM_DIRECT, tile=(128, 64, 64)),
    Gemm(*ONE_SM, element=E4M3, tile=(128, 128, 128), cluster=(1, 2)),
    Gemm(*TWO_SM, element=E4M3, tile=(256, 128, 128), cluster=(2, 2)),
    Gemm(*ONE_SM, element=INT8, tile=(128, 128, 128)),
    Gemm(*TWO_SM, element=INT8, tile=(256, 128, 128), cluster=(2, 1)),
    Gemm(*ONE_SM, element=TF32, tile=(128, 128, 32), stages=4),
    Gemm(*TWO_SM, element=BF16, tile=(256, 64, 64), cluster=(2, 1), stages=6),
    Gemm(*ONE_SM, tile=(64, 128, 64), scheduler=STREAM_K),
    Gemm(*TWO_SM, tile=(256, 128, 64), cluster=(2, 1), scheduler=STREAM_K),
    Gemm(*MIXED_LOADS),
)


@dataclass(frozen=True, slots=True)
class Multistage:
    """One cp.async kernel of the older device interface: block, warp and instruction shapes in M, N, K order."""

    element: str
    total: str
    block: tuple[int, int, int]
    warp: tuple[int, int, int]
    mma: tuple[int, int, int]
    stages: int
    swizzle: str = "GemmIdentityThreadblockSwizzle<>"

    def recipe(self, arch: str, chip: str, flags: Flags) -> Recipe:
        """The kernel's source for one architecture, by the library's name of it."""
        result = {HALF: HALF, BF16: BF16}.get(self.element, self.total)
        shapes = {"block": self.block, "warp": self.warp, "mma": self.mma}
        source = MULTISTAGE_KERNEL.format(
            element=self.element,
            result=result,
            sum=self.total,
            chip=chip,
            swizzle=f"cutlass::gemm::threadblock::{self.swizzle}",
            stages=self.stages,
            **{name: ", ".join(map(str, shape)) for name, shape in shapes.items()},
        )
        block, kind = "x".join(map(str, self.block)), "_streamk" if "StreamK" in self.swizzle else ""
        return cuda_recipe(
            f"gemm_multistage_{SPELLED[self.element]}_{block}_{self.stages}stages{kind}", arch, source, flags
        )


AMPERE = (
    Multistage(HALF, FLOAT, (128, 128, 32), (64, 64, 32), (16, 8, 16), 3),
    Multistage(HALF, FLOAT, (128, 256, 32), (64, 64, 32), (16, 8, 16), 3),
    Multistage(HALF, HALF, (64, 64, 64), (32, 32, 64), (16, 8, 16), 5),
    Multistage(BF16, FLOAT, (256, 128, 32), (64, 64, 32), (16, 8, 16), 3),
    Multistage(TF32, FLOAT, (128, 128, 16), (64, 64, 16), (16, 8, 8), 4),
    Multistage(INT8, "int32_t", (128, 128, 64), (64, 64, 64), (16, 8, 32), 4),
    Multistage("double", "double", (64, 64, 16), (32, 32, 16), (8, 8, 4), 4),
    Multistage(HALF, FLOAT, (128, 128, 32), (64, 64, 32), (16, 8, 16), 4, "ThreadblockSwizzleStreamK"),
)

TURING = (
    Multistage(HALF, FLOAT, (128, 128, 32), (64, 64, 32), (16, 8, 8), 2),
    Multistage(INT8, "int32_t", (128, 128, 64), (64, 64, 64), (8, 8, 16), 2),
)

EXAMPLES = {
    "sm_75": ("09_",),
    "sm_80": ("14_", "15_", "24_", "35_", "37_", "41_", "45_", "47_"),
    "sm_89": ("58_",),
    "sm_90a": ("52_", "54_", "55_", "57_", "61_", "62_", "63_", "67_", "88_"),
    "sm_100a": ("70_", "72_", "74_", "75_", "76_", "77_", "81_", "83_"),
    "sm_103a": ("89_",),
    "sm_120a": ("79_", "87_"),
}
"""Shipped programs, by the numbers that begin their folders' names and the architecture that each is about."""


def package_source() -> Path:
    """The folder of the package that holds include, tools and examples."""
    return Path(str(distribution("nvidia-cutlass").locate_file("cutlass_library/source")))


def examples(root: Path, flags: Flags) -> Iterator[Recipe]:
    """The shipped example programs, each for the architecture it is about."""
    for arch, prefixes in EXAMPLES.items():
        for prefix in prefixes:
            for path in sorted((root / "examples").glob(f"{prefix}*/*.cu")):
                folder = path.parent.name
                name = path.stem if path.stem.startswith(folder[:2]) else f"{folder[:2]}_{path.stem}"
                yield cuda_recipe(f"example_{name}", arch, path, (*flags, f"-I{path.parent}"))


def recipes(root: Path, flags: Flags) -> Iterator[Recipe]:
    """Every module of the project."""
    yield from (gemm.recipe("sm_90a", "Sm90", flags) for gemm in HOPPER)
    yield from (gemm.recipe("sm_100a", "Sm100", flags) for gemm in BLACKWELL)
    yield from (gemm.recipe("sm_80", "Sm80", flags) for gemm in AMPERE)
    yield from (gemm.recipe("sm_75", "Sm75", flags) for gemm in TURING)
    yield from examples(root, flags)


def main() -> int:
    """Build the modules into the folder named on the command line."""
    root = package_source()
    includes = ("include", "tools/util/include", "examples/common", "examples")
    curand = distribution("nvidia-curand").locate_file("nvidia/cu13/include")
    flags = ("--expt-relaxed-constexpr", "-DNDEBUG", *(f"-I{root / folder}" for folder in includes), f"-I{curand}")
    yield_to_others()
    return produce(list(recipes(root, flags)), "nvidia-cutlass", time_limit=1800)


if __name__ == "__main__":
    raise SystemExit(main())
