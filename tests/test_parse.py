"""Text -> IR: what each form becomes, golden files, and agreement with the grammar applied to whole files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptxlint.ir import (
    Address,
    Arguments,
    Element,
    Function,
    Immediate,
    Indexed,
    Instruction,
    Module,
    Negated,
    Not,
    Pair,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptxlint.parse import parse, parse_bytes, parse_plainly, scopes
from ptxlint.parse.store import ShapeStore
from ptxlint.source import Loc, PtxSyntaxError, Span

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
BODY = f"{HEADER}.global .u32 g[4];\n.entry k(.param .u64 p) {{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>;\n"


def kernel(body: str) -> Function:
    function = parse(f"{BODY}{body}\n}}").function("k")
    assert function is not None
    return function


def instruction(text: str) -> Instruction:
    body = kernel(text).body
    assert body is not None
    return body[0]


def golden(module: Module) -> str:
    """All of a module as text, one fact a line."""
    lines = [f"{module.version} {module.target} {module.address_size} {dict(module.files)} {dict(module.strings)}"]
    lines += [repr(item) for item in (*module.variables, *module.directives, *module.notes)]
    for function in module.functions:
        lines.append(f"{function.span} {function.linkage} {'entry' if function.is_entry else 'func'} {function.name}")
        lines += [f"  parameter {item}" for item in function.parameters]
        lines += [f"  result {item}" for item in function.results]
        lines += [f"  {item}" for item in (*function.directives, *function.variables, *function.registers)]
        lines += [
            f"  {what} {value}"
            for what in ("labels", "tables", "prototypes", "pragmas")
            if (value := getattr(function, what))
        ]
        lines += [f"  {item.span} {item.operands!r}\n    {item}{_frames(item.loc)}" for item in function.body or ()]
    return "\n".join(lines) + "\n"


def _frames(loc: Loc | None) -> str:
    return "" if loc is None else f" @ {loc.file}:{loc.line}:{loc.column} {loc.function}{_frames(loc.inlined_at)}"


PARSE_FIXTURES = sorted((FIXTURES / "parse").glob("*.ptx"))


@pytest.mark.parametrize("path", PARSE_FIXTURES, ids=lambda path: path.stem)
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    found = golden(parse_bytes(path.read_bytes()))
    expected = path.with_suffix(".golden")
    if request.config.getoption("--update"):
        expected.write_text(found)
    assert found == expected.read_text()


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.ptx")), ids=lambda path: path.stem)
def test_shapes_agree_with_the_grammar(path: Path) -> None:
    text = path.read_text()
    assert parse(text) == parse_plainly(text)


@pytest.mark.parametrize("path", PARSE_FIXTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("joint", ["\n", "\r\n", " \t ", " "])
def test_layout_does_not_matter(path: Path, joint: str) -> None:
    """Other line ends and statements run together change places only, and both ways of parsing see the same."""
    text = path.read_text()
    if "\n" not in joint:
        text = re.sub(r"//[^\n]*|^[ \t]*(?:#|@@DWARF)[^\n]*|/\*.*?\*/", "", text, flags=re.MULTILINE | re.DOTALL)
    changed = text.replace("\n", joint)
    module = parse(changed)
    assert module == parse_plainly(changed)
    assert _texts(module) == _texts(parse(path.read_text()))


def _texts(module: Module) -> list[list[str]]:
    return [[str(item) for item in function.body or ()] for function in module.functions]


r1, r2, p1 = Register("%r1", "b32"), Register("%r2", "b32"), Register("%p1", "pred")
rd1 = Register("%rd1", "b64")


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("mov.u32 %r1, %tid.x;", (r1, SpecialRegister("%tid.x"))),
        ("mov.u32 %r1, WARP_SZ;", (r1, Immediate(32, "WARP_SZ"))),
        ("mov.u32 %r1, WARP_SZ-1;", (r1, Immediate(31, "31"))),
        ("mov.u32 %r1, 017;", (r1, Immediate(15, "017"))),
        ("mov.u32 %r1, 0X1FU;", (r1, Immediate(31, "0X1FU"))),
        ("mov.u32 %r1, 0b101;", (r1, Immediate(5, "0b101"))),
        ("mov.u32 %r1, -0x10U;", (r1, Immediate(-16, "-0x10U"))),
        ("mov.u32 %r1, (4*8+1);", (r1, Immediate(33, "33"))),
        ("mov.b32 %r1, (1 << 4) | 3 + 2 * (7 - 5);", (r1, Immediate(23, "23"))),
        ("mov.b32 %r1, -7 / 2;", (r1, Immediate(-3, "-3"))),
        ("mov.b32 %r1, -7 % 3;", (r1, Immediate(-1, "-1"))),
        ("mov.b32 %r1, 2 > 1 ? ~0 : !1;", (r1, Immediate(-1, "-1"))),
        ("mov.b32 %r1, 0f3F800000;", (r1, Immediate(1.0, "0f3F800000"))),
        ("mov.b64 %rd1, 0dBFF0000000000000;", (rd1, Immediate(-1.0, "0dBFF0000000000000"))),
        ("mov.b32 %r1, 2.5e-1;", (r1, Immediate(0.25, "2.5e-1"))),
        ("mov.u64 %rd1, g;", (rd1, Symbol("g"))),
        ("mov.u64 %rd1, g+4*2;", (rd1, Symbol("g", 8))),
        ("mov.u64 %rd1, g+-4;", (rd1, Symbol("g", -4))),
        ("mov.u64 %rd1, g[1];", (rd1, Indexed(Symbol("g"), Immediate(1, "1")))),
        ("ld.u32 %r1, [%rd1];", (r1, Address(rd1))),
        ("ld.u32 %r1, [%rd1+4+8];", (r1, Address(rd1, 12))),
        ("ld.u32 %r1, [ g + -4 ];", (r1, Address(Symbol("g"), -4))),
        ("ld.u32 %r1, [16];", (r1, Address(Immediate(16, "16")))),
        ("tex [g, {%r1, %r2}];", (Address(Symbol("g"), 0, (Vector((r1, r2)),)),)),
        ("mov.b64 {%r1,_}, %rd1;", (Vector((r1, Sink())), rd1)),
        ("setp.eq.s32 %p1|_, %r1, 0;", (Pair(p1, Sink()), r1, Immediate(0, "0"))),
        ("tex {%r1, %r2}|%p1, %r1;", (Pair(Vector((r1, r2)), p1), r1)),
        ("setp.and %p1, !%p1;", (p1, Not(p1))),
        ("vmad %r1, -%r2.h1, -%r2;", (r1, Negated(Element(r2, "h1")), Negated(r2))),
        ("call (%r1), g, (%r2, 5);", (Arguments((r1,)), Symbol("g"), Arguments((r2, Immediate(5, "5"))))),
        ("call.uni g;", (Symbol("g"),)),
    ],
)
def test_operands(text: str, operands: tuple[object, ...]) -> None:
    assert instruction(text).operands == operands


def test_opcode_modifiers_and_guard() -> None:
    found = instruction("@!%p1 cp.async.bulk.shared::cta.global.bulk_group .L2::cache_hint [%rd1], %r1;")
    assert found.opcode == "cp"
    assert found.modifiers == ("async", "bulk", "shared::cta", "global", "bulk_group", "L2::cache_hint")
    assert str(found.guard) == "@!%p1"
    assert found.span == Span(7, 1)


def test_an_opcode_that_nobody_knows_is_data() -> None:
    assert instruction("frobnicate.x2::y.u7 %r1;").name == "frobnicate.x2::y.u7"


def test_a_call_is_told_from_a_name_that_begins_alike() -> None:
    assert kernel("callback: calls.x %r1; bra callback;").labels == {"callback": 0}


def test_inner_scopes_are_renamed_and_outer_names_kept() -> None:
    function = kernel(
        "{ .reg .pred P1; L: @P1 bra L; }"
        "{ .reg .f32 P1; .reg .b32 %r<3>; mov.b32 P1, %r2; mov.b32 P1, %r5; bra L; L: }"
        ".reg .b64 P1; mov.b64 P1, %r2;"
    )
    assert [str(item) for item in function.body or ()] == [
        "@P1 bra L;",
        "mov.b32 P1$2, %r$2_2;",
        "mov.b32 P1$2, %r5;",
        "bra L$2;",
        "mov.b64 P1$3, %r2;",
    ]
    assert function.labels == {"L": 0, "L$2": 4}
    assert ("P1$2", "f32", None) in function.registers
    assert ("%r$2_", "b32", 3) in function.registers


def test_a_new_name_is_never_one_that_is_taken() -> None:
    function = kernel(
        "{ .reg .b32 a$2; .reg .b32 a; mov a, a$2; } { .reg .b32 a; mov a, 1; { .reg .b32 %r7; mov %r7, a; } }"
    )
    assert [str(item) for item in function.body or ()] == ["mov a, a$2;", "mov a$3, 1;", "mov %r7$2, a$3;"]


def test_parameterised_registers_are_not_made_one_by_one() -> None:
    text = f"{HEADER}.entry k() {{ .reg .b32 %r<4000000000>; mov.b32 %r3999999999, %r0; }}"
    assert parse(text) == parse_plainly(text)


def test_loc_chain() -> None:
    function = kernel(
        "mov %r1, 0;\n.loc 1 9 2\n.loc 1 7 71, function_name $a, inlined_at 1 9 2\n"
        ".loc 2 6 3, function_name $b+4, inlined_at 1 7 71\nmov %r1, 1;\n.loc 1 10 1\nmov %r1, 2;"
    )
    outer = Loc(1, 9, 2)
    middle = Loc(1, 7, 71, ("$a", 0), outer)
    assert [item.loc for item in function.body or ()] == [None, Loc(2, 6, 3, ("$b", 4), middle), Loc(1, 10, 1)]


def test_recursive_loc_chain_ends() -> None:
    function = kernel(".loc 1 1 1, function_name $a, inlined_at 1 1 1\n" * 1000 + "mov %r1, 0;")
    assert function.body is not None
    depth = 0
    loc = function.body[0].loc
    while loc is not None:
        depth, loc = depth + 1, loc.inlined_at
    assert depth < 100


def test_unknown_directives_are_noted() -> None:
    module = parse(f"{HEADER}.novelty 1, 2;\n.entry k() {{\n .oddity x;\n ret; }}")
    assert [(note.span, note.message) for note in module.notes] == [
        (Span(4, 1), "unknown directive .novelty"),
        (Span(6, 2), "unknown directive .oddity"),
    ]


def test_initializers_give_open_arrays_their_extent() -> None:
    pairs, two = ".global .s32 a[][2] = {{1,\n 2}, {3, 4}, };", ".global .b8 b[] = {1, generic(a)+4};"
    module = parse(f"{HEADER}{pairs}\n{two}\n.extern .shared .b8 c[];")
    assert [(item.name, item.size, item.dimensions, item.span.line) for item in module.variables] == [
        ("a", 16, (2, 2), 4),
        ("b", 2, (2,), 6),
        ("c", 0, (0,), 7),
    ]


def test_words_of_the_grammar_and_of_the_shapes_are_the_same() -> None:
    grammar = (ROOT / "grammar" / "ptx.lark").read_text()
    for name, pattern in (("WORD", scopes.NAME), ("NUMBER", scopes.NUMBER)):
        assert f"{name}: /{pattern.pattern}/" in grammar


def test_the_grammar_is_not_built_for_known_shapes(tmp_path: Path) -> None:
    """A second run over the same file starts from the stored shapes, in another process and without lark."""
    path = FIXTURES / "parse" / "scopes.ptx"
    code = "import sys; from ptxlint.parse import parse; parse(open(sys.argv[1]).read()); print('lark' in sys.modules)"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, path],
            env={"PTXLINT_CACHE_DIR": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert runs == ["True", "False"]


def test_a_spoilt_or_unwritable_cache_costs_only_time(tmp_path: Path) -> None:
    code = "import sys; from ptxlint.parse import parse; parse(open(sys.argv[1]).read())"

    def run(folder: Path) -> None:
        environment = {"PTXLINT_CACHE_DIR": str(folder), "PATH": ""}
        subprocess.run(
            [sys.executable, "-c", code, PARSE_FIXTURES[0]], env=environment, check=True, stderr=subprocess.PIPE
        )

    run(tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(b"spoilt" * 10)
    run(tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    run(blocked / "folder")


def test_a_stored_shape_that_is_spoilt_is_learned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLINT_CACHE_DIR", str(tmp_path))
    store = ShapeStore()
    for number in range(3):
        store.add(f"shape {number}", None)
    store.save()
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    found = ShapeStore()
    assert [found.get(f"shape {number}") is not None for number in range(4)] == [True, True, False, False]


def test_same_module_from_bytes() -> None:
    text = f"{BODY}ret; // \N{GREEK SMALL LETTER MU}\n}}"
    assert parse_bytes(b"\xef\xbb\xbf" + text.encode() + b"\0") == parse(text)
    latin = parse_bytes(text.encode().replace("\N{GREEK SMALL LETTER MU}".encode(), b"\xe9"))
    assert latin == parse(text)


@pytest.mark.parametrize(
    ("usual", "unusual", "operands"),
    [
        ("vmad %r1, -%r2;", "vmad %r1, -2;", (r1, Immediate(-2, "-2"))),
        ("vmad %r1, -2;", "vmad %r1, -%r2;", (r1, Negated(r2))),
        ("mov.b64 %rd1, g+4;", "mov.b64 %rd1, 3+4;", (rd1, Immediate(7, "7"))),
        ("and %r1, %r2|%p1;", "and %r1, 2|4;", (r1, Immediate(6, "6"))),
        ("ld %r1, [g+4];", "ld %r1, [g+4U];", (r1, Address(Symbol("g"), 4))),
    ],
)
def test_a_shape_filled_with_words_of_another_kind(usual: str, unusual: str, operands: tuple[object, ...]) -> None:
    instruction(usual)
    assert instruction(unusual).operands == operands


def test_undeclared_names_are_errors() -> None:
    with pytest.raises(PtxSyntaxError, match="7:19: '%r9' is not declared"):
        kernel("add.u32 %r1, %r2, %r9;")
    with pytest.raises(PtxSyntaxError, match="7:5: 'nowhere' is not declared"):
        kernel("bra nowhere; { nowhere: }")
