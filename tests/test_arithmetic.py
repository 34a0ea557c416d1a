"""The functions of pure integer, bit and comparison instructions, against definitions from the text of the PTX ISA."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.execution.arithmetic import CARRY, Computation, constant, identity, scalar
from ptxlint.ir import Immediate, Instruction, Register, Sink, SpecialRegister, Symbol
from ptxlint.parse import parse

DECLARATIONS = (
    ".shared .b32 array[4]; .reg .pred p<9>; .reg .b16 h<9>; .reg .b32 r<9>; .reg .b64 d<9>; .reg .b128 q<3>;"
)
UNTIMED = settings(deadline=None)
SIZES = (16, 32, 64)
INTEGERS = tuple(f"{kind}{size}" for size in SIZES for kind in "us")
PREFIX = {"8": "h", "16": "h", "32": "r", "64": "d"}


def instruction(text: str) -> Instruction:
    module = parse(f".version 9.0 .target sm_100a .address_size 64 .entry k() {{ {DECLARATIONS} {text} }}")
    body = module.functions[0].body
    assert body
    return body[0]


@cache
def computed(text: str) -> Computation:
    computation = scalar(instruction(text))
    assert computation is not None, text
    return computation


def run(text: str, *values: int) -> int | tuple[int, ...]:
    """The result of the instruction for the values of its register inputs, in order."""
    computation = computed(text)
    left = iter(values)
    return computation.function(
        *(
            constant(operand, kind) if isinstance(operand, Immediate) else next(left)
            for operand, kind in zip(computation.inputs, computation.types, strict=True)
        )
    )


def regular(name: str, arity: int, kind: str, destination: str | None = None) -> str:
    """`name.kind d, a, b ...` with registers of the kind's width."""
    prefix = PREFIX[kind[1:]]
    sources = ", ".join(f"{prefix}{number}" for number in range(1, arity + 1))
    return f"{name}.{kind} {destination or prefix + '0'}, {sources};"


def number(value: int, kind: str) -> int:
    """The bits read as a number: two's complement when the type is signed."""
    size = int(kind[1:]) // 8
    return int.from_bytes(value.to_bytes(size, "little"), "little", signed=kind[0] == "s")


def wrapped(value: int, kind: str) -> int:
    return value % (1 << int(kind[1:]))


def limits(kind: str) -> tuple[int, int]:
    size = int(kind[1:])
    return (-(2 ** (size - 1)), 2 ** (size - 1) - 1) if kind[0] == "s" else (0, 2**size - 1)


def saturated(value: int, kind: str) -> int:
    low, high = limits(kind)
    return wrapped(min(max(value, low), high), kind)


