"""Floating-point formats: bit patterns to Python floats and back, with the rounding modes of PTX.

Source: PTX ISA, *Rounding Modifiers*, *Alternate Floating-Point Data Formats*.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from ptxlint.classes import dataclass

_F16, _U16 = struct.Struct("<e"), struct.Struct("<H")
_F32, _U32 = struct.Struct("<f"), struct.Struct("<I")
_F64, _U64 = struct.Struct("<d"), struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: a sign bit, a biased exponent, a fraction. `nan` is the canonical NaN, `one` is 1.0."""

    bits: int
    fraction: int
    nan: int
    one: int
    decode: Callable[[int], float]
    encode: Callable[[float], int]

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        """The bit pattern of positive infinity."""
        return self.sign - (1 << self.fraction)

    @property
    def least_exponent(self) -> int:
        """The exponent of the least normal number."""
        return 1 - (self.one >> self.fraction)


def round_to(form: Format, mode: str, is_negative: bool, mantissa: int, exponent: int) -> int:
    """The bits of `mantissa * 2**exponent` in the format. The mantissa is not negative and exact, or holds a sticky
    bit below the precision of the format. Modes: rn (to even), rna (away from zero), rz, rm, rp.
    """
    sign = form.sign if is_negative else 0
    if not mantissa:
        return sign
    top = max(exponent + mantissa.bit_length() - 1, form.least_exponent)
    shift = top - form.fraction - exponent
    if shift <= 0:
        kept = mantissa << -shift
    else:
        kept = mantissa >> shift
        kept += _rounds_up(mode, is_negative, kept, mantissa - (kept << shift), 1 << (shift - 1))
    magnitude = (top - form.least_exponent << form.fraction) + kept
    if magnitude >= form.infinity:
        outwards = {"rz": False, "rm": is_negative, "rp": not is_negative}.get(mode, True)
        return sign | (form.infinity if outwards else form.infinity - 1)
    return sign | magnitude


def parts(value: float) -> tuple[int, int]:
    """A finite float as a signed integer below 2**53 times a power of two."""
    fraction, exponent = math.frexp(value)
    return int(fraction * 9007199254740992.0), exponent - 53


def from_float(form: Format, mode: str, value: float) -> int:
    """The bits of a Python float in the format, rounded once; any NaN becomes the canonical one."""
    if value != value:
        return form.nan
    is_negative = math.copysign(1.0, value) < 0
    if math.isinf(value):
        return form.infinity | (form.sign if is_negative else 0)
    mantissa, exponent = parts(value)
    return round_to(form, mode, is_negative, abs(mantissa), exponent)


def _rounds_up(mode: str, is_negative: bool, kept: int, rest: int, half: int) -> bool:
    if mode == "rn":
        return rest > half or (rest == half and bool(kept & 1))
    if mode == "rna":
        return rest >= half
    return bool(rest) and ((mode == "rp" and not is_negative) or (mode == "rm" and is_negative))


def _decode_f16(bits: int) -> float:
    value: float = _F16.unpack(_U16.pack(bits))[0]
    return value


def _decode_bf16(bits: int) -> float:
    value: float = _F32.unpack(_U32.pack(bits << 16))[0]
    return value


def _decode_f32(bits: int) -> float:
    value: float = _F32.unpack(_U32.pack(bits))[0]
    return value


def _decode_f64(bits: int) -> float:
    value: float = _F64.unpack(_U64.pack(bits))[0]
    return value


def _encode_f16(value: float) -> int:
    if value != value:
        return 0x7FFF
    try:
        bits: int = _U16.unpack(_F16.pack(value))[0]
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00
    return bits


def _encode_bf16(value: float) -> int:
    return from_float(BF16, "rn", value)


def _encode_f32(value: float) -> int:
    if value != value:
        return 0x7FFFFFFF
    try:
        bits: int = _U32.unpack(_F32.pack(value))[0]
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000
    return bits


def _encode_f64(value: float) -> int:
    if value != value:
        return 0x7FF8000000000000
    bits: int = _U64.unpack(_F64.pack(value))[0]
    return bits


F16 = Format(16, 10, 0x7FFF, 0x3C00, _decode_f16, _encode_f16)
BF16 = Format(16, 7, 0x7FFF, 0x3F80, _decode_bf16, _encode_bf16)
F32 = Format(32, 23, 0x7FFFFFFF, 0x3F800000, _decode_f32, _encode_f32)
F64 = Format(64, 52, 0x7FF8000000000000, 0x3FF0000000000000, _decode_f64, _encode_f64)

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
"""Formats by PTX type."""
