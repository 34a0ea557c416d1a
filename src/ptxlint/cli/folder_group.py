"""A command group whose commands are the files of a folder: each holds `command`, imported when it is needed."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any, cast

import click


class FolderGroup(click.Group):
    """Finds its commands in a package; a file `not_this.py` is the command `not-this`."""

    def __init__(self, *arguments: Any, package: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.package = package

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of the commands, sorted."""
        path = import_module(self.package).__path__
        return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(path))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        return cast("click.Command", import_module(f"{self.package}.{cmd_name.replace('-', '_')}").command)
