"""Integer arithmetic: PTX ISA, *Integer Arithmetic Instructions* and *Extended-Precision Integer Arithmetic*.

Where the ISA leaves a result open the value is that of an H200: all ones for a division by zero, and the least integer
for its own absolute value. The carry flag of a subtraction is there too: set when nothing is borrowed.
"""

from __future__ import annotations

from ptxlint.execution.arithmetic.form import Form, Function, Plan, by_lanes, element, mask, sign, width


def add(form: Form) -> Plan:
    """*add*, *add.cc* and *addc*."""
    ones, bits = mask(form.type), width(form.type)
    match _carry(form):
        case (False, False):
            return _lanes_or_saturated(form, lambda a, b: (a + b) & ones, lambda a, b: a + b)
        case (False, True):
            return _with_carry(form, 2, lambda a, b: ((a + b) & ones, (a + b) >> bits))
        case (True, False):
            return _with_carry(form, 2, lambda a, b, carry: (a + b + carry) & ones)
    return _with_carry(form, 2, lambda a, b, carry: ((a + b + carry) & ones, (a + b + carry) >> bits))


def sub(form: Form) -> Plan:
    """*sub*, *sub.cc* and *subc*: the flag is the carry of `a + ~b + 1`, the inverse of the borrow."""
    ones = mask(form.type)
    match _carry(form):
        case (False, False):
            return _lanes_or_saturated(form, lambda a, b: (a - b) & ones, lambda a, b: a - b)
        case (False, True):
            return _with_carry(form, 2, lambda a, b: ((a - b) & ones, 0 if a < b else 1))
        case (True, False):
            return _with_carry(form, 2, lambda a, b, carry: (a - b + carry - 1) & ones)
    return _with_carry(form, 2, lambda a, b, carry: ((d := a - b + carry - 1) & ones, 0 if d < 0 else 1))


def mul(form: Form) -> Plan:
    """*mul* with `.lo`, `.hi` or `.wide`."""
    return Plan(_product(form), (form.type, form.type))


def mad(form: Form) -> Plan:
    """*mad*, *mad.cc* and *madc*."""
    reads, writes = _carry(form)
    product = _product(form)
    type_name = form.type
    is_wide = form.has("wide")
    bits = width(type_name) * (2 if is_wide else 1)
    ones = (1 << bits) - 1
    addend = f"{type_name[0]}{bits}"
    if form.has("sat"):
        clamp, flip = _clamp(type_name), sign(type_name)
        saturated = _clamped_sum(product, clamp, flip)
        return Plan(saturated, (type_name, type_name, addend))
    match (reads, writes):
        case (False, False):
            return Plan(_multiply_add(form, product, ones), (type_name, type_name, addend))
        case (False, True):
            return _with_carry(form, 3, lambda a, b, c: ((s := product(a, b) + c) & ones, s >> bits))
        case (True, False):
            return _with_carry(form, 3, lambda a, b, c, carry: (product(a, b) + c + carry) & ones)
    return _with_carry(form, 3, lambda a, b, c, carry: ((s := product(a, b) + c + carry) & ones, s >> bits))


def mul24(form: Form) -> Plan:
    """*mul24*: `.lo` gives bits 31..0 of the 48-bit product, `.hi` bits 47..16."""
    return Plan(_product24(form), (form.type, form.type))


def mad24(form: Form) -> Plan:
    """*mad24*."""
    product = _product24(form)
    if form.has("sat"):
        return Plan(_clamped_sum(product, _clamp(form.type), sign(form.type)), (form.type,) * 3)
    return Plan(lambda a, b, c: (product(a, b) + c) & 0xFFFFFFFF, (form.type,) * 3)


def sad(form: Form) -> Plan:
    """*sad*: the absolute difference added to `c`."""
    ones, s = mask(form.type), sign(form.type)
    return Plan(lambda a, b, c: (c + abs((a ^ s) - (b ^ s))) & ones, (form.type,) * 3)


