"""Floating-point arithmetic: PTX ISA, *Floating Point Instructions*, *Half Precision Floating Point Instructions*.

Results are rounded once from the exact value. The `.approx` and `.full` forms, whose error the ISA only bounds, give
the value of the host's mathematical library rounded to nearest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ptxlint.execution.arithmetic.form import Form, Function, Plan, by_lanes, element
from ptxlint.execution.arithmetic.formats import F64, FORMATS, Format, parts, round_to

_QUOTIENT_BITS = 128
"""Bits of a quotient or root kept before the sticky bit: more than twice the longest significand."""


def add(form: Form) -> Plan | None:
    """*add*."""
    return _arithmetic(form, 2, lambda x, y: x + y, lambda layout, mode: _exact_sum(layout, mode, 1.0))


def sub(form: Form) -> Plan | None:
    """*sub*."""
    return _arithmetic(form, 2, lambda x, y: x - y, lambda layout, mode: _exact_sum(layout, mode, -1.0))


def mul(form: Form) -> Plan | None:
    """*mul*."""
    return _arithmetic(form, 2, lambda x, y: x * y, _exact_product)


def fma(form: Form) -> Plan | None:
    """*fma* and *mad*: one rounding."""
    return _arithmetic(form, 3, None, _exact_fma)


def div(form: Form) -> Plan | None:
    """*div*."""
    return _arithmetic(form, 2, _quotient, _exact_quotient)


def rcp(form: Form) -> Plan | None:
    """*rcp*."""

    def exact(layout: Format, mode: str) -> Function:
        quotient = _exact_quotient(layout, mode)
        return lambda x: quotient(1.0, x)

    return _arithmetic(form, 1, lambda x: _quotient(1.0, x), exact)


def sqrt(form: Form) -> Plan | None:
    """*sqrt*."""
    return _arithmetic(form, 1, lambda x: math.sqrt(x) if x >= 0 else math.nan, _exact_root)


def rsqrt(form: Form) -> Plan | None:
    """*rsqrt*."""
    return _approximate(form, _reciprocal_root)


def sin(form: Form) -> Plan | None:
    """*sin*."""
    return _approximate(form, lambda x: math.sin(x) if math.isfinite(x) else math.nan)


def cos(form: Form) -> Plan | None:
    """*cos*."""
    return _approximate(form, lambda x: math.cos(x) if math.isfinite(x) else math.nan)


def lg2(form: Form) -> Plan | None:
    """*lg2*."""
    return _approximate(form, lambda x: math.log2(x) if x > 0 else -math.inf if x == 0 else math.nan)


def ex2(form: Form) -> Plan | None:
    """*ex2*."""
    return _approximate(form, lambda x: math.inf if x > 1024 else math.exp2(x) if x < 1024 else x * math.inf)


def tanh(form: Form) -> Plan | None:
    """*tanh*."""
    return _approximate(form, math.tanh)


def absolute(form: Form) -> Plan | None:
    """*abs*: the sign bit is cleared."""
    return _on_sign(form, lambda top: lambda a: a & ~top)


def neg(form: Form) -> Plan | None:
    """*neg*: the sign bit is inverted."""
    return _on_sign(form, lambda top: lambda a: a ^ top)


def copysign(form: Form) -> Plan:
    """*copysign*: the magnitude of `b` with the sign of `a`."""
    top = FORMATS[form.type].sign
    return Plan(lambda a, b: a & top | b & ~top, (form.type, form.type))


def minimum(form: Form) -> Plan | None:
    """*min*: the number when one operand is a NaN, unless `.NaN`; -0 is less than +0."""
    return _extremum(form, lambda top: lambda a, b: a if _order(a, top) < _order(b, top) else b)


def maximum(form: Form) -> Plan | None:
    """*max*: the number when one operand is a NaN, unless `.NaN`; -0 is less than +0."""
    return _extremum(form, lambda top: lambda a, b: a if _order(a, top) > _order(b, top) else b)


def flush(layout: Format) -> Callable[[int], int]:
    """The function that turns a subnormal number into the zero of its sign."""
    exponent, top = layout.infinity, layout.sign
    return lambda a: a if a & exponent else a & top


def saturate(layout: Format) -> Callable[[int], int]:
    """The function that clamps to [0, 1]; a NaN becomes 0."""
    one, infinity = layout.one, layout.infinity
    return lambda a: a if a <= one else one if a <= infinity else 0


def relu(layout: Format) -> Callable[[int], int]:
    """The function that turns negative numbers into 0; a NaN becomes the canonical one."""
    infinity, nan, top = layout.infinity, layout.nan, layout.sign
    return lambda a: nan if a & ~top > infinity else 0 if a & top else a


def _lane(form: Form) -> Format | None:
    if len(set(form.types)) > 1:
        return None
    return FORMATS.get(element(form.type) or form.type)


def _arithmetic(
    form: Form, arity: int, native: Function | None, exact: Callable[[Format, str], Function]
) -> Plan | None:
    """An operation on decoded values, by the host's doubles where they round once, else by exact integers.

    A double is wide enough that rounding a sum, product, quotient or root of narrower operands again to nearest gives
    what one rounding would; a fused multiply-add or a directed rounding is not covered by that.
    """
    layout = _lane(form)
    if layout is None or form.arity != arity:
        return None
    mode = form.one_of("rn", "rz", "rm", "rp") or "rn"
    if mode == "rn" and native is not None:
        function = _decoded(layout, native, layout.encode, arity)
    else:
        function = _decoded(layout, exact(layout, mode), lambda bits: bits, arity)
    return _finished(form, layout, function, arity)


def _approximate(form: Form, native: Function) -> Plan | None:
    layout = _lane(form)
    return _finished(form, layout, _decoded(layout, native, layout.encode, 1), 1) if layout else None


def _decoded(layout: Format, function: Function, encode: Function, arity: int) -> Function:
    decode = layout.decode
    if arity == 1:
        return lambda a: encode(function(decode(a)))
    if arity == 2:
        return lambda a, b: encode(function(decode(a), decode(b)))
    return lambda a, b, c: encode(function(decode(a), decode(b), decode(c)))


def _finished(form: Form, layout: Format, function: Function, arity: int) -> Plan:
    """The plan of a bit-pattern function after `.ftz`, `.sat`, `.relu` and packing."""
    if form.has("ftz"):
        function = _flushing(layout, function, arity)
    if form.has("sat"):
        function = _then(function, saturate(layout), arity)
    if form.has("relu"):
        function = _then(function, relu(layout), arity)
    lane = element(form.type)
    return Plan(by_lanes(function, lane, arity) if lane else function, (form.type,) * arity)


def _flushing(layout: Format, function: Function, arity: int) -> Function:
    zero = flush(layout)
    if arity == 1:
        return lambda a: zero(function(zero(a)))
    if arity == 2:
        return lambda a, b: zero(function(zero(a), zero(b)))
    return lambda a, b, c: zero(function(zero(a), zero(b), zero(c)))


def _then(function: Function, finish: Function, arity: int) -> Function:
    if arity == 1:
        return lambda a: finish(function(a))
    if arity == 2:
        return lambda a, b: finish(function(a, b))
    return lambda a, b, c: finish(function(a, b, c))


def _exact_sum(layout: Format, mode: str, factor: float) -> Function:
    fused = _exact_fma(layout, mode)
    return lambda x, y: fused(y, factor, x)


def _exact_product(layout: Format, mode: str) -> Function:
    def product(x: float, y: float) -> int:
        if not (math.isfinite(x) and math.isfinite(y)):
            return layout.encode(x * y)
        (m, e), (n, f) = parts(x), parts(y)
        return round_to(layout, mode, _differ(x, y), abs(m * n), e + f)

    return product


def _exact_fma(layout: Format, mode: str) -> Function:
    def fused(x: float, y: float, z: float) -> int:
        if not (math.isfinite(x) and math.isfinite(y)):
            return layout.encode(x * y + z)
        if not math.isfinite(z):
            return layout.encode(z)
        (m, e), (n, f), (p, g) = parts(x), parts(y), parts(z)
        product, exponent = m * n, e + f
        if exponent >= g:
            total, exponent = (product << exponent - g) + p, g
        else:
            total = product + (p << g - exponent)
        is_negative = total < 0
        if not total:
            minus = _differ(x, y), math.copysign(1.0, z) < 0
            is_negative = minus[0] if not product and not p and minus[0] == minus[1] else mode == "rm"
        return round_to(layout, mode, is_negative, abs(total), exponent)

    return fused


def _exact_quotient(layout: Format, mode: str) -> Function:
    def quotient(x: float, y: float) -> int:
        if not (math.isfinite(x) and math.isfinite(y) and y):
            return layout.encode(_quotient(x, y))
        (m, e), (n, f) = parts(x), parts(y)
        whole, rest = divmod(abs(m) << _QUOTIENT_BITS, abs(n))
        return round_to(layout, mode, _differ(x, y), whole << 1 | bool(rest), e - f - _QUOTIENT_BITS - 1)

    return quotient


def _exact_root(layout: Format, mode: str) -> Function:
    def root(x: float) -> int:
        if not (math.isfinite(x) and x > 0):
            return layout.encode(math.sqrt(x) if x >= 0 else math.nan)
        m, e = parts(x)
        shift = _QUOTIENT_BITS + (e & 1)
        scaled = m << shift
        whole = math.isqrt(scaled)
        return round_to(layout, mode, False, whole << 1 | (whole * whole != scaled), (e - shift) // 2 - 1)

    return root


def _differ(x: float, y: float) -> bool:
    return (math.copysign(1.0, x) < 0) != (math.copysign(1.0, y) < 0)


def _quotient(x: float, y: float) -> float:
    if y:
        return x / y
    return math.nan if not x or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def _reciprocal_root(x: float) -> float:
    if not x:
        return math.copysign(math.inf, x)
    return 1.0 / math.sqrt(x) if x > 0 else math.nan


def _on_sign(form: Form, operation: Callable[[int], Function]) -> Plan | None:
    layout = _lane(form)
    return _finished(form, layout, operation(layout.sign), 1) if layout else None


def _order(bits: int, top: int) -> int:
    """A key that orders the bit patterns of numbers as the numbers, -0 before +0."""
    return -(bits ^ top) - 1 if bits & top else bits


def _extremum(form: Form, choose: Callable[[int], Function]) -> Plan | None:
    layout = _lane(form)
    if layout is None or form.arity not in (2, 3) or (layout is F64 and form.arity == 3):
        return None
    better = _with_nan(layout, choose(layout.sign), form.has("NaN"))
    if form.has("xorsign"):
        better = _with_combined_sign(layout, better, form.arity)
    elif form.arity == 3:
        pair = better
        better = lambda a, b, c: pair(pair(a, b), c)  # noqa: E731
    return _finished(form, layout, better, form.arity)


def _with_nan(layout: Format, choose: Function, is_propagated: bool) -> Function:
    infinity, nan, magnitude = layout.infinity, layout.nan, layout.sign - 1

    def better(a: int, b: int) -> int:
        if a & magnitude > infinity:
            return nan if is_propagated or b & magnitude > infinity else b
        if b & magnitude > infinity:
            return nan if is_propagated else a
        bits: int = choose(a, b)
        return bits

    return better


def _with_combined_sign(layout: Format, better: Function, arity: int) -> Function:
    """`.xorsign.abs`: the extremum of the magnitudes under the exclusive or of the signs; a NaN has no sign."""
    top, magnitude, infinity = layout.sign, layout.sign - 1, layout.infinity

    def signed(bits: int, signs: int) -> int:
        return bits if bits > infinity else bits | signs & top

    if arity == 3:
        return lambda a, b, c: signed(better(better(a & magnitude, b & magnitude), c & magnitude), a ^ b ^ c)
    return lambda a, b: signed(better(a & magnitude, b & magnitude), a ^ b)
