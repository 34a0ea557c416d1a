"""Comparison and selection: PTX ISA, *Comparison and Selection Instructions*, *Floating Point Comparisons*."""

from __future__ import annotations

import operator

from ptxlint.execution.arithmetic.form import Form, Function, Plan, by_lanes, element, is_float, mask, sign, width
from ptxlint.execution.arithmetic.formats import FORMATS

_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_NEGATED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt", "nan": "num"}
_ORDERED = ("eq", "ne", "lt", "le", "gt", "ge", "num")
_COMBINATIONS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def setp(form: Form) -> Plan | None:
    """*setp*: `p|q` are the comparison and its negation, each combined with `c`; of packed types, the two lanes."""
    combine = form.one_of(*_COMBINATIONS)
    inputs = (form.type, form.type, *(("pred",) if combine else ()))
    lane = element(form.type)
    test = _comparison(form, lane or form.type)
    if test is None:
        return None
    if lane:
        return Plan(_of_lanes(test, width(lane), combine), inputs)
    return Plan(_predicates(test, combine, form.results == 2), inputs)


def set_(form: Form) -> Plan | None:
    """*set*: all ones (1.0 in a floating-point destination) where the comparison holds, else 0."""
    combine = form.one_of(*_COMBINATIONS)
    lane = element(form.type)
    test = _comparison(form, lane or form.type)
    if test is None or (lane and combine):
        return None
    destination = form.types[0]
    target = element(destination) or (f"u{width(lane)}" if lane else destination)
    holds = FORMATS[target].one if target in FORMATS else mask(target)
    function = _chosen(_predicates(test, combine, False), holds, bool(combine))
    if lane:
        function = by_lanes(function, lane, 2)
    return Plan(function, (form.type, form.type, *(("pred",) if combine else ())))


def selp(form: Form) -> Plan:
    """*selp*."""
    return Plan(lambda a, b, p: a if p else b, (form.type, form.type, "pred"))


def slct(form: Form) -> Plan:
    """*slct*: `a` where `c` is not negative; a negative zero counts as zero, a NaN as negative."""
    kind = form.types[0]
    inputs = (kind, kind, form.type)
    if form.type == "s32":
        return Plan(lambda a, b, c: b if c & 0x80000000 else a, inputs)
    is_flushed = form.has("ftz")

    def select(a: int, b: int, c: int) -> int:
        if c & 0x7FFFFFFF > 0x7F800000:
            return b
        is_zero = c & 0x7FFFFFFF == 0 or (is_flushed and c & 0x7F800000 == 0)
        return a if is_zero or c < 0x80000000 else b

    return Plan(select, inputs)


def testp(form: Form) -> Plan | None:
    """*testp*: the class of a floating-point number. Zero counts as normal."""
    layout = FORMATS[form.type]
    magnitude, infinity, least = layout.sign - 1, layout.infinity, 1 << layout.fraction
    tests: dict[str, Function] = {
        "finite": lambda a: 1 if a & magnitude < infinity else 0,
        "infinite": lambda a: 1 if a & magnitude == infinity else 0,
        "number": lambda a: 1 if a & magnitude <= infinity else 0,
        "notanumber": lambda a: 1 if a & magnitude > infinity else 0,
        "normal": lambda a: 1 if least <= a & magnitude < infinity or not a & magnitude else 0,
        "subnormal": lambda a: 1 if 0 < a & magnitude < least else 0,
    }
    kind = form.one_of(*tests)
    return Plan(tests[kind], (form.type,)) if kind else None


def _comparison(form: Form, type_name: str) -> Function | None:
    """The test of two bit patterns, giving 0 or 1."""
    kind = form.modifiers[0]
    if is_float(type_name):
        return _float_comparison(kind, type_name, form.has("ftz"))
    flip = 0 if kind in _UNSIGNED else sign(type_name)
    match _UNSIGNED.get(kind, kind):
        case "eq":
            return lambda a, b: 1 if a == b else 0
        case "ne":
            return lambda a, b: 1 if a != b else 0
        case "lt":
            return (lambda a, b: 1 if a ^ flip < b ^ flip else 0) if flip else lambda a, b: 1 if a < b else 0
        case "le":
            return (lambda a, b: 1 if a ^ flip <= b ^ flip else 0) if flip else lambda a, b: 1 if a <= b else 0
        case "gt":
            return (lambda a, b: 1 if a ^ flip > b ^ flip else 0) if flip else lambda a, b: 1 if a > b else 0
        case "ge":
            return (lambda a, b: 1 if a ^ flip >= b ^ flip else 0) if flip else lambda a, b: 1 if a >= b else 0
    return None


def _float_comparison(kind: str, type_name: str, is_flushed: bool) -> Function | None:
    """The ordered test, or the negation of the opposite one for the unordered kinds."""
    decode = FORMATS[type_name].decode
    if is_flushed:
        decode = _flushed(type_name)
    if kind in _NEGATED:
        ordered = _float_test(_NEGATED[kind])
        return lambda a, b: 0 if ordered(decode(a), decode(b)) else 1
    if kind not in _ORDERED:
        return None
    test = _float_test(kind)
    return lambda a, b: 1 if test(decode(a), decode(b)) else 0


def _float_test(kind: str) -> Function:
    match kind:
        case "ne":
            return lambda x, y: x < y or x > y
        case "num":
            return lambda x, y: x == x and y == y
    test: Function = getattr(operator, kind)
    return test


def _flushed(type_name: str) -> Function:
    layout = FORMATS[type_name]
    decode, exponent, top = layout.decode, layout.infinity, layout.sign
    return lambda a: decode(a if a & exponent else a & top)


def _predicates(test: Function, combine: str | None, is_pair: bool) -> Function:
    match combine, is_pair:
        case None, False:
            return test
        case None, True:
            return lambda a, b: (p := test(a, b), p ^ 1)
        case "and", False:
            return lambda a, b, c: c and test(a, b)
        case "or", False:
            return lambda a, b, c: c or test(a, b)
        case "xor", False:
            return lambda a, b, c: c ^ test(a, b)
    join = _COMBINATIONS[combine or ""]
    return lambda a, b, c: (join(p := test(a, b), c), join(p ^ 1, c))


def _of_lanes(test: Function, bits: int, combine: str | None) -> Function:
    ones = (1 << bits) - 1
    if combine is None:
        return lambda a, b: (test(a & ones, b & ones), test(a >> bits, b >> bits))
    join = _COMBINATIONS[combine]
    return lambda a, b, c: (join(test(a & ones, b & ones), c), join(test(a >> bits, b >> bits), c))


def _chosen(test: Function, holds: int, is_combined: bool) -> Function:
    if is_combined:
        return lambda a, b, c: holds if test(a, b, c) else 0
    return lambda a, b: holds if test(a, b) else 0
