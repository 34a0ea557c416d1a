"""Conversion between types: PTX ISA, *Data Movement and Conversion Instructions: cvt*."""

from __future__ import annotations

import math
from collections.abc import Callable

from ptxlint.execution.arithmetic.floating import flush, relu, saturate
from ptxlint.execution.arithmetic.form import Form, Function, Plan, element, is_float, mask, sign, width
from ptxlint.execution.arithmetic.formats import BF16, F32, FORMATS, Format, from_float, round_to

_INTEGRAL: dict[str, Callable[[float], float]] = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def cvt(form: Form) -> Plan | None:
    """*cvt* and *cvt.pack*; None for the formats below 8 bits, the 8-bit floats and stochastic rounding."""
    if form.has("pack"):
        return _saturating_pack(form)
    if len(form.types) != 2 or form.one_of("rs", "scaled::n2::ue8m0"):
        return None
    destination, source = form.types
    if any(modifier.startswith(("e2m", "e3m", "e4m", "e5m", "ue8m")) for modifier in form.modifiers):
        return None
    function: Function | None
    match is_float(destination), is_float(source):
        case False, False:
            return Plan(_between_integers(form, destination, source), (source,))
        case False, True:
            function = _to_integer(form, destination, source)
        case True, False:
            function = _from_integer(form, destination, source)
        case _:
            if lane := element(destination):
                return _packed(form, lane, source)
            function = _between_floats(form, destination, source)
    return Plan(function, (source,)) if function else None


def _saturating_pack(form: Form) -> Plan | None:
    """Two integers clamped and packed, `a` above `b`, and above them the low bits of `c` where there is one."""
    narrow, source, *_ = form.types
    s, ones, bits = sign(source), mask(narrow), width(narrow)
    low, high = _range(narrow)

    def clamp(a: int) -> int:
        return min(max((a ^ s) - s, low), high) & ones

    match form.arity, len(form.types):
        case 2, 2:
            return Plan(lambda a, b: clamp(a) << bits | clamp(b), (source, source))
        case 3, 3:
            return Plan(
                lambda a, b, c: (c << 2 * bits | clamp(a) << bits | clamp(b)) & 0xFFFFFFFF, (source, source, "b32")
            )
    return None


def _register_mask(form: Form, destination: str) -> int:
    return max(mask(destination), mask(form.register))


def _between_integers(form: Form, destination: str, source: str) -> Function:
    read, s = mask(source), sign(source)
    if form.has("sat"):
        low, high = _range(destination)
        ones = _register_mask(form, destination)
        return lambda a: min(max((a & read ^ s) - s, low), high) & ones
    kept = mask(destination)
    if not s and not _is_extended(form, destination):
        both = read & kept
        return lambda a: a & both
    if not _is_extended(form, destination):
        return lambda a: (a & read ^ s) - s & kept
    return _extended(form, destination, lambda a: (a & read ^ s) - s & kept)


def _is_extended(form: Form, destination: str) -> bool:
    """Whether a signed result is narrower than its register, whose upper bits then repeat its sign."""
    return bool(sign(destination)) and width(form.register) > width(destination)


def _extended(form: Form, destination: str, function: Function) -> Function:
    t, ones = sign(destination), mask(form.register)
    return lambda a: (function(a) ^ t) - t & ones


def _range(type_name: str) -> tuple[int, int]:
    s = sign(type_name)
    return (-s, s - 1) if s else (0, mask(type_name))


def _to_integer(form: Form, destination: str, source: str) -> Function | None:
    """Out of range is clamped, also without `.sat`; a NaN gives 0, or the top bit where f64 or 64 bits are in it."""
    layout, rounding = FORMATS.get(source), form.one_of(*_INTEGRAL)
    if layout is None or rounding is None:
        return None
    decode, integral = layout.decode, _INTEGRAL[rounding]
    prepare = flush(layout) if form.has("ftz") else None
    low, high = _range(destination)
    ones = _register_mask(form, destination)
    read = mask(source)
    is_wide = source == "f64" or width(destination) == 64
    undefined = (low or high + 1 >> 1) & ones if is_wide else 0

    def convert(a: int) -> int:
        value = decode(prepare(a & read) if prepare else a & read)
        if value != value:
            return undefined
        if math.isinf(value):
            return (high if value > 0 else low) & ones
        return min(max(int(integral(value)), low), high) & ones

    return convert


