"""The ways in which nvcc writes PTX: every target it knows, debug builds, relocatable code, odd corners of CUDA C++."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.corpus.nvcc import cuda_recipe, tool, yield_to_others
from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ()

SOURCES = Path(__file__).parents[1] / "sources" / "nvcc_dialects"

EVERYWHERE = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")
"""Architectures for which each source is compiled."""

OTHER_TARGETS = (
    "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_100f", "sm_103", "sm_103a", "sm_103f", "sm_110",
    "sm_110a", "sm_110f", "sm_120", "sm_120f", "sm_121", "sm_121a", "sm_121f",
)  # fmt: skip
"""The remaining targets that nvcc 13.0 knows; two sources go through them all."""

BUILDS = {
    "debug": ("-G",),
    "debug_with_source": ("-G", "-src-in-ptx"),
    "with_source": ("-lineinfo", "-src-in-ptx"),
    "unoptimized": ("-Xcicc", "-O0"),
    "fast_math": ("-use_fast_math", "-ftz=true"),
    "relocatable": ("-rdc=true",),
    "relocatable_debug": ("-rdc=true", "-G"),
    "cpp20_restrict": ("-std=c++20", "-restrict", "-extra-device-vectorization"),
}
"""Ways to compile, each tried with every source on one architecture."""


def recipes() -> Iterator[Recipe]:
    """The sources on the main architectures, then the odd builds, then the other targets."""
    sources = sorted(SOURCES.glob("*.cu"))
    for arch in EVERYWHERE:
        yield from (cuda_recipe(source.stem, arch, source) for source in sources)
    for place, (build, flags) in enumerate(BUILDS.items()):
        arch = EVERYWHERE[place % len(EVERYWHERE)]
        yield from (cuda_recipe(f"{source.stem}_{build}", arch, source, flags) for source in sources)
    for arch in OTHER_TARGETS:
        yield from (cuda_recipe(stem, arch, SOURCES / f"{stem}.cu") for stem in ("launch", "matrices"))
    yield cuda_recipe("variables_megabyte", "sm_90a", SOURCES / "variables.cu", ("-DMEGABYTE",))


def release() -> str:
    """The version of nvcc, such as 13.0.88."""
    banner = subprocess.run([tool("nvcc"), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V([\d.]+)", banner)
    return found[1] if found else "unknown"


def main() -> int:
    """Build the modules into the folder named on the command line."""
    yield_to_others()
    return produce(list(recipes()), "nvcc", version=release())


if __name__ == "__main__":
    raise SystemExit(main())
