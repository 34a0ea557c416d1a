"""Values of registers: one int where all threads of an agent agree, else a tuple with one int for each thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""An int, or a tuple of ints in thread order."""


def narrow(value: tuple[int, ...], positions: Sequence[int]) -> Value:
    """The values at these positions, as one int where they agree."""
    return uniform([value[i] for i in positions])


def uniform(values: Sequence[Any]) -> Value:
    """One value where all agree, else a tuple."""
    first = values[0]
    return first if values.count(first) == len(values) else tuple(values)


def lift(function: Callable[..., Any], arguments: Sequence[Value], count: int) -> Value:
    """Apply a scalar function to each thread's arguments."""
    columns = [value if value.__class__ is tuple else repeat(value, count) for value in arguments]
    return uniform(list(map(function, *columns)))


def spread(value: Value, count: int) -> Sequence[Any]:
    """The value of each thread."""
    return value if value.__class__ is tuple else (value,) * count


def interleave(values: Sequence[Value], order: Sequence[tuple[int, int, int]]) -> Value:
    """The values of several agents as one: `order` has thread, agent and position in it for each thread."""
    first = values[0]
    if first.__class__ is not tuple and all(value == first for value in values):
        return first
    return uniform([v[i] if (v := values[s]).__class__ is tuple else v for _, s, i in order])


def each(function: Callable[..., Any], value: Value) -> Value:
    """Apply a scalar function to the value of each thread."""
    return uniform([function(item) for item in value]) if value.__class__ is tuple else function(value)


def combine(function: Callable[..., Any], first: Value, second: Value) -> Value:
    """Apply a scalar function of two values in each thread."""
    if first.__class__ is not tuple and second.__class__ is not tuple:
        return function(first, second)
    return lift(function, (first, second), len(first if first.__class__ is tuple else second))