def _from_integer(form: Form, destination: str, source: str) -> Function | None:
    layout, mode = FORMATS.get(destination), form.one_of("rn", "rz", "rm", "rp")
    if layout is None or mode is None:
        return None
    read, s = mask(source), sign(source)

    def convert(a: int) -> int:
        value = (a & read ^ s) - s
        return round_to(layout, mode, value < 0, abs(value), 0)

    return _finished(form, layout, convert)


def _between_floats(form: Form, destination: str, source: str) -> Function | None:
    origin = FORMATS.get(source)
    if destination == "tf32":
        return _to_tf32(form) if source == "f32" else None
    target = FORMATS.get(destination)
    if origin is None or target is None:
        return None
    decode, read = origin.decode, mask(source)
    if rounding := form.one_of(*_INTEGRAL):
        function = _to_integral(target, _INTEGRAL[rounding], lambda a: decode(a & read))
    else:
        function = _narrowed(origin, target, form.one_of("rn", "rz", "rm", "rp", "rna") or "rn", read)
    if form.has("ftz") and origin is F32:
        function = _after(flush(F32), function)
    return _finished(form, target, function)


def _narrowed(origin: Format, target: Format, mode: str, read: int) -> Function:
    if origin is target:
        return lambda a: a & read
    if origin is BF16 and target is F32:
        return lambda a: (a & read) << 16
    decode, encode = origin.decode, target.encode
    if mode == "rn":
        return lambda a: encode(decode(a & read))
    return lambda a: from_float(target, mode, decode(a & read))


def _to_integral(target: Format, integral: Callable[[float], float], decode: Callable[[int], float]) -> Function:
    """A number rounded to an integer that stays a floating-point number, with its sign."""

    def convert(a: int) -> int:
        value = decode(a)
        return target.encode(math.copysign(float(integral(value)), value) if math.isfinite(value) else value)

    return convert


def _to_tf32(form: Form) -> Function:
    """A tf32 is the f32 whose low 13 fraction bits are zero: a rounding of the magnitude's bit pattern."""
    mode = form.one_of("rn", "rz", "rna") or "rn"
    top, infinity, nan = F32.sign, F32.infinity, F32.nan & ~0x1FFF

    def convert(a: int) -> int:
        magnitude = a & ~top
        if magnitude >= infinity:
            return nan if magnitude > infinity else a
        bump = {"rz": 0, "rna": 0x1000}.get(mode, 0xFFF + (magnitude >> 13 & 1))
        return a & top | magnitude + bump & ~0x1FFF

    return _finished(form, F32, convert)


def _packed(form: Form, lane: str, source: str) -> Plan | None:
    """`d, a, b`: `a` goes to the upper half, `b` to the lower."""
    single = _between_floats(form, lane, source)
    if single is None or form.arity != 2:
        return None
    bits = width(lane)
    return Plan(lambda a, b: single(a) << bits | single(b), (source, source))


def _finished(form: Form, layout: Format, function: Function) -> Function:
    for modifier, step in (("sat", saturate), ("relu", relu), ("satfinite", _finite)):
        if form.has(modifier):
            function = _after(function, step(layout))
    return _after(function, flush(layout)) if form.has("ftz") and layout is F32 else function


def _after(function: Function, step: Function) -> Function:
    return lambda a: step(function(a))


def _finite(layout: Format) -> Callable[[int], int]:
    """`.satfinite`: an infinity becomes the largest number of its sign, a NaN the canonical one."""
    infinity, top, nan = layout.infinity, layout.sign, layout.nan
    return lambda a: a if a & ~top < infinity else nan if a & ~top > infinity else a - 1
