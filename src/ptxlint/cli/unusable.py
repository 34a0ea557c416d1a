"""The one way in which a command says that it cannot use its input."""

from __future__ import annotations

import click


class UnusableError(click.ClickException):
    """The input cannot be used; exit status 2."""

    exit_code = 2
