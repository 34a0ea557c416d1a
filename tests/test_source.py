"""From `.loc` to the user's source: files, lines, names, and the calls that were inlined."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ptxlint.demangle import demangled
from ptxlint.ir import Module
from ptxlint.parse import parse
from ptxlint.source import Loc, SourceLocation, Span, located

FIXTURES = Path(__file__).parent.parent / "fixtures"

CUDA = """\
__device__ int scale(int value) {
    return value / 3;
}
__device__ int shift(int value) { return scale(value) + 1; }
__global__ void kernel(int* out) {
    out[threadIdx.x] = shift(threadIdx.x);
}
"""


def chains(module: Module, name: str) -> list[list[tuple[str, int, str | None]]]:
    """File, line and function of each frame, for each instruction of the function."""
    function = module.function(name)
    assert function is not None
    return [
        [
            (Path(frame.file).name, frame.line, frame.function)
            for frame in located(instruction.loc, module.files, module.strings, demangled).frames()
        ]
        for instruction in function.body or ()
        if instruction.loc is not None
    ]


def test_chain_with_names_at_offsets() -> None:
    module = parse((FIXTURES / "parse" / "declarations.ptx").read_text())
    innermost = [("inner.cuh", 4, "b()"), ("main.cu", 9, "c()"), ("main.cu", 3, None)]
    assert chains(module, "declarations") == [innermost, innermost[1:], innermost[1:]]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_chain_of_a_kernel_compiled_by_nvcc(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(CUDA)
    ptx = tmp_path / "kernel.ptx"
    subprocess.run(["nvcc", "-ptx", "-lineinfo", "-arch=sm_90", "-o", ptx, source], check=True, capture_output=True)
    found = chains(parse(ptx.read_text()), "_Z6kernelPi")
    assert [("kernel.cu", 2, "scale(int)"), ("kernel.cu", 4, "shift(int)"), ("kernel.cu", 6, None)] in found
    assert all(chain[-1][1] in (5, 6, 7) for chain in found)


def test_what_the_module_does_not_name() -> None:
    assert located(Loc(3, 1, 2, ("$nowhere", 0)), {}, {}, demangled) == SourceLocation("?", 1, 2)


def test_places_as_text() -> None:
    assert str(Span(3, 4)) == "3:4"
    assert str(SourceLocation("a.cu", 3, 4)) == "a.cu:3:4"


def test_lines_that_are_counted_on_inside_inline_asm() -> None:
    """The form in which LLVM writes them; nvcc writes none, so a `.loc` of the user's file is all that there is."""
    module = parse((FIXTURES / "parse" / "inline_asm_lines.ptx").read_text())
    own, inlined = [("kernel.py", 23, None)], [("kernel.py", 17, "helper"), ("kernel.py", 24, None)]
    assert chains(module, "waiting") == [own] * 4 + [inlined] * 2 + [[("kernel.py", 18, None)]]
