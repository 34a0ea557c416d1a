"""Inlining: small functions run before and after by an interpreter, and a debug build with barriers behind calls."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ptxlint.execution import inline as inlining
from ptxlint.execution.arithmetic import constant, scalar
from ptxlint.execution.inline import inline
from ptxlint.ir import (
    Address,
    Arguments,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from ptxlint.parse import parse
from ptxlint.printer import print_module

RING = Path(__file__).parent.parent / "fixtures" / "inline" / "ring.ptx"
HEADER = ".version 8.8 .target sm_90a .address_size 64\n"


def module_of(text: str) -> Module:
    return parse(HEADER + text)


def entry_of(module: Module) -> Function:
    return next(function for function in module.functions if function.is_entry)


def inlined(text: str) -> Function:
    module = module_of(text)
    return inline(entry_of(module), module)


def opcodes(function: Function) -> list[str]:
    return [instruction.opcode for instruction in function.body or ()]


def operands(function: Function) -> Iterator[Operand]:
    """All operands, those inside addresses, vectors and pairs too."""
    for instruction in function.body or ():
        yield from within(instruction.operands)


def within(items: tuple[Operand, ...]) -> Iterator[Operand]:
    for item in items:
        yield item
        match item:
            case Vector(elements=elements) | Arguments(elements=elements):
                yield from within(elements)
            case Address(base=base, rest=rest):
                yield from within((base, *rest))
            case Pair(first=first, second=second):
                yield from within((first, second))


def run(function: Function, **registers: int) -> dict[str, int]:
    """The registers at `ret`. Knows `bra`, accesses to named variables, and what `scalar` knows; no calls."""
    values, memory, index, body = dict(registers), dict[str, int](), 0, function.body or ()
    for _ in range(10_000):
        instruction = body[index]
        index += 1
        guard = instruction.guard
        if guard is not None and values[guard.register.name] == guard.negated:
            continue
        if instruction.opcode == "ret":
            return values
        if instruction.opcode == "bra":
            (target,) = instruction.operands
            assert isinstance(target, Label)
            index = function.labels[target.name]
        else:
            step(instruction, values, memory)
    raise AssertionError("no end")


def step(instruction: Instruction, values: dict[str, int], memory: dict[str, int]) -> None:
    match instruction.opcode, instruction.operands:
        case "ld", (Register(name=name), Address() as place):
            values[name] = memory[str(place)]
        case "st", (Address() as place, Register(name=name)):
            memory[str(place)] = values[name]
        case "st", (Address() as place, Immediate(value=int() as number)):
            memory[str(place)] = number
        case _:
            computation = scalar(instruction)
            assert computation is not None, instruction
            inputs = [
                constant(operand, kind) if isinstance(operand, Immediate) else values[str(operand)]
                for operand, kind in zip(computation.inputs, computation.types, strict=True)
            ]
            result = computation.function(*inputs)
            results = result if isinstance(result, tuple) else (result,)
            values.update((str(name), number) for name, number in zip(computation.outputs, results, strict=True))


ABSOLUTE = """
.func (.param .b32 out) absolute(.param .b32 in) {
    .reg .b32 %r<3>; .reg .pred %p;
    ld.param.b32 %r1, [in];
    st.param.b32 [out], %r1;
    setp.ge.s32 %p, %r1, 0;
    @%p ret;
    neg.s32 %r2, %r1;
    st.param.b32 [out], %r2;
    ret;
}
"""


@pytest.mark.parametrize("number", [5, -5, 0])
def test_a_guarded_return_goes_to_what_follows_the_call(number: int) -> None:
    function = inlined(
        ABSOLUTE
        + """.entry k() {
            .reg .b32 %r<4>; .param .b32 a; .param .b32 b;
            st.param.b32 [a], %r1;
            call.uni (b), absolute, (a);
            ld.param.b32 %r2, [b];
            add.s32 %r3, %r2, 1;
            ret;
        }"""
    )
    assert opcodes(function).count("ret") == 1
    assert run(function, **{"%r1": number % 2**32})["%r3"] == abs(number) + 1


def test_argument_variables_become_local_memory() -> None:
    """The same variables are passed twice, by a call that goes and by one that stays."""
    text = ABSOLUTE + (
        """.extern .func other(.param .b32 x);
        .entry k() { .param .b32 a; .param .b32 b; .param .b32 c;
            st.param.b32 [a], 1; call (b), absolute, (a); st.param.b32 [c], 2; call other, (c); ret; }"""
    )
    function = inlined(text)
    assert {variable.name: variable.space for variable in function.variables} == {
        "a": "local",
        "b": "local",
        "c": "param",
    }
    stores = [instruction.name for instruction in function.body or () if instruction.opcode == "st"]
    assert stores == ["st.local.b32", "st.local.b32", "st.local.b32", "st.param.b32"]


REGISTERS = """
.func (.reg .b32 sum) add(.reg .b32 x, .reg .b32 y) { .reg .b32 t; add.s32 t, x, y; mov.b32 sum, t; ret; }
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("call (%r3), add, (%r1, %r2);", 30),
        ("call (%r3), add, (%r1, -1);", 9),
        ("call (%r3), add, (%r1, %r1); call (%r3), add, (%r3, %r3);", 40),
        ("st.param.b32 [v], 7; call (%r3), add, (%r1, v);", 17),
        ("call (v), add, (%r1, 2); ld.param.b32 %r3, [v];", 12),
        ("st.param.b32 [v], 7; call (v), add, (v, v); ld.param.b32 %r3, [v];", 14),
        ("call (_), add, (%r1, %r2);", 99),
        ("@%p call (%r3), add, (%r1, %r2);", 30),
        ("@!%p call (%r3), add, (%r1, %r2);", 99),
        ("call (%r3), absolute, (%r2);", 20),
        ("call (%r3), absolute, (-4);", 4),
        ("call (_), absolute, (3);", 99),
    ],
)
def test_arguments_and_results_of_every_kind(call: str, expected: int) -> None:
    text = f".entry k() {{ .reg .b32 %r<4>; .reg .pred %p; .param .b32 v; {call} ret; }}"
    function = inlined(ABSOLUTE + REGISTERS + text)
    assert "call" not in opcodes(function)
    assert run(function, **{"%r1": 10, "%r2": 20, "%r3": 99, "%p": 1})["%r3"] == expected


