"""Symbolic values with some of their leaves replaced."""

from __future__ import annotations

from collections.abc import Mapping

from ptxlint.analyses.interpretation import folded
from ptxlint.analyses.value import Algebra, Apply, Constant, Leaf, Sum, Value, leaves


def substituted(value: Value, replacements: Mapping[Leaf, Value], algebra: Algebra) -> Value:
    """The value with other values in the place of leaves, in the form that interpretation would give it."""
    if leaves(value).isdisjoint(replacements):
        return value
    match value:
        case Leaf():
            return replacements[value]
        case Sum(constant, terms):
            return algebra.total(constant, ((substituted(t, replacements, algebra), factor) for t, factor in terms))
        case Apply(operation, type_name, arguments):
            return _applied(operation, type_name, [substituted(a, replacements, algebra) for a in arguments], algebra)
    return value


def _applied(operation: str, type_name: str, arguments: list[Value], algebra: Algebra) -> Value:
    match operation, arguments:
        case "eq" | "lt", [first, second]:
            return algebra.compare(operation, type_name, first, second)
        case "not", [only] if type_name == "pred":
            return algebra.negation(only)
        case "select", [condition, yes, no]:
            return algebra.select(condition, yes, no, type_name)
        case "mul", [first, second]:
            return algebra.multiply(first, second, type_name)
        case "lane", [source, lane]:
            return source if isinstance(source, Constant) else algebra.apply("lane", type_name, source, lane)
    return folded(algebra, operation, type_name, *arguments)
