"""`ptxlint extract`: write the PTX in files out."""

from __future__ import annotations

import os
import re

import click

from ptxlint import inputs
from ptxlint.cli.unusable import UnusableError
from ptxlint.unreadable import UnreadableError


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--directory", "-d", default=".", show_default=True, metavar="DIR", help="Where to write.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--list", "is_list", is_flag=True, help="Print what there is, write nothing.")
@click.pass_obj
def command(flags: tuple[str, ...], paths: tuple[str, ...], directory: str, force: bool, is_list: bool) -> None:
    """Write out the PTX in objects, libraries, programs, fatbins, archives and wheels, or what nvcc makes of a .cu."""
    for path in paths:
        try:
            for unit in inputs.units(path, flags=flags):
                if is_list:
                    click.echo(unit.name)
                else:
                    click.echo(_written(unit, directory, is_forced=force))
        except UnreadableError as error:
            raise UnusableError(f"{path} {error}") from error


def _written(unit: inputs.Unit, directory: str, *, is_forced: bool) -> str:
    """The path that the module was written to. Raises UnusableError."""
    name = re.sub(r"[^\w.+-]+", "_", os.path.basename(unit.name.replace(inputs.INSIDE, "_")))
    path = os.path.join(directory, name if name.endswith(".ptx") else f"{name}.ptx")
    try:
        os.makedirs(directory, exist_ok=True)
        with open(path, "w" if is_forced else "x", encoding="utf-8") as file:
            file.write(unit.text)
    except FileExistsError as error:
        raise UnusableError(f"{path} exists; --force replaces it") from error
    except OSError as error:
        raise UnusableError(f"{path}: {error.strerror}") from error
    return path