def test_nested_and_repeated_calls_keep_their_names_apart() -> None:
    function = inlined(
        REGISTERS
        + """
        .func (.reg .b32 out) twice(.reg .b32 x) { .reg .b32 t; call (t), add, (x, x); mov.b32 out, t; ret; }
        .func (.reg .b32 out) power(.reg .b32 x, .reg .b32 n) {
            .reg .pred p; .reg .b32 t;
            mov.b32 t, x;
            LOOP: setp.eq.s32 p, n, 0;
            @p bra DONE;
            call (t), twice, (t);
            sub.s32 n, n, 1;
            bra LOOP;
            DONE: mov.b32 out, t;
            ret;
        }
        .entry k() { .reg .b32 %r<4>; call (%r1), power, (3, 4); call (%r2), power, (%r1, 1); ret; }
        """
    )
    assert "call" not in opcodes(function)
    values = run(function)
    assert (values["%r1"], values["%r2"]) == (48, 96)
    assert len({label for label in function.labels if label.startswith("LOOP")}) == 2


def test_every_register_and_label_is_declared() -> None:
    module = parse(RING.read_text())
    check_names(inline(entry_of(module), module), module)


def check_names(function: Function, module: Module) -> None:
    declared = {name for name, _, count in function.registers if count is None}
    declared |= {f"{name}{number}" for name, _, count in function.registers if count for number in range(count)}
    variables = {item.name for item in (*function.variables, *function.parameters, *module.variables)}
    variables |= {item.name for item in module.functions}
    for operand in operands(function):
        match operand:
            case Register(name=name):
                assert name in declared
            case Symbol(name=name):
                assert name in variables
            case Label(name=name):
                assert name in function.labels or name in function.tables or name in function.prototypes
    assert all(0 <= index <= len(function.body or ()) for index in function.labels.values())


def test_static_variables_exist_once_and_local_ones_per_call() -> None:
    function = inlined(
        """.func f() { .shared .b32 once[4]; .local .b32 each[4]; .extern .shared .b8 dynamic[]; .reg .b64 d;
            mov.b64 d, once; mov.b64 d, each; mov.b64 d, dynamic; ret; }
        .entry k() { call f; call f; ret; }"""
    )
    spaces = [(variable.space, variable.name) for variable in function.variables]
    assert spaces.count(("shared", "once$f")) == 1
    assert spaces.count(("shared", "dynamic")) == 1
    assert [name for space, name in spaces if space == "local"] == ["each$c1", "each$c2"]


