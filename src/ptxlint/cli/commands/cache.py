"""`ptxlint cache`: the results kept from earlier runs."""

from __future__ import annotations

import os

import click

from ptxlint import cache, storage


@click.group()
def command() -> None:
    """Look at the results kept from earlier runs, or drop them."""


@command.command("dir")
def dir_command() -> None:
    """Print the folder."""
    click.echo(storage.folder())


@command.command("clear")
def clear_command() -> None:
    """Delete every result, and what the parser keeps."""
    paths = list(cache.entries())
    for path in paths:
        os.unlink(path)
    click.echo(f"{storage.folder()}: {len(paths)} files deleted.")
