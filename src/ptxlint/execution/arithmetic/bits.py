"""Logic, shifts and bit fields: PTX ISA, *Logic and Shift Instructions*, *Integer Arithmetic Instructions*, *prmt*."""

from __future__ import annotations

from ptxlint.execution.arithmetic.form import Form, Function, Plan, mask, sign, width

_PERMUTATIONS = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}
"""Source bytes of `prmt`, lowest result byte first, by mode and by the two low bits of the selector."""


def both(form: Form) -> Plan:
    """*and*."""
    return Plan(lambda a, b: a & b, (form.type, form.type))


def either(form: Form) -> Plan:
    """*or*."""
    return Plan(lambda a, b: a | b, (form.type, form.type))


def differing(form: Form) -> Plan:
    """*xor*."""
    return Plan(lambda a, b: a ^ b, (form.type, form.type))


def inverted(form: Form) -> Plan:
    """*not*."""
    ones = mask(form.type)
    return Plan(lambda a: a ^ ones, (form.type,))


def cnot(form: Form) -> Plan:
    """*cnot*: 1 when the operand is 0, else 0."""
    return Plan(lambda a: 0 if a else 1, (form.type,))


def lop3(form: Form) -> Plan:
    """*lop3*: the table's index is `a` in bit 2, `b` in bit 1, `c` in bit 0; `d|p` combines `d != 0` with `q`."""
    function = _three_input(form.table, mask(form.type))
    inputs = (form.type,) * 3
    if form.results == 1:
        return Plan(function, inputs)
    if form.has("and"):
        return Plan(lambda a, b, c, q: (d := function(a, b, c), q if d else 0), (*inputs, "pred"))
    return Plan(lambda a, b, c, q: (d := function(a, b, c), 1 if d else q), (*inputs, "pred"))


def shl(form: Form) -> Plan:
    """*shl*: a shift by the width or more gives 0."""
    ones, bits = mask(form.type), width(form.type)
    return Plan(lambda a, b: a << b & ones if b < bits else 0, (form.type, "u32"))


def shr(form: Form) -> Plan:
    """*shr*: arithmetic when the type is signed; a shift by the width or more leaves only the fill."""
    ones, s = mask(form.type), sign(form.type)
    if s:
        return Plan(lambda a, b: (a ^ s) - s >> b & ones, (form.type, "u32"))
    return Plan(lambda a, b: a >> b, (form.type, "u32"))


def shf(form: Form) -> Plan:
    """*shf*: a funnel shift of `b:a`, the amount wrapped to 0..31 or clamped to 0..32."""
    inputs = ("b32", "b32", "u32")
    match form.has("l"), form.has("wrap"):
        case True, True:
            return Plan(lambda a, b, c: (b << 32 | a) << (c & 31) >> 32 & 0xFFFFFFFF, inputs)
        case True, False:
            return Plan(lambda a, b, c: (b << 32 | a) << (c if c < 32 else 32) >> 32 & 0xFFFFFFFF, inputs)
        case False, True:
            return Plan(lambda a, b, c: (b << 32 | a) >> (c & 31) & 0xFFFFFFFF, inputs)
    return Plan(lambda a, b, c: (b << 32 | a) >> (c if c < 32 else 32) & 0xFFFFFFFF, inputs)


def prmt(form: Form) -> Plan:
    """*prmt*: picks four of the eight bytes of `b:a`; bit 3 of a selector nibble replicates the byte's sign."""
    inputs = ("b32", "b32", "b32")
    mode = form.one_of(*_PERMUTATIONS)
    return Plan(_permute_by_nibbles if mode is None else _permute_by_mode(mode), inputs)


def popc(form: Form) -> Plan:
    """*popc*."""
    return Plan(int.bit_count, (form.type,))


def clz(form: Form) -> Plan:
    """*clz*: the width when the operand is 0."""
    bits = width(form.type)
    return Plan(lambda a: bits - a.bit_length(), (form.type,))


def bfind(form: Form) -> Plan:
    """*bfind*: the highest bit that differs from the sign, or the shift that brings it on top; all ones if none."""
    ones, s, bits = mask(form.type), sign(form.type), width(form.type)
    if form.has("shiftamt"):
        return Plan(lambda a: bits - n if (n := (a ^ ones if a & s else a).bit_length()) else 0xFFFFFFFF, (form.type,))
    return Plan(lambda a: (a ^ ones if a & s else a).bit_length() - 1 & 0xFFFFFFFF, (form.type,))


def fns(form: Form) -> Plan:
    """*fns*: the n-th set bit from `base`, upwards or downwards by the sign of the offset; all ones if none."""

    def find(bits: int, base: int, offset: int) -> int:
        step = 1 if offset < 0x80000000 else -1
        left = max(abs((offset ^ 0x80000000) - 0x80000000) - 1, 0)
        places = range(base, base + 1) if offset == 0 else range(base, 32 if step > 0 else -1, step)
        if base > 31:
            return 0xFFFFFFFF
        for place in places:
            if bits >> place & 1:
                if left == 0:
                    return place
                left -= 1
        return 0xFFFFFFFF

    return Plan(find, (form.type, "b32", "s32"))