def test_branch_tables_pragmas_and_positions_move_along() -> None:
    function = inlined(
        """.func f(.reg .b32 i) { .reg .b32 r;
            T: .branchtargets A, B;
            brx.idx i, T;
            A: mov.b32 r, 1; bra C;
            .pragma "nounroll";
            B: mov.b32 r, 2;
            C: ret; }
        .entry k() { .reg .b32 x; mov.b32 x, 0; call f, (x); call f, (1); ret; }"""
    )
    assert function.tables == {"T$c1": ("A$c1", "B$c1"), "T$c2": ("A$c2", "B$c2")}
    body = function.body
    assert body is not None
    for number in (1, 2):
        assert str(body[function.labels[f"B$c{number}"]]) == f"mov.b32 r$c{number}, 2;"
        assert function.pragmas[function.labels[f"B$c{number}"]] == ("nounroll",)


@pytest.mark.parametrize(
    "text",
    [
        ".func f() { call f; ret; } .entry k() { call f; ret; }",
        ".extern .func f(); .entry k() { call f; ret; }",
        ".func f() { ret; } .entry k() { .reg .b64 d; P: .callprototype _ (); mov.b64 d, f; call d, P; ret; }",
        ".func (.param .b32 o) f(.param .b32 i) { ret; } .entry k() { .param .b32 v; call (v), f, (v); ret; }",
    ],
    ids=["recursive", "no body", "indirect", "in place"],
)
def test_what_stays_a_call(text: str) -> None:
    assert opcodes(inlined(text)).count("call") == 1


def test_a_function_without_calls_comes_back_itself() -> None:
    module = module_of(".entry k() { ret; }")
    assert inline(entry_of(module), module) is entry_of(module)


def test_an_alias_is_the_function_it_names() -> None:
    function = inlined(
        REGISTERS
        + """.func (.reg .b32 s) plus(.reg .b32 x, .reg .b32 y); .alias plus, add;
        .entry k() { .reg .b32 %r<2>; call (%r1), plus, (1, 2); ret; }"""
    )
    assert run(function)["%r1"] == 3


def test_growth_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of functions that each call the next twice doubles with every link."""
    chain = "".join(f".func f{n}() {{ call f{n - 1}; call f{n - 1}; ret; }}" for n in range(1, 31))
    monkeypatch.setattr(inlining, "LARGEST_BODY", 1000)
    function = inlined(f".func f0() {{ membar.cta; ret; }} {chain} .entry k() {{ call f30; ret; }}")
    assert len(function.body or ()) <= 1000
    assert "call" in opcodes(function)


def test_positions_name_the_call_as_the_outermost_frame() -> None:
    module = module_of(
        """.func g() { .loc 1 30 3
            membar.cta; ret; }
        .func f() { .loc 1 20 2
            call g; ret; }
        .entry k() { .loc 1 10 1
            call f; ret; }
        .file 1 "a.cu"
        """
    )
    fence = next(item for item in inline(entry_of(module), module).body or () if item.opcode == "membar")
    lines, loc = [], fence.loc
    while loc is not None:
        lines.append(loc.line)
        loc = loc.inlined_at
    assert lines == [30, 20, 10]


def test_the_debug_build_has_its_barriers_in_the_kernel() -> None:
    module = parse(RING.read_text())
    kernel = entry_of(module)
    function = inline(kernel, module)
    assert "call" in opcodes(kernel)
    assert "call" not in opcodes(function)
    names = [instruction.name for instruction in function.body or () if instruction.opcode == "mbarrier"]
    assert {name.split(".")[1]: names.count(name) for name in names} == {"init": 2, "try_wait": 2, "arrive": 2}


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_the_assembler_takes_the_result(tmp_path: Path) -> None:
    """Without source positions: PTX cannot write `inlined_at` without the function's name, which -G does not give."""
    module = parse(RING.read_text())
    function = inline(entry_of(module), module)
    body = tuple(replace(instruction, loc=None) for instruction in function.body or ())
    path = tmp_path / "inlined.ptx"
    path.write_text(print_module(replace(module, functions=(replace(function, body=body),))))
    subprocess.run(["ptxas", "-arch=sm_90a", str(path), "-o", "/dev/null"], check=True)