def div(form: Form) -> Plan:
    """*div*, rounding towards zero."""
    ones, s = mask(form.type), sign(form.type)
    if not s:
        return Plan(lambda a, b: a // b if b else ones, (form.type, form.type))

    def quotient(a: int, b: int) -> int:
        if not b:
            return ones
        x, y = (a ^ s) - s, (b ^ s) - s
        return (x // y if (x < 0) == (y < 0) else -(-x // y)) & ones

    return Plan(quotient, (form.type, form.type))


def rem(form: Form) -> Plan:
    """*rem*, with the sign of the dividend."""
    ones, s = mask(form.type), sign(form.type)
    if not s:
        return Plan(lambda a, b: a % b if b else ones, (form.type, form.type))

    def remainder(a: int, b: int) -> int:
        if not b:
            return ones
        x, y = (a ^ s) - s, abs((b ^ s) - s)
        return (x % y if x >= 0 else -(-x % y)) & ones

    return Plan(remainder, (form.type, form.type))


def absolute(form: Form) -> Plan:
    """*abs*."""
    ones, s = mask(form.type), sign(form.type)
    return Plan(lambda a: -a & ones if a & s else a, (form.type,))


def neg(form: Form) -> Plan:
    """*neg*."""
    ones = mask(form.type)
    return Plan(lambda a: -a & ones, (form.type,))


def minimum(form: Form) -> Plan:
    """*min* of two or three values."""
    lane = element(form.type)
    s = sign(lane or form.type)
    least: Function = (lambda a, b: a if a ^ s < b ^ s else b) if s else (lambda a, b: a if a < b else b)
    return _extremum(form, least)


def maximum(form: Form) -> Plan:
    """*max* of two or three values."""
    lane = element(form.type)
    s = sign(lane or form.type)
    greatest: Function = (lambda a, b: a if a ^ s > b ^ s else b) if s else (lambda a, b: a if a > b else b)
    return _extremum(form, greatest)


def dp4a(form: Form) -> Plan:
    """*dp4a*: the dot product of four bytes, added to `c`. The types are those of `a` and `b`."""
    first, second = (0x80 if name.startswith("s") else 0 for name in form.types)
    accumulator = "s32" if first or second else "u32"

    def dot(a: int, b: int, c: int) -> int:
        for shift in (0, 8, 16, 24):
            c += ((a >> shift & 255 ^ first) - first) * ((b >> shift & 255 ^ second) - second)
        return c & 0xFFFFFFFF

    return Plan(dot, (*form.types, accumulator))


def dp2a(form: Form) -> Plan:
    """*dp2a*: the halves of `a` times the lower or upper two bytes of `b`, added to `c`."""
    first = 0x8000 if form.types[0].startswith("s") else 0
    second = 0x80 if form.types[1].startswith("s") else 0
    start = 16 if form.has("hi") else 0

    def dot(a: int, b: int, c: int) -> int:
        for half, byte in ((0, start), (16, start + 8)):
            c += ((a >> half & 65535 ^ first) - first) * ((b >> byte & 255 ^ second) - second)
        return c & 0xFFFFFFFF

    return Plan(dot, (*form.types, "s32" if first or second else "u32"))


def _carry(form: Form) -> tuple[bool, bool]:
    """Whether the instruction reads the carry flag (*addc*, *subc*, *madc*) and whether it writes it."""
    return form.opcode.endswith("c"), form.has("cc")


def _with_carry(form: Form, arity: int, function: Function) -> Plan:
    reads, writes = _carry(form)
    return Plan(function, (form.type,) * arity, reads_carry=reads, writes_carry=writes)


def _lanes_or_saturated(form: Form, function: Function, exact: Function) -> Plan:
    lane = element(form.type)
    inputs = (form.type, form.type)
    if form.has("sat"):
        saturated = _saturated(exact, lane or form.type)
        return Plan(by_lanes(saturated, lane, 2) if lane else saturated, inputs)
    if not lane:
        return Plan(function, inputs)
    ones = mask(lane)
    return Plan(by_lanes(lambda a, b: exact(a, b) & ones, lane, 2), inputs)


def _saturated(exact: Function, type_name: str) -> Function:
    s, clamp = sign(type_name), _clamp(type_name)
    return lambda a, b: clamp(exact((a ^ s) - s, (b ^ s) - s))


def _clamp(type_name: str) -> Function:
    ones, s = mask(type_name), sign(type_name)
    low, high = (-s, s - 1) if s else (0, ones)
    return lambda value: (low if value < low else high if value > high else value) & ones


def _clamped_sum(product: Function, clamp: Function, s: int) -> Function:
    return lambda a, b, c: clamp((product(a, b) ^ s) - s + (c ^ s) - s)


def _multiply_add(form: Form, product: Function, ones: int) -> Function:
    s = sign(form.type)
    if form.has("hi"):
        return lambda a, b, c: (product(a, b) + c) & ones
    if s and form.has("wide"):
        return lambda a, b, c: (((a ^ s) - s) * ((b ^ s) - s) + c) & ones
    return lambda a, b, c: (a * b + c) & ones


def _product(form: Form) -> Function:
    bits, s = width(form.type), sign(form.type)
    narrow, wide = mask(form.type), (1 << 2 * bits) - 1
    if form.has("hi"):
        if s:
            return lambda a, b: ((a ^ s) - s) * ((b ^ s) - s) >> bits & narrow
        return lambda a, b: a * b >> bits
    if form.has("wide"):
        if s:
            return lambda a, b: ((a ^ s) - s) * ((b ^ s) - s) & wide
        return lambda a, b: a * b
    return lambda a, b: a * b & narrow


def _product24(form: Form) -> Function:
    s = 0x800000 if sign(form.type) else 0
    shift = 16 if form.has("hi") else 0
    return lambda a, b: (((a & 0xFFFFFF) ^ s) - s) * (((b & 0xFFFFFF) ^ s) - s) >> shift & 0xFFFFFFFF


def _extremum(form: Form, choose: Function) -> Plan:
    lane = element(form.type)
    s = sign(lane or form.type)
    function = choose
    if form.arity == 3:
        function = lambda a, b, c: choose(choose(a, b), c)  # noqa: E731
    if form.has("relu"):
        function = _not_negative(function, s, form.arity)
    if lane:
        function = by_lanes(function, lane, form.arity)
    return Plan(function, (form.type,) * form.arity)


def _not_negative(function: Function, s: int, arity: int) -> Function:
    if arity == 3:
        return lambda a, b, c: 0 if (value := function(a, b, c)) & s else value
    return lambda a, b: 0 if (value := function(a, b)) & s else value
