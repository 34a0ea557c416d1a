"""The command line. `main` is the program: no traceback leaves it."""

from __future__ import annotations

import os
import sys

import click

from ptxlint import __version__
from ptxlint.baseline import BaselineError
from ptxlint.cli.folder_group import FolderGroup
from ptxlint.config import ConfigError
from ptxlint.fault import request
from ptxlint.registry import RuleLoadError, UnknownSelectorError

INTERRUPTED = 130


class Program(FolderGroup):
    """The commands; a path in the place of a command is checked, so that `ptxlint kernel.ptx` works."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, its name and the arguments left for it."""
        if self.get_command(ctx, args[0]) is None and (args[0] == "-" or os.path.exists(args[0])):
            args = ["check", *args]
        return super().resolve_command(ctx, args)


@click.group(
    cls=Program,
    package="ptxlint.cli.commands",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="ptxlint")
def program() -> None:
    """Find the mistakes in the asynchronous machinery of NVIDIA kernels: barriers, TMA, wgmma, tcgen05, cp.async.

    ptxlint reads the PTX that nvcc, Triton, CuTe DSL or a person wrote. `ptxlint PATH...` is `ptxlint check PATH...`.
    """


def main() -> None:
    """Run the program and exit: 0 clean, 1 findings, 2 usage or unreadable input, 3 internal error."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit status of the program on those arguments."""
    arguments, flags = _split(arguments)
    try:
        status = program.main(arguments, prog_name="ptxlint", standalone_mode=False, obj=flags)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except UnknownSelectorError as error:
        click.echo(f"Error: {error}. `ptxlint rules` lists them all.", err=True)
        return 2
    except (ConfigError, BaselineError) as error:
        click.echo(f"Error: {error}", err=True)
        return 2
    except RuleLoadError as error:
        click.echo(f"Error: a rule cannot be loaded: {error}", err=True)
        return 3
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the outermost boundary: a user never sees a traceback
        return _failed(arguments, error)
    return status if isinstance(status, int) else 0


def _split(arguments: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The arguments before `--`, which are ours, and those after it, which are for nvcc."""
    if "--" not in arguments:
        return arguments, ()
    end = arguments.index("--")
    return arguments[:end], tuple(arguments[end + 1 :])


def _failed(arguments: list[str], error: Exception) -> int:
    command = " ".join(["ptxlint", *arguments])
    click.echo(f"ptxlint itself failed in `{command}`: {type(error).__name__}: {error}", err=True)
    click.echo(request(), err=True)
    if "--debug" in arguments:
        from traceback import format_exception

        click.echo("".join(format_exception(error)), err=True)
    return 3
