"""A progress bar, when somebody is watching and there is something to wait for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

MANY = 20
"""Inputs from which on a bar is worth its lines."""

Item = TypeVar("Item")


def tracked(items: Iterable[Item], total: int) -> Iterator[Item]:
    """The items one by one, with a bar on the standard error of an interactive terminal."""
    if total < MANY or not (sys.stderr.isatty() and sys.stdout.isatty()):
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description="Linting", total=total, console=Console(stderr=True), transient=True)