def integers(size: int) -> st.SearchStrategy[int]:
    """Bit patterns of the width, the edges often."""
    top = 2**size - 1
    return st.integers(0, top) | st.sampled_from((0, 1, 2, top, top - 1, top // 2, top // 2 + 1)) | st.integers(0, 40)


def operands(kind: str, count: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[integers(int(kind[1:]))] * count)


def towards_zero(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul.lo": operator.mul,
    "min": min,
    "max": max,
    "div": towards_zero,
    "rem": lambda a, b: a - b * towards_zero(a, b),
}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("name", BINARY)
@UNTIMED
@given(st.data())
def test_integer_arithmetic_instructions(name: str, kind: str, data: st.DataObject) -> None:
    """PTX ISA, *Integer Arithmetic Instructions*."""
    a, b = data.draw(operands(kind, 2))
    if name in ("div", "rem") and b == 0:
        return
    expected = wrapped(BINARY[name](number(a, kind), number(b, kind)), kind)
    assert run(regular(name, 2, kind), a, b) == expected


@pytest.mark.parametrize("kind", INTEGERS)
@UNTIMED
@given(st.data())
def test_high_and_wide_products(kind: str, data: st.DataObject) -> None:
    """PTX ISA, *mul*, *mad*: `.hi` is the upper half of the product, `.wide` all of it."""
    size = int(kind[1:])
    a, b, c = data.draw(operands(kind, 3))
    product = number(a, kind) * number(b, kind)
    assert run(regular("mul.hi", 2, kind), a, b) == wrapped(product // 2**size, kind)
    assert run(regular("mad.hi", 3, kind), a, b, c) == wrapped(product // 2**size + c, kind)
    assert run(regular("mad.lo", 3, kind), a, b, c) == wrapped(product + c, kind)
    if size < 64:
        wide, narrow = PREFIX[str(2 * size)], PREFIX[str(size)]
        text = f"{narrow}1, {narrow}2"
        assert run(f"mul.wide.{kind} {wide}0, {text};", a, b) == product % 2 ** (2 * size)
        big = data.draw(integers(2 * size))
        assert run(f"mad.wide.{kind} {wide}0, {text}, {wide}3;", a, b, big) == (product + big) % 2 ** (2 * size)


@UNTIMED
@given(operands("s32", 3))
def test_saturation(values: tuple[int, ...]) -> None:
    """PTX ISA, *add*, *sub*, *mad*: `.sat` limits a signed result to its range."""
    a, b, c = (number(value, "s32") for value in values)
    assert run("add.sat.s32 r0, r1, r2;", *values[:2]) == saturated(a + b, "s32")
    assert run("sub.sat.s32 r0, r1, r2;", *values[:2]) == saturated(a - b, "s32")
    assert run("mad.hi.sat.s32 r0, r1, r2, r3;", *values) == saturated((a * b >> 32) + c, "s32")


@UNTIMED
@given(st.integers(0, 2**96 - 1), st.integers(0, 2**96 - 1))
def test_carry_chains_add_and_subtract_long_integers(x: int, y: int) -> None:
    """PTX ISA, *Extended-Precision Integer Arithmetic Instructions*."""
    words = [(x >> shift & 0xFFFFFFFF, y >> shift & 0xFFFFFFFF) for shift in (0, 32, 64)]
    for first, middle, last, expected in (
        ("add.cc", "addc.cc", "addc", x + y),
        ("sub.cc", "subc.cc", "subc", x - y),
    ):
        low = run(f"{first}.u32 r0, r1, r2;", *words[0])
        assert isinstance(low, tuple)
        mid = run(f"{middle}.u32 r0, r1, r2;", *words[1], low[1])
        assert isinstance(mid, tuple)
        high = run(f"{last}.u32 r0, r1, r2;", *words[2], mid[1])
        assert isinstance(high, int)
        assert low[0] | mid[0] << 32 | high << 64 == expected % 2**96


@UNTIMED
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_carry_chain_of_a_long_product(a: int, b: int, c: int) -> None:
    """PTX ISA, *mad.cc*, *madc*: a 64-bit sum of a product and an addend in two halves."""
    low = run("mad.lo.cc.u32 r0, r1, r2, r3;", a, b, c & 0xFFFFFFFF)
    assert isinstance(low, tuple)
    high = run("madc.hi.u32 r0, r1, r2, r3;", a, b, c >> 32, low[1])
    assert isinstance(high, int)
    assert low[0] | high << 32 == (a * b + c) % 2**64


def test_what_the_text_leaves_open_is_as_an_h200_has_it() -> None:
    for kind in INTEGERS:
        ones = wrapped(-1, kind)
        assert run(regular("div", 2, kind), 7, 0) == ones
        assert run(regular("rem", 2, kind), 7, 0) == ones
    assert run("sub.cc.u32 r0, r1, r2;", 1, 2) == (2**32 - 1, 0)
    assert run("sub.cc.u32 r0, r1, r2;", 2, 1) == (1, 1)


def test_the_carry_is_the_last_input_and_the_last_output() -> None:
    first, last = computed("add.cc.u32 r0, r1, r2;"), computed("addc.u32 r0, r1, r2;")
    assert first.outputs[1:] == (CARRY,)
    assert CARRY not in first.inputs
    assert last.inputs[2:] == (CARRY,)
    assert len(last.outputs) == 1


@pytest.mark.parametrize("kind", ["u32", "s32"])
@UNTIMED
@given(st.data())
def test_products_of_24_bits_sad_and_dot_products(kind: str, data: st.DataObject) -> None:
    """PTX ISA, *mul24*, *mad24*, *sad*, *dp4a*, *dp2a*."""
    a, b, c = data.draw(operands(kind, 3))

    def low(value: int) -> int:
        value &= 0xFFFFFF
        return value - 2**24 if kind == "s32" and value >= 2**23 else value

    product = low(a) * low(b)
    assert run(regular("mul24.lo", 2, kind), a, b) == wrapped(product, kind)
    assert run(regular("mul24.hi", 2, kind), a, b) == wrapped(product >> 16, kind)
    assert run(regular("mad24.lo", 3, kind), a, b, c) == wrapped(product + c, kind)
    assert run(regular("sad", 3, kind), a, b, c) == wrapped(c + abs(number(a, kind) - number(b, kind)), kind)
    byte, half = f"{kind[0]}8", f"{kind[0]}16"
    parts_a, parts_b = a.to_bytes(4, "little"), b.to_bytes(4, "little")
    dot = sum(number(x, byte) * number(y, "s8") for x, y in zip(parts_a, parts_b, strict=True))
    assert run(f"dp4a.{kind}.s32 r0, r1, r2, r3;", a, b, c) == wrapped(c + dot, kind)
    for mode, chosen in (("lo", parts_b[:2]), ("hi", parts_b[2:])):
        halves = (a & 0xFFFF, a >> 16)
        dot = sum(number(x, half) * number(y, "u8") for x, y in zip(halves, chosen, strict=True))
        assert run(f"dp2a.{mode}.{kind}.u32 r0, r1, r2, r3;", a, b, c) == wrapped(c + dot, kind)


@UNTIMED
@given(operands("u32", 3))
def test_packed_halves_and_three_operands(values: tuple[int, ...]) -> None:
    """PTX ISA, *add*, *min*, *max*: packed 16-bit integers; *max*: three operands."""
    a, b, c = values
    halves = [((x, y), (number(x, "s16"), number(y, "s16"))) for x, y in ((a & 0xFFFF, b & 0xFFFF), (a >> 16, b >> 16))]
    packed = [wrapped(x + y, "u16") for (x, y), _ in halves]
    assert run("add.u16x2 r0, r1, r2;", a, b) == packed[0] | packed[1] << 16
    packed = [wrapped(max(x, y, 0), "s16") for _, (x, y) in halves]
    assert run("max.s16x2.relu r0, r1, r2;", a, b) == packed[0] | packed[1] << 16
    assert run("max.s32 r0, r1, r2, r3;", a, b, c) == wrapped(max(number(v, "s32") for v in values), "s32")
    assert run("min.u32 r0, r1, r2, r3;", a, b, c) == min(values)


@pytest.mark.parametrize("kind", INTEGERS)
@UNTIMED
@given(st.data())
def test_unary_integer_instructions(kind: str, data: st.DataObject) -> None:
    """PTX ISA, *neg*, *abs*, *not*, *cnot*, *popc*, *clz*, *brev*, *bfind*."""
    size = int(kind[1:])
    a = data.draw(integers(size))
    prefix, digits = PREFIX[str(size)], f"{a:0{size}b}"
    assert run(f"not.b{size} {prefix}0, {prefix}1;", a) == int(digits.translate({48: "1", 49: "0"}), 2)
    assert run(f"cnot.b{size} {prefix}0, {prefix}1;", a) == int(a == 0)
    if kind[0] == "s":
        assert run(regular("neg", 1, kind), a) == wrapped(-number(a, kind), kind)
        assert run(regular("abs", 1, kind), a) == wrapped(abs(number(a, kind)), kind)
    if size == 16:
        return
    assert run(f"popc.b{size} r0, {prefix}1;", a) == digits.count("1")
    assert run(f"clz.b{size} r0, {prefix}1;", a) == (digits + "1").index("1")
    assert run(f"brev.b{size} {prefix}0, {prefix}1;", a) == int(digits[::-1], 2)
    sought = "0" if kind[0] == "s" and digits[0] == "1" else "1"
    place = digits.find(sought)
    assert run(f"bfind.{kind} r0, {prefix}1;", a) == (size - 1 - place if place >= 0 else 2**32 - 1)
    assert run(f"bfind.shiftamt.{kind} r0, {prefix}1;", a) == (place if place >= 0 else 2**32 - 1)


@pytest.mark.parametrize("size", SIZES)
@UNTIMED
@given(st.data())
def test_shifts_clamp_their_amount(size: int, data: st.DataObject) -> None:
    """PTX ISA, *shl*, *shr*."""
    a, amount = data.draw(integers(size)), data.draw(integers(32))
    prefix, shift = PREFIX[str(size)], min(amount, size)
    assert run(f"shl.b{size} {prefix}0, {prefix}1, r2;", a, amount) == a * 2**shift % 2**size
    assert run(f"shr.u{size} {prefix}0, {prefix}1, r2;", a, amount) == a // 2**shift
    assert run(f"shr.s{size} {prefix}0, {prefix}1, r2;", a, amount) == number(a, f"s{size}") // 2**shift % 2**size


@UNTIMED
@given(operands("u32", 2), integers(32))
def test_funnel_shifts(pair: tuple[int, ...], amount: int) -> None:
    """PTX ISA, *shf*."""
    a, b = pair
    for mode, shift in (("wrap", amount % 32), ("clamp", min(amount, 32))):
        left = (b * 2**shift % 2**32) + a * 2**shift // 2**32
        assert run(f"shf.l.{mode}.b32 r0, r1, r2, r3;", a, b, amount) == left
        assert run(f"shf.r.{mode}.b32 r0, r1, r2, r3;", a, b, amount) == (b * 2**32 + a) // 2**shift % 2**32


@UNTIMED
@given(operands("u32", 3), st.integers(0, 255), st.integers(0, 1))
def test_lop3_evaluates_its_table_bit_by_bit(values: tuple[int, ...], table: int, q: int) -> None:
    """PTX ISA, *lop3*."""
    a, b, c = values
    expected = sum(
        (table >> ((a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (c >> bit & 1)) & 1) << bit for bit in range(32)
    )
    assert run(f"lop3.b32 r0, r1, r2, r3, {table};", a, b, c) == expected
    holds = expected != 0
    assert run(f"lop3.or.b32 r0|p0, r1, r2, r3, {table}, p1;", a, b, c, q) == (expected, int(holds or q))
    assert run(f"lop3.and.b32 r0|p0, r1, r2, r3, {table}, p1;", a, b, c, q) == (expected, int(holds and q))
    assert run(f"lop3.and.b32 r0|p0, r1, r2, r3, {table}, !p1;", a, b, c, q) == (expected, int(holds and not q))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@UNTIMED
@given(st.data())
def test_bit_field_extract_and_insert(kind: str, data: st.DataObject) -> None:
    """PTX ISA, *bfe*, *bfi*, by their loops over bits."""
    size = int(kind[1:])
    a, b = data.draw(operands(kind, 2))
    c, d = data.draw(st.tuples(integers(32), integers(32)) | st.tuples(st.integers(0, 70), st.integers(0, 70)))
    position, length, top, prefix = c & 255, d & 255, size - 1, PREFIX[str(size)]
    fill = 0 if kind[0] == "u" or not length else a >> min(position + length - 1, top) & 1
    field = sum((a >> position + i & 1 if i < length and position + i <= top else fill) << i for i in range(size))
    assert run(f"bfe.{kind} {prefix}0, {prefix}1, r2, r3;", a, c, d) == field
    inserted = b
    for i in range(length):
        if position + i <= top:
            inserted = inserted & ~(1 << position + i) | (a >> i & 1) << position + i
    assert run(f"bfi.b{size} {prefix}0, {prefix}1, {prefix}2, r3, r4;", a, b, c, d) == inserted


@UNTIMED
@given(integers(32), integers(32))
def test_bit_masks_and_extension(a: int, b: int) -> None:
    """PTX ISA, *bmsk*, *szext*."""
    wrap = sum(1 << bit for bit in range(32) if a % 32 <= bit < a % 32 + b % 32)
    assert run("bmsk.wrap.b32 r0, r1, r2;", a, b) == wrap
    assert run("bmsk.clamp.b32 r0, r1, r2;", a, b) == sum(1 << bit for bit in range(min(a, 32), min(a + b, 32)))
    for mode, length in (("wrap", b % 32), ("clamp", b)):
        kept = a if length >= 32 else a % 2**length
        assert run(f"szext.{mode}.u32 r0, r1, r2;", a, b) == kept
        negative = 0 < length < 32 and kept >= 2 ** (length - 1)
        assert run(f"szext.{mode}.s32 r0, r1, r2;", a, b) == ((kept - 2**length) % 2**32 if negative else kept)


@UNTIMED
@given(integers(32), st.integers(0, 31), st.integers(-34, 34))
def test_find_nth_set(bits: int, base: int, offset: int) -> None:
    """PTX ISA, *fns*."""
    places = [place for place in range(32) if bits >> place & 1]
    if offset > 0:
        found = [place for place in places if place >= base][offset - 1 : offset]
    elif offset < 0:
        found = [place for place in reversed(places) if place <= base][-offset - 1 : -offset]
    else:
        found = [base] if base in places else []
    assert run("fns.b32 r0, r1, r2, r3;", bits, base, offset % 2**32) == (found[0] if found else 2**32 - 1)


@UNTIMED
@given(operands("u32", 3))
def test_prmt_selects_bytes(values: tuple[int, ...]) -> None:
    """PTX ISA, *prmt*: the default mode."""
    a, b, c = values
    source = a.to_bytes(4, "little") + b.to_bytes(4, "little")
    picked = []
    for place in range(4):
        nibble = c >> 4 * place & 15
        byte = source[nibble & 7]
        picked.append((255 if byte > 127 else 0) if nibble & 8 else byte)
    assert run("prmt.b32 r0, r1, r2, r3;", a, b, c) == int.from_bytes(bytes(picked), "little")


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        ("f4e", ("3210", "4321", "5432", "6543")),
        ("b4e", ("5670", "6701", "7012", "0123")),
        ("rc8", ("0000", "1111", "2222", "3333")),
        ("ecl", ("3210", "3211", "3222", "3333")),
        ("ecr", ("0000", "1110", "2210", "3210")),
        ("rc16", ("1010", "3232", "1010", "3232")),
    ],
)
def test_prmt_modes(mode: str, rows: tuple[str, ...]) -> None:
    """PTX ISA, *prmt*: the table of modes, highest byte first."""
    for selector, row in enumerate(rows):
        expected = int("".join(f"a{byte}" for byte in row), 16)
        assert run(f"prmt.b32.{mode} r0, r1, r2, r3;", 0xA3A2A1A0, 0xA7A6A5A4, selector) == expected


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
JOINS: dict[str, Callable[[bool, bool], bool]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


@pytest.mark.parametrize("kind", INTEGERS)
@UNTIMED
@given(st.data())
def test_integer_comparisons(kind: str, data: st.DataObject) -> None:
    """PTX ISA, *Integer and Bit-Size Comparisons*, *setp*, *set*, *selp*."""
    a, b = data.draw(operands(kind, 2))
    x, y, c = number(a, kind), number(b, kind), data.draw(st.booleans())
    prefix = PREFIX[kind[1:]]
    for name, compare in COMPARISONS.items():
        holds = compare(x, y)
        assert run(regular(f"setp.{name}", 2, kind, "p0"), a, b) == int(holds)
        assert run(regular(f"setp.{name}", 2, kind, "p0|p1"), a, b) == (int(holds), int(not holds))
        assert run(regular(f"set.{name}.s32", 2, kind, "r0"), a, b) == (2**32 - 1 if holds else 0)
        assert run(regular(f"set.{name}.f32", 2, kind, "r0"), a, b) == (0x3F800000 if holds else 0)
        for join, combine in JOINS.items():
            text = f"setp.{name}.{join}.{kind} %s, {prefix}1, {prefix}2, %sp2;"
            assert run(text % ("p0", ""), a, b, c) == int(combine(holds, c))
            assert run(text % ("p0", "!"), a, b, c) == int(combine(holds, not c))
            assert run(text % ("p0|p1", ""), a, b, c) == (int(combine(holds, c)), int(combine(not holds, c)))
    assert run(f"selp.{kind} {prefix}0, {prefix}1, {prefix}2, p0;", a, b, c) == (a if c else b)
    if kind[0] == "u":
        for name, same in UNSIGNED_NAMES.items():
            assert run(regular(f"setp.{name}", 2, kind, "p0"), a, b) == int(COMPARISONS[same](a, b))


@UNTIMED
@given(operands("u32", 3))
def test_slct_on_an_integer(values: tuple[int, ...]) -> None:
    """PTX ISA, *slct*."""
    a, b, c = values
    assert run("slct.u32.s32 r0, r1, r2, r3;", a, b, c) == (a if c < 2**31 else b)


@UNTIMED
@given(operands("u64", 2))
def test_mov_packs_with_the_first_element_lowest(values: tuple[int, ...]) -> None:
    """PTX ISA, *mov*: vectors."""
    a, b = values
    assert run("mov.b128 q0, {d1, d2};", a, b) == b << 64 | a
    assert run("mov.b128 {d0, d1}, q2;", b << 64 | a) == (a, b)
    assert run("mov.b64 {r0, _}, d1;", a) == (a % 2**32, a >> 32)
    halves = [a >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
    assert run("mov.b64 {h0, h1, h2, h3}, d0;", a) == tuple(halves)
    assert run("mov.b64 d0, {h0, h1, h2, h3};", *halves) == a
    assert run("mov.b32 r0, {h1, 7};", halves[0]) == 7 << 16 | halves[0]


def test_operands_are_named_in_call_order() -> None:
    copy = computed("mov.u32 r0, %tid.x;")
    assert copy.function is identity
    assert copy.inputs == (SpecialRegister("%tid.x"),)
    unpacked = computed("mov.b64 {r0, _}, d1;")
    assert unpacked.outputs == (Register("r0", "b32"), Sink())
    assert unpacked.types == ("b64",)
    combined = computed("setp.lt.and.s32 p0|p1, r1, -2, !p2;")
    assert [str(operand) for operand in combined.inputs] == ["r1", "-2", "p2"]
    assert combined.types == ("s32", "s32", "pred")
    symbol = computed("mov.u32 r0, array;")
    assert symbol.inputs == (Symbol("array"),)


@pytest.mark.parametrize(
    ("text", "bits"), [("-1", 2**32 - 1), ("0x80000000", 2**31), ("0f7FC00001", 0x7FC00001), ("0f3F800000", 0x3F800000)]
)
def test_constants_keep_their_bits(text: str, bits: int) -> None:
    assert run(f"mov.b32 r0, {text};") == bits


def test_predicates_are_one_bit() -> None:
    """PTX ISA, *Operations on Predicates*."""
    assert run("mov.pred p0, 1;") == 1
    assert [run("not.pred p0, p1;", p) for p in (0, 1)] == [1, 0]
    assert [run("xor.pred p0, p1, p2;", p, 1) for p in (0, 1)] == [1, 0]
    assert [run("setp.ne.and.b32 p0, r1, 0, p1;", 5, p) for p in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "ld.shared.u32 r0, [r1];",
        "cvta.to.shared.u64 d0, d1;",
        "shfl.sync.idx.b32 r0, r1, r2, r3, r4;",
        "bra L; L:",
        "isspacep.shared p0, d1;",
        "bar.sync 0;",
    ],
)
def test_what_is_more_than_arithmetic_has_no_function(text: str) -> None:
    assert scalar(instruction(text)) is None
