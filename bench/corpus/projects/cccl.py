"""CCCL: every cuda::ptx wrapper that its headers declare, and programs over cuda::barrier, pipelines and cub."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from bench.corpus.nvcc import cuda_recipe, yield_to_others
from bench.corpus.produce import Recipe, produce

REQUIREMENTS = ("nvidia-cuda-cccl==13.3.5.0.6",)

SOURCES = Path(__file__).parents[1] / "sources" / "cccl"
ALGORITHMS = ("TRANSFORM", "REDUCE", "SCAN", "SORT_KEYS", "SORT_PAIRS", "SELECT", "PARTITION", "HISTOGRAM", "MERGE",
              "MERGE_SORT", "SEGMENTED", "RUNS", "UNIQUE", "BY_KEY", "FOR_EACH", "BATCHED_COPY",
              "ADJACENT")  # fmt: skip
ARCHES = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
NEWEST_ISA = 900
"""What nvcc 13.0 writes: PTX ISA 9.0."""

DECLARATION = re.compile(
    r"/\*\n(?P<heading>//.*?)\n\*/\n#if __cccl_ptx_isa >= (?P<isa>\d+)\n(?P<code>.*?)\n#endif", re.DOTALL
)
FUNCTION = re.compile(
    r"template\s*<(?P<template>.*?)>\s*_CCCL_DEVICE_API\s+(?P<result>[\w:]+)\s+(?P<name>\w+)\((?P<parameters>.*?)\)\n\{(?P<body>.*)",
    re.DOTALL,
)
PARAMETER = re.compile(
    r"(?P<const>const )?(?P<type>[\w:]+)(?:<\w+>)?"
    r"(?P<pointer>\*)?(?P<reference>&)?(?: \(&)?(?: ?(?P<name>__\w+))?\)?(?:\[(?P<count>\d+)\])?(?: = .*)?"
)

PREAMBLE = """\
#include <cuda/ptx>

struct alignas(16) bits128 { unsigned long long word[2]; };
struct alignas(32) bits256 { unsigned long long word[4]; };

template <typename T>
__device__ T taken(const unsigned long long* from, int place) { return *reinterpret_cast<const T*>(from + 4 * place); }

template <typename T>
__device__ void given(unsigned long long* to, const T& value) { *reinterpret_cast<T*>(to) = value; }
"""

KERNEL = """
__global__ void {name}(unsigned long long* global)
{{
  __shared__ alignas(1024) unsigned long long shared[256];
  {before}
  {call};
  {after}
}}
"""

CHOSEN_TYPES = {
    "_B8": ("unsigned char",),
    "_B16": ("unsigned short",),
    "_B32": ("unsigned",),
    "_B64": ("unsigned long long",),
    "_B128": ("bits128",),
    "_B256": ("bits256",),
    "_S32": ("int",),
    "_S64": ("long long",),
    "_U32": ("unsigned",),
    "_U64": ("unsigned long long",),
    "_Type": ("unsigned", "unsigned long long"),
}

CHOSEN_IMMEDIATES = {"imm_reg_count": 64, "size": 128, "initval": 0, "N": 1, "ord": 1, "new_val": 1, "scale_input_d": 3}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a wrapper; `count` is the length of an array passed by reference, else 0."""

    type: str
    name: str
    const: bool
    pointer: bool
    reference: bool
    count: int


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One overload of a cuda::ptx function, with the SM targets that its comment names."""

    name: str
    template: str
    result: str
    parameters: tuple[Parameter, ...]
    body: str
    targets: tuple[str, ...]

    def spelled_out(self, picked: list[str]) -> str:
        """The template argument that the call must name, in angle brackets.

        It is the result's type where no argument has it, and the kind of those tcgen05.mma overloads that are
        ambiguous with the ones whose last argument has a default.
        """
        types = [each.type for each in self.parameters]
        if self.result in CHOSEN_TYPES and self.result not in types:
            return f"<{CHOSEN_TYPES[self.result][0]}>"
        if self.template.startswith("::cuda::ptx::dot_kind"):
            return f"<cuda::ptx::{picked[types.index('::cuda::ptx::kind_t')]}_t::value>"
        return ""

    def runs_on(self, arch: str) -> bool:
        """Whether a target is this architecture, its family, or a plain one not above it."""
        return not self.targets or any(covers(target, arch) for target in self.targets)

    def choices(self, parameter: Parameter) -> tuple[str, ...]:
        """What a template parameter of this parameter's type may be: types, or constants named in an assertion."""
        if parameter.type in CHOSEN_TYPES:
            return CHOSEN_TYPES[parameter.type]
        if parameter.type == "::cuda::ptx::n32_t":
            return (f"cuda::ptx::n32_t<{CHOSEN_IMMEDIATES.get(parameter.name.strip('_'), 2)}>",)
        if "::ptx::" not in parameter.type:
            return (parameter.type,)
        constants = dict.fromkeys(re.findall(rf"static_assert\([^;]*?{parameter.name} == (\w+)", self.body))
        constants |= dict.fromkeys(re.findall(rf"\|\| {parameter.name} == (\w+)", self.body))
        return tuple(constants) if parameter.name and constants else (parameter.type,)


def covers(target: str, arch: str) -> bool:
    """Whether code for a target such as 90, 100a or 100f assembles for an architecture such as sm_100a."""
    level, suffix = re.fullmatch(r"(\d+)([af]?)", target).groups()  # type: ignore[union-attr]
    chip = int(re.sub(r"\D", "", arch))
    if suffix == "a":
        return arch == f"sm_{target}"
    return chip // 10 == int(level) // 10 and chip >= int(level) if suffix else chip >= int(level)


