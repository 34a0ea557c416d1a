"""The caches of kernel compilers: which files in them are kernels, and what the cache says of each.

One file each for Triton (and what TorchInductor puts beside it) and TileLang. Nothing of a compiler is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ptxlint.classes import dataclass
from ptxlint.compiler_caches import tilelang, triton
from ptxlint.launch import Launch
from ptxlint.result import Origin


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel in a cache: where it comes from, and what is known of its launch."""

    origin: Origin
    launch: Launch = field(default_factory=Launch)


def is_kernel(path: str) -> bool:
    """Whether the file is a kernel in a cache that keeps no PTX."""
    return tilelang.is_source(path)


def ptx(path: str, flags: Sequence[str]) -> bytes:
    """The PTX of such a kernel; `flags` are the user's for nvcc. Raises UnreadableError."""
    return tilelang.ptx(path, flags)


def entry(path: str) -> Entry | None:
    """What a cache says of the kernel in the file; None when the file lies in no cache."""
    if tilelang.is_source(path):
        return Entry(Origin(tilelang.compiler(path)))
    metadata = triton.metadata(path)
    return Entry(triton.origin(path, metadata), triton.launch(metadata)) if metadata is not None else None


def distinct(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The files, each with the later ones that hold the same kernel of a cache and can be left out."""
    first: dict[bytes, str] = {}
    found: dict[str, list[str]] = {}
    for path in paths:
        if tilelang.is_source(path) or triton.is_ptx(path):
            found.setdefault(first.setdefault(_digest(path), path), []).append(path)
        else:
            found[path] = [path]
    return {path: tuple(same[1:]) for path, same in found.items()}


def _digest(path: str) -> bytes:
    from hashlib import blake2b

    try:
        with open(path, "rb") as file:
            return blake2b(file.read()).digest()
    except OSError:
        return path.encode(errors="surrogateescape")
