"""Literals and constant expressions, folded as ptxas folds them: 64-bit integers, division towards zero.

Source: PTX ISA, *Constants*, *Constant Expressions*.
"""

from __future__ import annotations

import struct

from ptxlint.parse.nodes import Bar, Binary, Cast, Conditional, Expression, Name, Number, Unary, Word
from ptxlint.source import PtxSyntaxError

WARP_SIZE = 32
DEEPEST = 200
"""How many levels of nested operands and expressions are read."""

_MASK = (1 << 64) - 1
_SIGN = 1 << 63


class NotConstantError(Exception):
    """An expression that does not fold: it names something, or its arithmetic has no value."""


def number(text: str) -> int | float:
    """The value of a literal; `0f` and `0d` forms are the IEEE value of their bits."""
    head = text[:2].lower()
    if head == "0f":
        return float(struct.unpack(">f", bytes.fromhex(text[2:]))[0])
    if head == "0d":
        return float(struct.unpack(">d", bytes.fromhex(text[2:]))[0])
    if head == "0x":
        return int(text.rstrip("U"), 16)
    if head == "0b":
        return int(text.rstrip("U"), 2)
    if "." in text or "e" in text or "E" in text:
        return float(text)
    digits = text.rstrip("U")
    if digits[0] == "0" and digits.isdigit() and not set("89") & set(digits):
        return int(digits, 8)
    return int(digits)


def integer(word: str) -> int:
    """The value of a word that must be a whole number. Raises PtxSyntaxError."""
    assert isinstance(word, Word)
    value = number(word)
    if not isinstance(value, int):
        raise PtxSyntaxError(word.span, f"'{word}' is not a whole number")
    return value


def fold(expression: Expression, depth: int = 0) -> int | float:
    """The value of a constant expression. Raises NotConstantError, also when it is nested too deeply."""
    if depth > DEEPEST:
        raise NotConstantError
    match expression:
        case Number(word):
            return number(word)
        case Name(word) if word == "WARP_SZ":
            return WARP_SIZE
        case Unary(sign, operand):
            return _unary(sign, fold(operand, depth + 1))
        case Binary(left, sign, right):
            return _binary(sign, fold(left, depth + 1), fold(right, depth + 1))
        case Bar(left, right):
            return _binary("|", fold(left, depth + 1), fold(right, depth + 1))
        case Conditional(condition, yes, no):
            return fold(yes, depth + 1) if fold(condition, depth + 1) else fold(no, depth + 1)
        case Cast(_, operand):
            return fold(operand, depth + 1)
        case _:
            raise NotConstantError


def _unary(sign: str, value: int | float) -> int | float:
    match sign:
        case "-":
            return -value
        case "+":
            return value
        case "!":
            return int(not value)
        case _:
            return ~_integer(value)


def _binary(sign: str, left: int | float, right: int | float) -> int | float:
    match sign:
        case "+":
            return _wrap(left + right)
        case "-":
            return _wrap(left - right)
        case "*":
            return _wrap(left * right)
        case "/" | "%":
            return _divide(sign, left, right)
        case "==" | "!=" | "<" | "<=" | ">" | ">=":
            return int(_compare(sign, left, right))
        case "&&":
            return int(bool(left) and bool(right))
        case "||":
            return int(bool(left) or bool(right))
        case _:
            return _bits(sign, _integer(left), _integer(right))


def _divide(sign: str, left: int | float, right: int | float) -> int | float:
    if right == 0:
        raise NotConstantError
    if isinstance(left, float) or isinstance(right, float):
        if sign == "%":
            raise NotConstantError
        return left / right
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if sign == "/" else left - quotient * right


def _compare(sign: str, left: int | float, right: int | float) -> bool:
    match sign:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


def _bits(sign: str, left: int, right: int) -> int:
    match sign:
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right
        case "<<":
            return int(_wrap(left << (right & 63)))
        case _:
            return left >> (right & 63)


def _integer(value: int | float) -> int:
    if isinstance(value, float):
        raise NotConstantError
    return value


def _wrap(value: int | float) -> int | float:
    if isinstance(value, float) or -_SIGN <= value <= _MASK:
        return value
    return value & _MASK