def wrappers(text: str) -> Iterator[Wrapper]:
    """The overloads that a generated header declares for this compiler's PTX."""
    for declaration in DECLARATION.finditer(text):
        if int(declaration["isa"]) > NEWEST_ISA:
            continue
        function = FUNCTION.search(declaration["code"])
        if function is None:
            raise ValueError(f"no function under {declaration['heading'][:80]!r}")
        listed = " ".join(function["parameters"].split())
        parameters = tuple(parameter(piece) for piece in re.split(r", (?![^<]*>)", listed) if piece)
        targets = tuple(re.findall(r"SM_(\w+)", declaration["heading"]))
        template = " ".join(function["template"].split())
        yield Wrapper(function["name"], template, function["result"], parameters, function["body"], targets)


def parameter(text: str) -> Parameter:
    """One parameter, from its C++ declaration."""
    match = PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"unreadable parameter {text!r}")
    by_reference = bool(match["reference"]) or bool(match["count"])
    return Parameter(
        match["type"],
        match["name"] or "",
        bool(match["const"]),
        bool(match["pointer"]),
        by_reference,
        int(match["count"] or 0),
    )


def kernels(wrapper: Wrapper, serial: Iterator[int]) -> Iterator[str]:
    """A kernel for each combination of the wrapper's constants and types."""
    varying = list(dict.fromkeys(parameter.type + parameter.name for parameter in wrapper.parameters))
    by_key = {parameter.type + parameter.name: wrapper.choices(parameter) for parameter in wrapper.parameters}
    typed = {key: index for index, key in enumerate(varying)}
    for chosen in itertools.product(*(by_key[key] for key in varying)):
        picked = [chosen[typed[parameter.type + parameter.name]] for parameter in wrapper.parameters]
        if conflicting(wrapper, picked):
            continue
        yield kernel(wrapper, picked, f"{wrapper.name}_{next(serial)}")


def conflicting(wrapper: Wrapper, picked: list[str]) -> bool:
    """Whether two parameters of one template type were given different types."""
    pairs = {(parameter.type, choice) for parameter, choice in zip(wrapper.parameters, picked, strict=True)}
    types = [kind for kind, _ in pairs if kind in CHOSEN_TYPES]
    return len(types) != len(set(types))


def kernel(wrapper: Wrapper, picked: list[str], name: str) -> str:
    """A kernel that calls the wrapper once, on loaded values, and stores what it returns or writes."""
    before, arguments, after = [], [], []
    for place, (each, choice) in enumerate(zip(wrapper.parameters, picked, strict=True)):
        local = f"value{place}"
        if each.pointer:
            space = "shared" if re.search(rf"as_ptr_\w*smem\({each.name}\)", wrapper.body) else "global"
            arguments.append(f"reinterpret_cast<{'const ' if each.const else ''}{choice}*>({space} + 32 * {place})")
        elif "ptx" in each.type:
            is_type = choice.startswith(("::", "cuda::"))
            arguments.append(f"{choice}{{}}" if is_type else f"cuda::ptx::{choice}")
        elif each.reference:
            size = f"[{each.count}]" if each.count else ""
            filled = each.count or 1
            before.append(f"{choice} {local}{size};")
            slots = [f"{local}[{index}]" if each.count else local for index in range(filled)]
            if each.const:
                before += [f"{slot} = taken<{choice}>(global, {place + n});" for n, slot in enumerate(slots)]
            else:
                after += [f"given(global + {8 + 4 * n}, {slot});" for n, slot in enumerate(slots)]
            arguments.append(local)
        else:
            arguments.append(f"taken<{choice}>(global, {place})")
    call = f"cuda::ptx::{wrapper.name}{wrapper.spelled_out(picked)}({', '.join(arguments)})"
    if wrapper.result != "void":
        call = f"given(global, {call})"
    return KERNEL.format(name=name, before="\n  ".join(before), call=call, after="\n  ".join(after))


def wrapper_recipes(include: Path) -> Iterator[Recipe]:
    """A module for each header of wrappers and each architecture that has some of them."""
    for header in sorted((include / "cuda/__ptx/instructions/generated").glob("*.h")):
        found = list(wrappers(header.read_text()))
        for arch in ARCHES:
            serial = itertools.count()
            bodies = [text for wrapper in found if wrapper.runs_on(arch) for text in kernels(wrapper, serial)]
            if bodies:
                yield cuda_recipe(f"ptx_{header.stem}", arch, PREAMBLE + "".join(bodies), (f"-I{include}",))


def program_recipes(include: Path) -> Iterator[Recipe]:
    """Programs over the library's classes, optimized and for the debugger, and the kernels of cub's algorithms."""
    flags = (f"-I{include}",)
    for name in ("barriers", "pipelines", "bulk_copies", "cub_blocks"):
        for arch in ARCHES[1:] if name == "bulk_copies" else ARCHES:
            yield cuda_recipe(name, arch, SOURCES / f"{name}.cu", flags)
            yield cuda_recipe(f"{name}_debug", arch, SOURCES / f"{name}.cu", (*flags, "-G"))
    for place, algorithm in enumerate(ALGORITHMS):
        arches = ARCHES if algorithm == "TRANSFORM" else (ARCHES[place % len(ARCHES)],)
        for arch in arches:
            name = f"cub_device_{algorithm.lower()}"
            yield cuda_recipe(name, arch, SOURCES / "cub_device.cu", (*flags, f"-DALGORITHM={algorithm}"))


def main() -> int:
    """Build the modules into the folder named on the command line."""
    include = Path(str(distribution("nvidia-cuda-cccl").locate_file("nvidia/cu13/include/cccl")))
    yield_to_others()
    return produce([*wrapper_recipes(include), *program_recipes(include)], "nvidia-cuda-cccl", time_limit=1800)


if __name__ == "__main__":
    raise SystemExit(main())
