"""The functions of floating-point instructions and conversions, against exact rationals and the text of the PTX ISA."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.execution.arithmetic import Computation, scalar
from ptxlint.parse import parse

UNTIMED = settings(deadline=None)
DECLARATIONS = ".reg .pred p<9>; .reg .b16 h<9>; .reg .b32 r<9>; .reg .b64 d<9>;"
PREFIX = {"8": "h", "16": "h", "32": "r", "64": "d"}
LAYOUTS = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52)}
"""Bits and fraction bits, from PTX ISA, *Fundamental Types* and *Alternate Floating-Point Data Formats*."""

NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}
MODES = ("rn", "rz", "rm", "rp")


@cache
def computed(text: str) -> Computation:
    module = parse(f".version 9.0 .target sm_100a .address_size 64 .entry k() {{ {DECLARATIONS} {text} }}")
    body = module.functions[0].body
    assert body
    computation = scalar(body[0])
    assert computation is not None, text
    return computation


def run(text: str, *values: int) -> int | tuple[int, ...]:
    return computed(text).function(*values)


def register(kind: str, number: int) -> str:
    return f"{PREFIX[kind.lstrip('bsuf')]}{number}"


def regular(name: str, kind: str, arity: int, destination: str | None = None) -> str:
    sources = ", ".join(register(kind, number) for number in range(1, arity + 1))
    return f"{name}.{kind} {destination or register(kind, 0)}, {sources};"


def value(bits: int, kind: str) -> Fraction | float:
    """The number that the bits stand for: sign, exponent and fraction put together; infinities and NaN as floats."""
    size, fraction = LAYOUTS[kind]
    ones = (1 << size - 1 - fraction) - 1
    exponent, rest = bits >> fraction & ones, bits & (1 << fraction) - 1
    sign = -1 if bits >> size - 1 else 1
    if exponent == ones:
        return math.nan if rest else sign * math.inf
    significand = rest + ((1 << fraction) if exponent else 0)
    return sign * significand * Fraction(2) ** (max(exponent, 1) - (ones >> 1) - fraction)


def neighbours(exact: Fraction, kind: str) -> tuple[int, int]:
    """The magnitudes' bit patterns around a number, found by bisection over the patterns."""
    size, fraction = LAYOUTS[kind]
    low, high = 0, (1 << size - 1) - (1 << fraction)
    while high - low > 1:
        middle = low + high >> 1
        number = value(middle, kind)
        low, high = (middle, high) if number <= abs(exact) else (low, middle)
    return (low, low) if value(low, kind) == abs(exact) else (low, high)


def rounded(exact: Fraction, kind: str, mode: str, zero_sign: int = 0) -> int:
    """The correctly rounded bits. Overflow happens where the next number would be the infinity's place."""
    size, fraction = LAYOUTS[kind]
    if not exact:
        return zero_sign << size - 1
    low, high = neighbours(exact, kind)
    top = (1 << size - 1) - (1 << fraction)
    upper = value(high, kind) if high < top else Fraction(2) ** (1 << size - 2 - fraction)
    assert isinstance(upper, Fraction)
    below, above = abs(exact) - Fraction(value(low, kind)), upper - abs(exact)
    if mode == "rn":
        chosen = low if below < above or (below == above and low % 2 == 0) else high
    else:
        outwards = {"rz": False, "rm": exact < 0, "rp": exact > 0}[mode]
        chosen = high if outwards else low
    return chosen | (int(exact < 0) << size - 1)


def patterns(kind: str) -> st.SearchStrategy[int]:
    """Bit patterns, special and moderate numbers often."""
    size, fraction = LAYOUTS[kind]
    infinity = (1 << size - 1) - (1 << fraction)
    one = infinity >> 1 & ~((1 << fraction) - 1)
    magnitudes = (0, 1, 1 << fraction, (1 << fraction) - 1, one, one + 1, infinity - 1, infinity, infinity + 1)
    near = st.integers(one - (8 << fraction), one + (8 << fraction))
    signed = st.builds(lambda bits, sign: bits | sign << size - 1, st.sampled_from(magnitudes) | near, st.booleans())
    return signed | st.integers(0, (1 << size) - 1)


def finite(kind: str) -> st.SearchStrategy[int]:
    return patterns(kind).filter(lambda bits: math.isfinite(value(bits, kind)))


def sign_of(bits: int, kind: str) -> int:
    return bits >> LAYOUTS[kind][0] - 1


