"""CuTe DSL kernels of ours (``sources/cute_kernels.py``), compiled on fake tensors."""

from collections.abc import Iterator
from functools import partial

from bench.corpus.cute_dump import dumped, prepare
from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6", "nvidia-cutlass-dsl==4.8.1")

_PRODUCTS = {"WarpgroupProduct", "TensorMemoryProduct"}


def build(arch: str, kernel: str, given: tuple[object, ...], kind: str = "Float16") -> str:
    """Compile the kernel of that class name with those arguments of its constructor."""
    prepare(arch)
    import cutlass
    from cutlass import cute

    from bench.corpus.sources import cute_kernels

    element = getattr(cutlass, kind)
    options = {"kind": element} if kind.startswith("Float8") else {}
    made = getattr(cute_kernels, kernel)(*given, **options)

    def tensor(rows: int, columns: int, dtype: object) -> object:
        return cute.runtime.make_fake_compact_tensor(dtype, (rows, columns), stride_order=(1, 0), assumed_align=16)

    if kernel in _PRODUCTS:
        operands = (tensor(4096, 2048, element), tensor(4096, 2048, element), tensor(4096, 4096, cutlass.Float16))
    else:
        operands = (tensor(4096, 2048, element), tensor(4096, 2048, element))
    cute.compile(made, *operands)
    return dumped()


def recipes() -> Iterator[Recipe]:
    """All kernels."""

    def named(arch: str, kernel: str, label: str, given: tuple[object, ...], kind: str = "Float16") -> Recipe:
        return Recipe(f"{kernel}_{label}_{arch}", arch, partial(build, arch, kernel, given, kind))

    for arch in ("sm_90a", "sm_100a", "sm_120a"):
        for stages in (2, 3, 4):
            yield named(arch, "CopyRing", f"s{stages}", (stages,))
        if arch != "sm_120a":
            yield named(arch, "CopyRing", "s3_c2", (3, 2))
            yield named(arch, "CopyRing", "s2_c4", (2, 4))
        yield named(arch, "Neighbours", "c2", (2, 8), "Float32")
    for stages, groups, columns, pending in (
        (2, 1, 64, 0),
        (3, 1, 128, 1),
        (4, 2, 128, 1),
        (3, 2, 256, 0),
        (3, 2, 256, 1),
    ):
        label = f"s{stages}_m{64 * groups}n{columns}p{pending}"
        yield named("sm_90a", "WarpgroupProduct", label, (stages, groups, columns, pending))
    yield named("sm_90a", "WarpgroupProduct", "fp8", (3, 2, 128, 1), "Float8E4M3FN")
    for stages, columns in ((2, 64), (3, 128), (4, 128), (3, 256)):
        yield named("sm_100a", "TensorMemoryProduct", f"s{stages}_m128n{columns}", (stages, 128, columns))
    for arch in ("sm_80", "sm_90a"):
        for stages in (2, 3, 4):
            yield named(arch, "GroupRing", f"s{stages}", (stages,), "Float32")


if __name__ == "__main__":
    raise SystemExit(produce(list(recipes()), "nvidia-cutlass-dsl"))
