"""Arithmetic, comparison, logic, shifts and conversion: everything that computes registers from registers.

Opcodes whose sections differ by type (`add` is an integer, floating point, half and mixed precision instruction) have
one row, titled after the oldest section: ptxlint asks nothing more of them. The condition code register that `.cc`,
`addc` and their kind read and write is no operand and has no role.
"""

from __future__ import annotations

from ptxlint.isa.row import Row

_INTEGER = "Integer Arithmetic Instructions: "
_EXTENDED = "Extended-Precision Arithmetic Instructions: "
_FLOATING = "Floating Point Instructions: "
_COMPARE = "Comparison and Selection Instructions: "
_LOGIC = "Logic and Shift Instructions: "
_MOVEMENT = "Data Movement and Conversion Instructions: "

_ONE = "=destination a"
_TWO = "=destination a b"
_THREE = "=destination a b c"

_INTEGERS: tuple[Row, ...] = (
    Row("add", _TWO, _INTEGER + "add"),
    Row("sub", _TWO, _INTEGER + "sub"),
    Row("mul", _TWO, _INTEGER + "mul"),
    Row("mad", _THREE, _INTEGER + "mad"),
    Row("clmad", _THREE, _INTEGER + "clmad", (9, 3), 80),
    Row("mul24", _TWO, _INTEGER + "mul24"),
    Row("mad24", _THREE, _INTEGER + "mad24"),
    Row("sad", _THREE, _INTEGER + "sad"),
    Row("div", _TWO, _INTEGER + "div"),
    Row("rem", _TWO, _INTEGER + "rem"),
    Row("abs", _ONE, _INTEGER + "abs"),
    Row("neg", _ONE, _INTEGER + "neg"),
    Row("min", "=destination a b c?", _INTEGER + "min"),
    Row("max", "=destination a b c?", _INTEGER + "max"),
    Row("popc", _ONE, _INTEGER + "popc", (2, 0), 20),
    Row("clz", _ONE, _INTEGER + "clz", (2, 0), 20),
    Row("bfind", _ONE, _INTEGER + "bfind", (2, 0), 20),
    Row("fns", "=destination mask base offset", _INTEGER + "fns", (6, 0), 30),
    Row("brev", _ONE, _INTEGER + "brev", (2, 0), 20),
    Row("bfe", _THREE, _INTEGER + "bfe", (2, 0), 20),
    Row("bfi", "=destination a b c d", _INTEGER + "bfi", (2, 0), 20),
    Row("szext", _TWO, _INTEGER + "szext", (7, 6), 70),
    Row("bmsk", _TWO, _INTEGER + "bmsk", (7, 6), 70),
    Row("dp4a", _THREE, _INTEGER + "dp4a", (5, 0), 61),
    Row("dp2a", _THREE, _INTEGER + "dp2a", (5, 0), 61),
    Row("addc", _TWO, _EXTENDED + "addc", (1, 2)),
    Row("subc", _TWO, _EXTENDED + "subc", (1, 2)),
    Row("madc", _THREE, _EXTENDED + "madc", (3, 0), 20),
)

_FLOATS: tuple[Row, ...] = (
    Row("testp", _ONE, _FLOATING + "testp", (2, 0), 20),
    Row("copysign", _TWO, _FLOATING + "copysign", (2, 0), 20),
    Row("fma", _THREE, _FLOATING + "fma", (1, 4), 13),
    Row("rcp", _ONE, _FLOATING + "rcp"),
    Row("sqrt", _ONE, _FLOATING + "sqrt"),
    Row("rsqrt", _ONE, _FLOATING + "rsqrt"),
    Row("sin", _ONE, _FLOATING + "sin"),
    Row("cos", _ONE, _FLOATING + "cos"),
    Row("lg2", _ONE, _FLOATING + "lg2"),
    Row("ex2", _ONE, _FLOATING + "ex2"),
    Row("tanh", _ONE, _FLOATING + "tanh", (7, 0), 75),
)

_COMPARISONS: tuple[Row, ...] = (
    Row("set", "=destination a b c?", _COMPARE + "set"),
    Row("setp", "=destination a b c?", _COMPARE + "setp"),
    Row("selp", _THREE, _COMPARE + "selp"),
    Row("slct", _THREE, _COMPARE + "slct"),
)

_LOGICAL: tuple[Row, ...] = (
    Row("and", _TWO, _LOGIC + "and"),
    Row("or", _TWO, _LOGIC + "or"),
    Row("xor", _TWO, _LOGIC + "xor"),
    Row("not", _ONE, _LOGIC + "not"),
    Row("cnot", _ONE, _LOGIC + "cnot"),
    Row("lop3", "=destination a b c table predicate?", _LOGIC + "lop3", (4, 3), 50),
    Row("shf", _THREE, _LOGIC + "shf", (3, 1), 32),
    Row("shl", _TWO, _LOGIC + "shl"),
    Row("shr", _TWO, _LOGIC + "shr"),
)

_CONVERSIONS: tuple[Row, ...] = (
    Row("cvt", "=destination a b? c?", _MOVEMENT + "cvt"),
    Row("cvt.pack", "=destination a b c?", _MOVEMENT + "cvt.pack", (6, 5), 72),
    Row("spcompress", "=metadata =destination a descriptor", _MOVEMENT + "spcompress", (9, 4), 107),
    Row("spdecompress", "=destination a b c?", _MOVEMENT + "spdecompress", (9, 4), 107),
    Row("prmt", _THREE, _MOVEMENT + "prmt", (2, 0), 20),
)

ROWS: tuple[Row, ...] = (*_INTEGERS, *_FLOATS, *_COMPARISONS, *_LOGICAL, *_CONVERSIONS)
