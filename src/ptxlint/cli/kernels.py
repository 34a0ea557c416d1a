"""The kernels of one file, as the views of `ptxlint show` receive them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ptxlint import inputs
from ptxlint.cli.launch_options import launch_of, launch_options
from ptxlint.cli.unusable import UnusableError
from ptxlint.ir import Module
from ptxlint.launch import stated
from ptxlint.source import PtxSyntaxError
from ptxlint.unreadable import UnreadableError

if TYPE_CHECKING:
    from ptxlint.facts import Facts

Command = TypeVar("Command", bound=Callable[..., Any])


def kernel_arguments(command: Command) -> Command:
    """Add FILE, `--kernel` and the launch options; pass them all to `kernels`."""
    chosen = click.option("--kernel", default="*", metavar="GLOB", help="Only functions whose name matches.")
    return click.argument("file")(chosen(launch_options(command)))


def kernels(file: str, kernel: str, **launch: Any) -> Iterator[Facts]:
    """The facts of every function with a body whose name matches. Raises click.ClickException."""
    from ptxlint.facts import Facts

    module = module_in(file)
    found = [function for function in module.functions if function.body is not None]
    matching = [function for function in found if fnmatchcase(function.name, kernel)]
    if not matching:
        names = ", ".join(function.name for function in found) or "none"
        raise UnusableError(f"{file} has no function that matches {kernel!r}; it has {names}")
    for function in matching:
        yield Facts(module, function, stated(function, launch_of(launch)))


def module_in(file: str) -> Module:
    """The module in the file. Raises click.ClickException when it cannot be read."""
    from ptxlint.parse import parse

    try:
        return parse(inputs.read(file))
    except UnreadableError as error:
        raise UnusableError(f"{file} {error.problem.message}") from error
    except PtxSyntaxError as error:
        raise UnusableError(f"{file}:{error.span}: {error.message}") from error
