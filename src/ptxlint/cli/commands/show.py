"""`ptxlint show`: what ptxlint sees in a file, view by view."""

from __future__ import annotations

import click

from ptxlint.cli.folder_group import FolderGroup


@click.group(cls=FolderGroup, package="ptxlint.cli.show")
def command() -> None:
    """Print what ptxlint sees: the program as it was read, its control flow, its values, its trace."""
