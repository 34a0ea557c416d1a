"""The options that describe a launch, shared by every command that looks into kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ptxlint.launch import Dimensions, Launch

Command = TypeVar("Command", bound=Callable[..., Any])


def extents(ctx: click.Context, param: click.Parameter, text: str | None) -> Dimensions | None:
    """`X[,Y[,Z]]` as three extents; those left out are 1."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3 or not all(part.isdecimal() and int(part) for part in parts):
        raise click.BadParameter(f"{text!r} is not one to three positive integers, such as 128 or 32,4", ctx, param)
    x, y, z = ([int(part) for part in parts] + [1, 1])[:3]
    return (x, y, z)


def assignments(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str | int, int]:
    """Each `NAME=INT` as a kernel parameter, by name or by index from 0, and its value in any base."""
    values: dict[str | int, int] = {}
    for text in texts:
        match = re.fullmatch(r"(?:(\d+)|(\w[\w$]*))=\s*([-+]?\w+)", text)
        try:
            number = int(match[3], 0) if match else None
        except ValueError:
            number = None
        if match is None or number is None:
            message = f"{text!r} is not a parameter and an integer, such as n=4096 or 2=0x10"
            raise click.BadParameter(message, ctx, param)
        values[int(match[1]) if match[1] else match[2]] = number
    return values


def _shape(name: str, help_text: str) -> Callable[[Command], Command]:
    return click.option(name, callback=extents, metavar="X[,Y[,Z]]", help=help_text)


_OPTIONS = (
    _shape("--block", "Threads of a block, where the PTX does not say."),
    _shape("--cluster", "Blocks of a cluster, where the PTX does not say."),
    _shape("--grid", "Blocks of the grid."),
    click.option("--dynamic-smem", type=click.IntRange(0), metavar="BYTES", help="Dynamic shared memory of a block."),
    click.option(
        "--param",
        "parameters",
        callback=assignments,
        metavar="NAME=INT",
        multiple=True,
        help="Value of a kernel parameter, by name or index; repeatable.",
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
        settings["parameters"],
    )
