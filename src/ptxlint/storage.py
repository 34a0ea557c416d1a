"""The user's cache folder: where it is, and how a file gets into it while other runs write too."""

from __future__ import annotations

import os
from collections.abc import Callable


def folder() -> str:
    """Where the files are: `PTXLINT_CACHE_DIR`, or the user's cache folder."""
    if chosen := os.environ.get("PTXLINT_CACHE_DIR"):
        return chosen
    from platformdirs import user_cache_dir

    return user_cache_dir("ptxlint", appauthor=False)


def path(name: str) -> str:
    """Where the file of that name is, or would be."""
    return os.path.join(folder(), name)


def write(name: str, make: Callable[[str], object]) -> None:
    """Let a file be made under another name, then move it to its place; give up quietly when that cannot be done."""
    final = path(name)
    temporary = f"{final}.{os.getpid()}"
    try:
        os.makedirs(folder(), exist_ok=True)
        make(temporary)
        os.replace(temporary, final)
    except OSError:
        return


def write_bytes(name: str, content: bytes) -> None:
    """Write a file whole, or not at all."""

    def make(temporary: str) -> None:
        with open(temporary, "wb") as file:
            file.write(content)

    write(name, make)
