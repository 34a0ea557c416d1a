"""``python -m bench.corpus COMMAND``: every file in ``commands/`` is one COMMAND."""

import importlib
import pkgutil

import click

from bench.corpus import commands


def main() -> None:
    """Run the command that the command line names."""
    group = click.Group(help="Build and measure the corpus of real PTX modules.")
    for found in pkgutil.iter_modules(commands.__path__):
        group.add_command(importlib.import_module(f"{commands.__name__}.{found.name}").command)
    group.main(prog_name="python -m bench.corpus")


if __name__ == "__main__":
    main()
