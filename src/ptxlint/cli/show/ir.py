"""`ptxlint show ir`: the module, printed back as PTX."""

from __future__ import annotations

import click

from ptxlint.cli.kernels import module_in


@click.command()
@click.argument("file")
def command(file: str) -> None:
    """Print FILE as it was read: PTX with scopes flattened and names made unique; ptxas accepts it."""
    from ptxlint.printer import print_module

    click.echo(print_module(module_in(file)), nl=False)