def brev(form: Form) -> Plan:
    """*brev*."""
    bits = width(form.type)
    return Plan(lambda a: int(f"{a:0{bits}b}"[::-1], 2), (form.type,))


def bfe(form: Form) -> Plan:
    """*bfe*: position and length are bytes; a signed field is filled with its top bit, clamped to the operand's."""
    ones, s, top = mask(form.type), sign(form.type), width(form.type) - 1
    inputs = (form.type, "u32", "u32")
    if not s:
        return Plan(lambda a, b, c: a >> (b & 255) & (1 << (c & 255)) - 1, inputs)

    def signed_field(a: int, b: int, c: int) -> int:
        position, length = b & 255, c & 255
        if not length:
            return 0
        field = a >> position & (1 << length) - 1
        if a >> min(position + length - 1, top) & 1:
            field |= -1 << min(length, max(top + 1 - position, 0))
        return field & ones

    return Plan(signed_field, inputs)


def bfi(form: Form) -> Plan:
    """*bfi*: `a` inserted into `b`; position and length are bytes, bits beyond the top are lost."""
    ones = mask(form.type)

    def insert(a: int, b: int, c: int, d: int) -> int:
        field = (1 << (d & 255)) - 1
        position = c & 255
        return (b & ~(field << position) | (a & field) << position) & ones

    return Plan(insert, (form.type, form.type, "u32", "u32"))


def bmsk(form: Form) -> Plan:
    """*bmsk*: ones from bit `a` for `b` bits; beyond 31 both wrap, or the mask is cut off at the top."""
    if form.has("wrap"):
        return Plan(lambda a, b: ((1 << (b & 31)) - 1) << (a & 31) & 0xFFFFFFFF, ("b32", "b32"))
    return Plan(
        lambda a, b: ((1 << (b if b < 32 else 32)) - 1) << a & 0xFFFFFFFF if a < 32 else 0,
        ("b32", "b32"),
    )


def szext(form: Form) -> Plan:
    """*szext*: sign- or zero-extension from a width of `b` bits; a width beyond 31 wraps, or keeps the operand."""
    is_signed, is_wrapped = form.type == "s32", form.has("wrap")

    def extend(a: int, b: int) -> int:
        if b >= 32 and not is_wrapped:
            return a
        length = b & 31
        field = a & (1 << length) - 1
        if is_signed and length and field >> length - 1:
            field |= -1 << length
        return field & 0xFFFFFFFF

    return Plan(extend, (form.type, "u32"))


def _three_input(table: int, ones: int) -> Function:
    pairs = [_two_input(_half(table, c), ones) for c in (0, 1)]
    when_clear, when_set = pairs
    if _half(table, 0) == _half(table, 1):
        return lambda a, b, _: when_clear(a, b)
    return lambda a, b, c: when_set(a, b) & c | when_clear(a, b) & (c ^ ones)


def _half(table: int, c: int) -> int:
    """The two-input table (index `a` in bit 1, `b` in bit 0) that remains of `table` for a fixed `c`."""
    return sum((table >> (2 * index + c) & 1) << index for index in range(4))


def _two_input(table: int, ones: int) -> Function:
    functions: tuple[Function, ...] = (
        lambda a, b: 0,
        lambda a, b: (a | b) ^ ones,
        lambda a, b: (a ^ ones) & b,
        lambda a, b: a ^ ones,
        lambda a, b: a & (b ^ ones),
        lambda a, b: b ^ ones,
        lambda a, b: a ^ b,
        lambda a, b: a & b ^ ones,
        lambda a, b: a & b,
        lambda a, b: a ^ b ^ ones,
        lambda a, b: b,
        lambda a, b: a ^ ones | b,
        lambda a, b: a,
        lambda a, b: a | b ^ ones,
        lambda a, b: a | b,
        lambda a, b: ones,
    )
    return functions[table]


def _permute_by_nibbles(a: int, b: int, c: int) -> int:
    source = b << 32 | a
    result = 0
    for place in (0, 8, 16, 24):
        nibble = c >> (place >> 1)
        byte = source >> ((nibble & 7) << 3) & 255
        if nibble & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << place
    return result


def _permute_by_mode(mode: str) -> Function:
    shifts = [[8 * byte for byte in row] for row in _PERMUTATIONS[mode]]

    def permute(a: int, b: int, c: int) -> int:
        source = b << 32 | a
        first, second, third, fourth = shifts[c & 3]
        return (
            source >> first & 255
            | (source >> second & 255) << 8
            | (source >> third & 255) << 16
            | (source >> fourth & 255) << 24
        )

    return permute