ARITHMETIC: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", ARITHMETIC)
@UNTIMED
@given(st.data())
def test_results_are_rounded_once(name: str, kind: str, mode: str, data: st.DataObject) -> None:
    """PTX ISA, *Floating Point Instructions*, *Rounding Modifiers*."""
    a, b = data.draw(st.tuples(finite(kind), finite(kind)))
    x, y = Fraction(value(a, kind)), Fraction(value(b, kind))
    if name == "div" and not y:
        return
    exact = ARITHMETIC[name](x, y)
    if name in ("mul", "div"):
        zero = sign_of(a, kind) ^ sign_of(b, kind)
    else:
        second = sign_of(b, kind) ^ (name == "sub")
        zero = sign_of(a, kind) if not x and sign_of(a, kind) == second else int(mode == "rm")
    assert run(regular(f"{name}.{mode}", kind, 2), a, b) == rounded(exact, kind, mode, zero)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@UNTIMED
@given(st.data())
def test_fma_rounds_the_exact_sum(kind: str, mode: str, data: st.DataObject) -> None:
    """PTX ISA, *fma*: the product is not rounded."""
    a, b, c = data.draw(st.tuples(finite(kind), finite(kind), finite(kind)))
    x, y, z = (Fraction(value(bits, kind)) for bits in (a, b, c))
    exact = x * y + z
    if exact:
        assert run(regular(f"fma.{mode}", kind, 3), a, b, c) == rounded(exact, kind, mode)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@UNTIMED
@given(st.data())
def test_half_precision(kind: str, data: st.DataObject) -> None:
    """PTX ISA, *Half Precision Floating Point Instructions*: scalar and packed."""
    a, b, c, upper = data.draw(st.tuples(*[finite(kind)] * 4))
    x, y, z = (Fraction(value(bits, kind)) for bits in (a, b, c))
    if x * y + z:
        single = rounded(x * y + z, kind, "rn")
        assert run(regular("fma.rn", kind, 3), a, b, c) == single
        lower = run(f"fma.rn.{kind}x2 r0, r1, r2, r3;", upper << 16 | a, b, c)
        assert isinstance(lower, int)
        assert lower & 0xFFFF == single
    if x + y:
        assert run(regular("add.rn", kind, 2), a, b) == rounded(x + y, kind, "rn")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@UNTIMED
@given(st.data())
def test_square_roots_bracket_their_argument(kind: str, mode: str, data: st.DataObject) -> None:
    """PTX ISA, *sqrt*: compared by squares, so that no root has to be known."""
    a = data.draw(finite(kind).filter(lambda bits: 0 < bits < 1 << LAYOUTS[kind][0] - 1))
    root = run(regular(f"sqrt.{mode}", kind, 1), a)
    assert isinstance(root, int)
    exact = Fraction(value(a, kind))
    before, here, after = (Fraction(value(bits, kind)) for bits in (root - 1, root, root + 1))
    if mode == "rn":
        assert ((before + here) / 2) ** 2 <= exact <= ((here + after) / 2) ** 2
    elif mode == "rp":
        assert before**2 < exact <= here**2
    else:
        assert here**2 <= exact < after**2


COMPARISONS: dict[str, Callable[[float | Fraction, float | Fraction], bool]] = {
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "ne": operator.ne,
}


@pytest.mark.parametrize("kind", LAYOUTS)
@UNTIMED
@given(st.data())
def test_comparisons_with_nan(kind: str, data: st.DataObject) -> None:
    """PTX ISA, *Floating Point Comparisons*: with a NaN ordered tests are false, unordered ones true."""
    a, b = data.draw(st.tuples(patterns(kind), patterns(kind)))
    x, y = value(a, kind), value(b, kind)
    is_unordered = x != x or y != y
    for name, compare in COMPARISONS.items():
        assert run(regular(f"setp.{name}", kind, 2, "p0"), a, b) == int(compare(x, y) and not is_unordered)
        assert run(regular(f"setp.{name}u", kind, 2, "p0"), a, b) == int(compare(x, y) or is_unordered)
    assert run(regular("setp.num", kind, 2, "p0"), a, b) == int(not is_unordered)
    assert run(regular("setp.nan", kind, 2, "p0|p1"), a, b) == (int(is_unordered), int(not is_unordered))


@pytest.mark.parametrize("kind", LAYOUTS)
@UNTIMED
@given(st.data())
def test_extrema(kind: str, data: st.DataObject) -> None:
    """PTX ISA, *min*, *max*: the number when one operand is a NaN, the canonical NaN when both are; -0 below +0."""
    a, b = data.draw(st.tuples(patterns(kind), patterns(kind)))
    x, y = value(a, kind), value(b, kind)
    numbers = sorted((bits for bits, number in ((a, x), (b, y)) if number == number), key=lambda bits: key(bits, kind))
    least = numbers[0] if numbers else NAN[kind]
    greatest = numbers[-1] if numbers else NAN[kind]
    assert run(regular("min", kind, 2), a, b) == least
    assert run(regular("max", kind, 2), a, b) == greatest
    if kind != "f64":
        assert run(regular("max.NaN", kind, 2), a, b) == (greatest if len(numbers) == 2 else NAN[kind])


