"""What is not PTX: a place and what was expected, in bounded time, whatever the bytes."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from ptxlint.parse import parse, parse_bytes, parse_plainly
from ptxlint.source import PtxSyntaxError

HEADER = ".version 9.0\n.target sm_90a\n"
BODY = f"{HEADER}.entry k() {{\n.reg .b32 %r<9>; .reg .pred %p<4>;\n"
FIXTURES = Path(__file__).parent.parent / "fixtures" / "parse"


def rejected(text: str | bytes) -> str:
    with pytest.raises(PtxSyntaxError) as caught:
        parse_bytes(text) if isinstance(text, bytes) else parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "1:1: no '.version' directive: this is not a PTX module"),
        (b" \n\n", "1:1: no '.version' directive"),
        (b"// only a comment", "1:1: no '.version' directive"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "1:8: a NUL byte: this is a binary file"),
        (b".version 9.0\nab\x00c", "2:3: a NUL byte"),
        (b"\xff\xfe.version 9.0", "1:1: '.* is not expected here; expected"),
        (b"<html>\n<body>", "1:1: '<.*' is not expected here; expected a directive"),
        (b".version 9.0\n.reg", "2:5: the file ends here; expected"),
        (b".version 9.0", "1:1: no '.target' directive follows"),
        (b".version nine\n.target sm_90", "1:10: 'nine' is not expected here; expected a number"),
        (b".version 9.0\n.version 9.0\n.target sm_90", "2:1: a second '.version' directive"),
        (b'.version 9.0\n.target sm_90\n.file 1.5 "a"', "3:7: '1.5' is not a whole number"),
        (b"/* never closed", "1:1: a comment is opened and never closed; expected '\\*/'"),
    ],
)
def test_files_that_are_not_modules(data: bytes, message: str) -> None:
    assert re.match(message, rejected(data))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.u32 %r1 %r2;", "5:13: '%r2' is not expected here; expected .*','"),
        ("mov.u32 %r1, ;", "5:14: ';' is not expected here; expected .*a name or a number"),
        ("mov.u32 %r1, %r2", "6:1: '}' is not expected here; expected .*';'"),
        ("mov.u32 %r1, %r99;", "5:14: '%r99' is not declared"),
        ("mov.u32 %r1, %tid.q;", "5:14: '%tid.q' is not declared"),
        ("@%q1 ret;", "5:2: '%q1' is not declared"),
        ("@k ret;", "5:2: the guard 'k' is not a register"),
        ("bra L; { L: }", "5:5: 'L' is not declared"),
        ("L: L: ret;", "5:4: 'L' is declared twice"),
        (".reg .b32 %r<2>;", "5:11: '%r' is declared twice"),
        (".reg .b32 a; .reg .b64 a;", "5:24: 'a' is declared twice"),
        (".reg a;", "5:1: the declaration names no type"),
        (".shared .b32 s[%r1];", "5:14: the extent of an array must be a constant"),
        ("ld.u32 %r1, [%r1+%r2];", "5:1: an operand of 'ld.u32'"),
        ("mov.u32 %r1, 1/0;", "5:1: an operand of 'mov.u32'"),
        ("mov.u32 %r1, %r2+1;", "5:1: an operand of 'mov.u32'"),
        ("mov.u32 %r1, 0x;", "5:15: 'x' is not expected here"),
        ("mov.u32 %r1, 12ab;", "5:16: 'ab' is not expected here"),
        ('.pragma "open;', "5:9: '\"open' is not expected here; expected a string"),
        ("call k, (1), 2;", "5:14: '2' is not expected here; expected .*a name"),
        (".section .debug_str { .b8 1 }", "5:"),
        (".novelty 1+%r1;", "5:1: an argument of '.novelty' is not a constant"),
        ("@%p1 # no comment", "5:6: '#' is not expected here"),
        (".loc 1 2;", "5:9: ';' is not expected here; expected a number"),
        ("} }", "5:3: '}' is not expected here"),
        ("{ ret;", "7:1: the file ends here; expected .*'}'"),
        ("ret; // }\n/* ; */ ret ret;", "6:13: 'ret' is not declared"),
        (".entry inner() { ret; }", "5:.*is not expected here|begins before the last one ended"),
        ("add.u32 %r1, %r2, \N{GREEK SMALL LETTER MU};", "5:19: '\\\\u03bc' is not expected here"),
        ("mov.u32 %r1, {%r1; }", "5:18: ';' is not expected here; expected .*'}'"),
        ("mov.u32 %r1, " + "9" * 5000 + ";", "5:414: "),
    ],
)
def test_statements_that_are_not_ptx(body: str, message: str) -> None:
    text = f"{BODY}{body}\n}}\n"
    assert re.search(message, rejected(text))
    with pytest.raises(PtxSyntaxError):
        parse_plainly(text)


@pytest.mark.parametrize("outside", ["mov.u32 %r1, 1;", "L:", "}", "{ }", ".loc 1 1 1", "@%p1 bra L;"])
def test_statements_outside_of_functions(outside: str) -> None:
    text = f"{HEADER}\n{outside}\n"
    assert rejected(text).startswith("4:1: ")
    with pytest.raises(PtxSyntaxError):
        parse_plainly(text)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.ptx")), ids=lambda path: path.stem)
def test_truncated_at_every_word(path: Path) -> None:
    """A file cut short is a module or an error within it, the same for both ways of parsing."""
    text = path.read_text()
    cuts = [found.start() for found in re.finditer(r"[\w.$%]+|\S", text)]
    for cut in cuts[:: max(1, len(cuts) // 60)]:
        short = text[:cut]
        outcomes: list[str] = []
        lines: list[int] = []
        for parser in (parse, parse_plainly):
            try:
                outcomes.append(str(parser(short)))
            except PtxSyntaxError as error:
                outcomes.append(f"rejected {error}")
                lines.append(error.span.line)
        assert outcomes[0] == outcomes[1]
        assert all(line <= short.count("\n") + 1 for line in lines)


DEEP = 10_000


@pytest.mark.parametrize(
    "body",
    [
        "{" * DEEP,
        "mov.b32 %r1, " + "{" * DEEP + "1" + "}" * DEEP + ";",
        "mov.b32 %r1, " + "- " * DEEP + "1;",
        "mov.b32 %r1, " + "1+" * DEEP + "1;",
        "mov.b32 %r1, " + "1?2:" * DEEP + "1;",
        "mov.b32 %r1, " + "g[" * DEEP + "1" + "]" * DEEP + ";",
        "ld.b32 %r1, " + "[" * DEEP,
        "a" * 1_000_000,
        "(" * 1_000_000,
        '"' * 1_000_000,
        "a: " * 50_000 + "a",
    ],
    ids=lambda body: body[:18],
)
def test_deep_and_long_text(body: str) -> None:
    started = time.process_time()
    rejected(f"{BODY}{body}\n}}\n")
    assert time.process_time() - started < 30


def test_deep_scopes_are_read() -> None:
    module = parse(f"{BODY}{'{' * DEEP}mov.b32 %r1, 1;{'}' * DEEP} ret;\n}}\n")
    assert len(module.functions[0].body or ()) == 2


def test_a_line_of_a_million_letters_is_read() -> None:
    statement = "add.s32 %r1, %r2, %r3; "
    function = parse(f"{BODY}{statement * 45_000}ret;\n}}\n").functions[0]
    assert function.body is not None
    assert len(function.body) == 45_001
    assert function.body[44_999].span.column == 44_999 * len(statement) + 1


def test_statements_longer_than_a_block_are_read() -> None:
    """A large initializer between small statements, positions after it included."""
    values = ", ".join(["1"] * 2_000_000)
    large = f".global .b8 large[] = {{{values}}};"
    text = f"{HEADER}.global .b32 before;\n{large}\n.global .b32 after;\n.entry k() {{ ret; }}\n"
    module = parse(text)
    assert [(item.name, item.span.line, item.size) for item in module.variables] == [
        ("before", 3, 4),
        ("large", 4, 2_000_000),
        ("after", 5, 4),
    ]
    assert module.functions[0].span.line == 6
