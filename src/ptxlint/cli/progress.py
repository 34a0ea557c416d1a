"""A progress bar, when somebody is watching and there is something to wait for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

MANY = 20
"""Files from which on a bar is worth its lines."""


def tracked(files: Sequence[str]) -> Iterator[str]:
    """The files one by one, with a bar on the standard error of an interactive terminal."""
    if len(files) < MANY or not (sys.stderr.isatty() and sys.stdout.isatty()):
        yield from files
        return
    yield from _with_bar(files)


def _with_bar(files: Sequence[str]) -> Iterable[str]:
    from rich.console import Console
    from rich.progress import track

    return track(files, description="Linting", console=Console(stderr=True), transient=True)