def key(bits: int, kind: str) -> tuple[Fraction | float, int]:
    return value(bits, kind), -sign_of(bits, kind)


@UNTIMED
@given(patterns("f32"), patterns("f32"))
def test_classes_and_signs(a: int, b: int) -> None:
    """PTX ISA, *testp*, *copysign*, *neg*, *abs*."""
    number, magnitude = value(a, "f32"), a & 0x7FFFFFFF
    classes = {
        "finite": math.isfinite(number),
        "infinite": math.isinf(number),
        "number": number == number,
        "notanumber": number != number,
        "subnormal": 0 < magnitude < 0x800000,
        "normal": math.isfinite(number) and not 0 < magnitude < 0x800000,
    }
    for name, holds in classes.items():
        assert run(f"testp.{name}.f32 p0, r1;", a) == int(holds)
    assert run("copysign.f32 r0, r1, r2;", a, b) == (a >> 31 << 31 | b & 0x7FFFFFFF)
    assert run("neg.f32 r0, r1;", a) == a ^ 0x80000000
    assert run("abs.f32 r0, r1;", a) == magnitude


@pytest.mark.parametrize(
    ("text", "inputs", "expected"),
    [
        ("add.ftz.f32 r0, r1, r2;", (0x00000001, 0x80000000), 0),
        ("mul.ftz.f32 r0, r1, r2;", (0x80800000, 0x3F000000), 0x80000000),
        ("add.sat.f32 r0, r1, r2;", (0x40000000, 0x40000000), 0x3F800000),
        ("add.sat.f32 r0, r1, r2;", (0x7FC00000, 0x40000000), 0),
        ("add.f32 r0, r1, r2;", (0x7F800000, 0xFF800000), 0x7FFFFFFF),
        ("mul.f32 r0, r1, r2;", (0x7F7FFFFF, 0x40000000), 0x7F800000),
        ("div.rn.f32 r0, r1, r2;", (0xBF800000, 0x00000000), 0xFF800000),
        ("rcp.rn.f32 r0, r1;", (0x80000000,), 0xFF800000),
        ("rcp.rz.f32 r0, r1;", (0x7F7FFFFF,), 0x00200000),
        ("rcp.rp.f32 r0, r1;", (0x7F7FFFFF,), 0x00200001),
        ("rcp.rm.f32 r0, r1;", (0xF60BE174,), 0x88EA41BE),
        ("div.rz.f32 r0, r1, r2;", (0xC1822BC8, 0x7EDAD1F3), 0x821849D9),
        ("rcp.rm.f64 d0, d1;", (0xC7456C77EE2355B5,), 0xB897E6152F4924B0),
        ("max.NaN.xorsign.abs.f16 h0, h1, h2;", (0x5C0D, 0xFFFF), 0x7FFF),
        ("cvt.f32.bf16 r0, h1;", (0xFFBB,), 0xFFBB0000),
        ("cvt.rzi.s32.f32 r0, r1;", (0x7FC00000,), 0),
        ("cvt.rzi.u64.f16 d0, h1;", (0xFFEE,), 0x8000000000000000),
        ("cvt.rzi.s8.f64 h0, d1;", (0x7FFFFFFFFFFFFFFF,), 0xFF80),
        ("cvt.rzi.u8.f64 h0, d1;", (0x7FFFFFFFFFFFFFFF,), 0x80),
        ("cvt.rna.tf32.f32 r0, r1;", (0x3F801000,), 0x3F802000),
        ("ex2.approx.f32 r0, r1;", (0x40400000,), 0x41000000),
        ("lg2.approx.f32 r0, r1;", (0x41000000,), 0x40400000),
        ("rsqrt.approx.f32 r0, r1;", (0x40800000,), 0x3F000000),
        ("fma.rn.relu.f16 h0, h1, h2, h3;", (0xBC00, 0x3C00, 0), 0),
        ("add.f32x2 d0, d1, d2;", (0x3F80000040000000, 0x400000003F800000), 0x4040000040400000),
        ("slct.u32.f32 r0, r1, r2, r3;", (1, 2, 0x80000000), 1),
        ("slct.u32.f32 r0, r1, r2, r3;", (1, 2, 0x7FC00000), 2),
        ("slct.u32.f32 r0, r1, r2, r3;", (1, 2, 0xBF800000), 2),
    ],
)
def test_modifiers_and_special_values(text: str, inputs: tuple[int, ...], expected: int) -> None:
    """Values that an H200 gave, or that follow from the text of the ISA."""
    assert run(text, *inputs) == expected


