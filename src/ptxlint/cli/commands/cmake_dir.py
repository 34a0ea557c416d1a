"""`ptxlint cmake-dir`: where the CMake module is."""

from __future__ import annotations

from importlib.resources import files

import click


@click.command()
def command() -> None:
    """Print the folder of the CMake module PtxlintCheck, for CMAKE_MODULE_PATH."""
    click.echo(files("ptxlint.cmake"))
