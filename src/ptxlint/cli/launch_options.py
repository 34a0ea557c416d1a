"""The options that describe a launch, shared by every command that looks into kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ptxlint.launch import Dimensions, Launch

Command = TypeVar("Command", bound=Callable[..., Any])


class Extents(click.ParamType):
    """`X[,Y[,Z]]`: one to three positive integers; those left out are 1."""

    name = "X[,Y[,Z]]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Dimensions:
        """The three extents."""
        if isinstance(value, tuple):
            return (value[0], value[1], value[2])
        parts = [part.strip() for part in str(value).split(",")]
        if len(parts) > 3 or not all(part.isdecimal() and int(part) for part in parts):
            self.fail(f"{value!r} is not one to three positive integers, such as 128 or 32,4", param, ctx)
        x, y, z = ([int(part) for part in parts] + [1, 1])[:3]
        return (x, y, z)


class Assignment(click.ParamType):
    """`NAME=INT`: a kernel parameter, by name or by index from 0, and its value in any base."""

    name = "NAME=INT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str | int, int]:
        """The parameter and the value."""
        if isinstance(value, tuple):
            return (value[0], value[1])
        name, equals, number = str(value).partition("=")
        try:
            amount = int(number, 0)
        except ValueError:
            amount, equals = 0, ""
        if not name or not equals:
            self.fail(f"{value!r} is not a parameter and an integer, such as n=4096 or 2=0x10", param, ctx)
        return (int(name) if name.isdecimal() else name, amount)


_OPTIONS = (
    click.option("--block", type=Extents(), help="Threads of a block, where the PTX does not say."),
    click.option("--cluster", type=Extents(), help="Blocks of a cluster, where the PTX does not say."),
    click.option("--grid", type=Extents(), help="Blocks of the grid."),
    click.option("--dynamic-smem", type=click.IntRange(0), metavar="BYTES", help="Dynamic shared memory of a block."),
    click.option(
        "--param", "parameters", type=Assignment(), multiple=True, help="Value of a kernel parameter; repeatable."
    ),
)


def launch_options(command: Command) -> Command:
    """Add the options; the command receives them as `block`, `cluster`, `grid`, `dynamic_smem` and `parameters`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def launch_of(settings: dict[str, Any]) -> Launch:
    """The launch that those options describe."""
    return Launch(
        settings["block"],
        settings["cluster"],
        settings["grid"],
        settings["dynamic_smem"],
        dict(settings["parameters"]),
    )