INTEGERS = tuple(f"{kind}{size}" for size in (8, 16, 32, 64) for kind in "us")


def limits(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def read(bits: int, kind: str) -> int:
    size = int(kind[1:])
    low = bits & (1 << size) - 1
    return low - (1 << size) if kind[0] == "s" and low >> size - 1 else low


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("destination", INTEGERS)
@UNTIMED
@given(st.integers(0, 2**64 - 1) | st.sampled_from((0, 127, 128, 255, 32768, 2**31, 2**32 - 1, 2**63, 2**64 - 1)))
def test_integer_conversions_from_wide_registers(destination: str, source: str, bits: int) -> None:
    """PTX ISA, *cvt*, *Operand Size Exceeding Instruction-Type Size*: sources are cut, signed results extended."""
    number = read(bits, source)
    result = run(f"cvt.{destination}.{source} d0, d1;", bits)
    assert result == read(number & 2**64 - 1, destination) & 2**64 - 1
    low, high = limits(destination)
    assert run(f"cvt.sat.{destination}.{source} d0, d1;", bits) == min(max(number, low), high) & 2**64 - 1


ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("destination", INTEGERS)
@UNTIMED
@given(st.data())
def test_floats_to_integers_are_clamped(destination: str, source: str, data: st.DataObject) -> None:
    """PTX ISA, *cvt*: out of range is clamped."""
    bits = data.draw(finite(source))
    low, high = limits(destination)
    for mode, rounding in ROUNDINGS.items():
        expected = min(max(rounding(Fraction(value(bits, source))), low), high)
        text = f"cvt.{mode}.{destination}.{source} d0, {register(source, 1)};"
        assert run(text, bits) == expected & 2**64 - 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("destination", ["f16", "f32", "f64"])
@pytest.mark.parametrize("source", INTEGERS)
@UNTIMED
@given(bits=st.integers(0, 2**64 - 1) | st.integers(0, 300))
def test_integers_to_floats(source: str, destination: str, mode: str, bits: int) -> None:
    """PTX ISA, *cvt*: rounded once, also from 64 bits."""
    exact = Fraction(read(bits, source))
    text = f"cvt.{mode}.{destination}.{source} {register(destination, 0)}, d1;"
    assert run(text, bits) == rounded(exact, destination, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("destination", "source"), [("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f32")])
@UNTIMED
@given(st.data())
def test_narrowing_floats(destination: str, source: str, mode: str, data: st.DataObject) -> None:
    """PTX ISA, *cvt*: one rounding, infinities kept, NaN canonical."""
    bits = data.draw(patterns(source))
    number = value(bits, source)
    size, fraction = LAYOUTS[destination]
    if number != number:
        expected = NAN[destination]
    elif isinstance(number, float):
        expected = (1 << size - 1) - (1 << fraction) | (number < 0) << size - 1
    else:
        expected = rounded(number, destination, mode, sign_of(bits, source))
    text = f"cvt.{mode}.{destination}.{source} {register(destination, 0)}, {register(source, 1)};"
    assert run(text, bits) == expected


@UNTIMED
@given(st.floats(allow_nan=False, width=32), st.floats(allow_nan=False, width=32))
def test_widening_packing_and_tf32(x: float, y: float) -> None:
    """PTX ISA, *cvt*: `d, a, b` puts `a` above `b`; a tf32 keeps the upper 19 bits."""
    a, b = (struct.unpack("<I", struct.pack("<f", number))[0] for number in (x, y))
    assert run("cvt.f64.f32 d0, r1;", a) == struct.unpack("<Q", struct.pack("<d", x))[0]
    high, low = run("cvt.rn.bf16.f32 h0, r1;", a), run("cvt.rn.bf16.f32 h0, r1;", b)
    assert isinstance(high, int)
    assert isinstance(low, int)
    assert run("cvt.rn.bf16x2.f32 r0, r1, r2;", a, b) == high << 16 | low
    tf32 = run("cvt.rna.tf32.f32 r0, r1;", a)
    assert isinstance(tf32, int)
    assert tf32 & 0x1FFF == 0
    if math.isfinite(value(a, "f32")) and a & 0x7F800000 < 0x7F000000:
        assert abs(Fraction(value(tf32, "f32")) - Fraction(value(a, "f32"))) <= Fraction(
            value(0x1000, "f32")
        ) * Fraction(2) ** max((a >> 23 & 255) - 1, 0)


def test_pack_of_saturated_integers() -> None:
    """PTX ISA, *cvt.pack*."""
    assert run("cvt.pack.sat.u16.s32 r0, r1, r2;", 70000, 2**32 - 5) == 0xFFFF0000
    assert run("cvt.pack.sat.s8.s32.b32 r0, r1, r2, r3;", 300, 2**32 - 300, 0x1234) == 0x12347F80
