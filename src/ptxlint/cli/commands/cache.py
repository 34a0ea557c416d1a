"""`ptxlint cache`: the results kept from earlier runs."""

from __future__ import annotations

import os

import click

from ptxlint import cache


@click.group()
def command() -> None:
    """Look at the results kept from earlier runs, or drop them."""


@command.command("dir")
def dir_command() -> None:
    """Print the folder."""
    click.echo(cache.folder())


@command.command("clear")
def clear_command() -> None:
    """Delete every result."""
    paths = list(cache.entries())
    for path in paths:
        os.unlink(path)
    click.echo(f"{cache.folder()}: {len(paths)} results deleted.")
