"""What a fixture computes: its buffers filled, and the results that a right run must give."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlint.validate.fixture import Fixture, Parameter, Variant

Array = npt.NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {"u32": np.dtype("<u4"), "f16": np.dtype("<f2"), "f32": np.dtype("<f4")}
POISON = 0xA5A5A5A5
"""What an output and shared memory hold before a launch, as 32-bit words."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A parameter in global memory: what it holds before a launch and, for an output, after it."""

    parameter: Parameter
    initial: Array
    expected: Array | None


@dataclass(frozen=True, slots=True)
class Problem:
    """Scalars and buffers of one run, by the names of their parameters."""

    scalars: dict[str, int]
    buffers: dict[str, Buffer]

    def shape(self, parameter: Parameter) -> tuple[int, ...]:
        """The extents of a tensor map, innermost first."""
        assert parameter.tensormap is not None
        shape: tuple[int, ...] = evaluate(parameter.tensormap.shape, self.scalars)
        return shape


def problem_of(fixture: Fixture, variant: Variant, seed: int) -> Problem:
    """Random inputs from the seed, poisoned outputs, and what the variant's outputs must become."""
    names: dict[str, Any] = {
        parameter.name: parameter.value for parameter in fixture.parameters if is_scalar(parameter)
    }
    scalars = dict(names)
    names["random"] = np.random.default_rng(seed)
    buffers = dict(buffers_of(fixture, dict(variant.expect), names))
    return Problem(scalars, buffers)


def is_scalar(parameter: Parameter) -> bool:
    """Whether the kernel gets a number, not an address or a tensor map."""
    return parameter.role == "scalar" and not parameter.of


def buffers_of(fixture: Fixture, replaced: dict[str, str], names: dict[str, Any]) -> Iterator[tuple[str, Buffer]]:
    """Inputs first, since results are computed from them; adds the inputs to the names."""
    buffers = [parameter for parameter in fixture.parameters if not is_scalar(parameter) and not parameter.of]
    for parameter in sorted(buffers, key=lambda parameter: parameter.role != "in"):
        initial = filled(parameter, names)
        expected = None
        if parameter.role == "in":
            names[parameter.name] = initial
        if parameter.role == "out":
            result = evaluate(replaced.get(parameter.name, parameter.expect), names)
            expected = np.ascontiguousarray(result, dtype=initial.dtype).reshape(-1)
        yield parameter.name, Buffer(parameter, initial, expected)


def filled(parameter: Parameter, names: dict[str, Any]) -> Array:
    """The initial contents of a buffer."""
    dtype = DTYPES[parameter.type]
    count = int(evaluate(parameter.count, names))
    if parameter.fill:
        return np.asarray(evaluate(parameter.fill, names)).astype(dtype)
    if parameter.role == "in":
        return np.asarray(names["random"].integers(0, 2**32, count, dtype=np.uint32)).view(dtype)
    words = np.full(count * dtype.itemsize // 4, POISON, np.uint32)
    return words.view(dtype)


def evaluate(expression: str, names: dict[str, Any]) -> Any:
    """The value of a numpy expression of a fixture's header."""
    return eval(expression, {"np": np, "functools": functools, **names})
