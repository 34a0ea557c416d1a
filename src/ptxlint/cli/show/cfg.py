"""`ptxlint show cfg`: blocks, edges and loops."""

from __future__ import annotations

from typing import Any

import click

from ptxlint.cli.kernels import kernel_arguments, kernels


@click.command()
@kernel_arguments
@click.option("--dot", "is_dot", is_flag=True, help="Print a graph for Graphviz.")
def command(file: str, kernel: str, is_dot: bool, **launch: Any) -> None:
    """Print the control-flow graph of each function in FILE."""
    from ptxlint.cfg import render

    for facts in kernels(file, kernel, **launch):
        click.echo(render(facts.cfg, is_dot))
