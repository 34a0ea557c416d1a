"""IR -> PTX: parsing what was printed gives the same IR, and ptxas takes it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxlint.ir import (
    Address,
    Directive,
    Element,
    Function,
    Guard,
    Immediate,
    Indexed,
    Instruction,
    Label,
    Module,
    Negated,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Variable,
    Vector,
    size_of,
)
from ptxlint.parse import parse
from ptxlint.printer import print_module
from ptxlint.source import Loc, Span

FIXTURES = Path(__file__).parent.parent / "fixtures"
NOWHERE = Span(1)

Placed = TypeVar("Placed", Function, Variable, Directive, Instruction)


def placeless(module: Module) -> Module:
    """The module without spans and notes."""
    return replace(
        module,
        notes=(),
        variables=_placeless(module.variables),
        directives=_placeless(module.directives),
        functions=tuple(
            replace(
                function,
                span=NOWHERE,
                parameters=_placeless(function.parameters),
                results=_placeless(function.results),
                directives=_placeless(function.directives),
                variables=_placeless(function.variables),
                body=None if function.body is None else _placeless(tuple(function.body)),
            )
            for function in module.functions
        ),
    )


def _placeless(items: tuple[Placed, ...]) -> tuple[Placed, ...]:
    return tuple(replace(item, span=NOWHERE) for item in items)


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.ptx")), ids=lambda path: path.stem)
def test_what_was_printed_is_parsed_again(path: Path) -> None:
    module = parse(path.read_text())
    assert placeless(parse(print_module(module))) == placeless(module)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.ptx")), ids=lambda path: path.stem)
def test_ptxas_accepts_what_was_printed(path: Path, tmp_path: Path) -> None:
    module = parse(path.read_text())
    if module.version < (7, 0):
        pytest.skip("ptxas has dropped this target")
    printed = tmp_path / "printed.ptx"
    printed.write_text(print_module(module))
    options = ["--gpu-name", module.target[0], "--compile-only", "--opt-level", "0", "--output-file", "/dev/null"]
    options += ["--device-debug"] if "debug" in module.target else []
    done = subprocess.run(["ptxas", *options, printed], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


REGISTERS = [Register(f"%r{index}", "b32") for index in range(4)] + [
    Register("quad", "v4.f32"),
    Register("P$1", "pred"),
]
SYMBOLS = ["shared$1", "_global", "k_param_0"]

registers = st.sampled_from(REGISTERS)
immediates = st.one_of(
    st.integers(-(2**63), 2**64 - 1).map(lambda value: Immediate(value, str(value))),
    st.integers(0, 2**64 - 1).map(lambda value: Immediate(value, hex(value))),
    st.integers(0, 2**32 - 1).map(lambda value: Immediate(value, f"{value:#b}U")),
    st.just(Immediate(1.5, "0d3FF8000000000000")),
    st.just(Immediate(32, "WARP_SZ")),
)
offsets = st.integers(-(2**31), 2**31)
scalars: st.SearchStrategy[Operand] = st.one_of(
    registers,
    immediates,
    st.builds(Symbol, st.sampled_from(SYMBOLS), offsets),
    st.sampled_from([Label("L1"), Label("$L__2")]),
    st.sampled_from(["%tid.x", "%laneid", "%clock64", "%cluster_ctarank"]).map(SpecialRegister),
    st.builds(Element, registers, st.sampled_from(["x", "b0", "h1"])),
    st.builds(Not, registers),
    st.builds(Negated, registers),
    st.builds(Indexed, st.sampled_from(SYMBOLS).map(Symbol), st.one_of(registers, immediates)),
)
bases = st.one_of(registers, st.sampled_from(SYMBOLS).map(Symbol), st.builds(Element, registers, st.just("y")))
vectors = st.lists(st.one_of(scalars, st.just(Sink())), max_size=5).map(lambda items: Vector(tuple(items)))
rests = st.lists(st.one_of(scalars, vectors), max_size=2).map(tuple)
operands: st.SearchStrategy[Operand] = st.one_of(
    scalars,
    st.just(Sink()),
    vectors,
    st.builds(Address, bases, offsets, rests),
    st.builds(Pair, st.one_of(registers, st.just(Sink()), vectors), st.one_of(registers, st.just(Sink()))),
)
modifiers = st.lists(st.sampled_from(["s32", "shared::cta", "b128", "1d", "L2::cache_hint"]), max_size=4).map(tuple)
locs = st.recursive(
    st.builds(Loc, st.integers(1, 3), st.integers(0, 9), st.integers(0, 9)),
    lambda callers: st.builds(
        Loc, st.integers(1, 3), st.integers(0, 9), st.integers(0, 9), st.sampled_from([("$a", 0), ("$a", 7)]), callers
    ),
    max_leaves=4,
)
guards = st.one_of(st.none(), st.builds(Guard, st.just(REGISTERS[-1]), st.booleans()))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Instruction, ...]:
    """Instructions; once one has a `.loc` all later ones have."""
    found = []
    loc = None
    for _ in range(draw(st.integers(0, 6))):
        loc = draw(st.one_of(st.just(loc), locs))
        items = tuple(draw(st.lists(operands, max_size=4)))
        opcode = draw(st.sampled_from(["mov", "unknown", "callx"]))
        found.append(Instruction(opcode, draw(modifiers), items, draw(guards), NOWHERE, loc))
    return tuple(found)


@st.composite
def variables(draw: st.DrawFn, name: str, space: str) -> Variable:
    """A variable of that name."""
    type_ = draw(st.sampled_from(["b8", "u64", "v4.f32", "f16x2", "b128"]))
    extents = tuple(draw(st.lists(st.integers(1, 9), max_size=2)))
    size = size_of(type_)
    for extent in extents:
        size *= extent
    align = draw(st.sampled_from([size_of(type_), 64]))
    return Variable(name, space, type_, align, size, dimensions=extents)


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """A module with one kernel that names everything it declares."""
    body = draw(bodies())
    places = st.integers(0, len(body))
    function = Function(
        name="k",
        is_entry=True,
        parameters=(draw(variables("k_param_0", "param")),),
        results=(),
        directives=draw(st.sampled_from([(), (Directive("maxntid", ("128", "1", "1"), NOWHERE),)])),
        variables=(draw(variables("shared$1", "shared")),),
        body=body,
        labels={"L1": draw(places), "$L__2": draw(places)},
        tables={"ts": ("L1", "$L__2")},
        prototypes={},
        registers=(("%r", "b32", 4), ("quad", "v4.f32", None), ("P$1", "pred", None)),
        linkage=draw(st.sampled_from([None, "visible"])),
        span=Span(9),
        pragmas=draw(st.dictionaries(places, st.just(("nounroll",)), max_size=2)),
    )
    return Module(
        version=draw(st.sampled_from([(2, 3), (9, 0)])),
        target=("sm_90a", "debug"),
        address_size=64,
        functions=(function,),
        variables=(draw(variables("_global", "global")),),
        files={1: "a b.cu", 2: "/c"},
        strings={},
    )


@given(modules())
def test_generated_modules_are_parsed_again(module: Module) -> None:
    assert placeless(parse(print_module(module))) == placeless(module)
