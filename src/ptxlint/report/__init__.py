"""The output formats: one file each, named like the format, with a `write` function.

A format is found by its file, and imported only when it is asked for.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import TextIO, cast

from ptxlint.classes import dataclass
from ptxlint.result import Report


@dataclass(frozen=True, slots=True)
class Output:
    """Where a report goes: the stream, whether it shows colours, and the columns it has (None: no end)."""

    stream: TextIO
    is_coloured: bool = False
    width: int | None = None


def formats() -> tuple[str, ...]:
    """The names of the formats."""
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)))


def writer(name: str) -> Callable[[Report, Output], None]:
    """The `write` function of the format."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    return cast("Callable[[Report, Output], None]", module.write)
