"""The PTX that a cubin keeps of itself: ptxas puts it there when it is asked for line numbers (`-lineinfo`, `-g`).

It is the whole module, line by line, without comments, `.loc`, `.file` and the bytes of debug sections. The section is
called `.nv_debug_ptx_txt`; measured on ptxas 13.0 and on the cubins that Triton and TileLang cache.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct

from ptxlint.containers import ELF

SECTION = b".nv_debug_ptx_txt"

_MACHINE = 190
"""`e_machine` of a cubin."""
_HEADER = Struct("<18xH20xQ10xHHH")
"""Of a 64-bit ELF file: machine, where the section headers are, their size, their number, the one with the names."""
_SECTION = Struct("<I20xQQ")
"""Of a section: where its name is, where its bytes are, how many."""

_Bytes = bytes | mmap.mmap


def is_cubin(head: bytes) -> bool:
    """Whether a file that begins like this is a cubin."""
    return head.startswith(ELF) and head[18:20] == _MACHINE.to_bytes(2, "little")


def kept(path: str) -> Iterator[bytes]:
    """The PTX of each cubin that is the file, or that lies in it uncompressed."""
    if os.path.getsize(path) == 0:
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        starts = [*_starts(data), len(data)]
        for start, end in pairwise(starts):
            if is_cubin(data[start : start + 20]):
                text = _section(data, start, end)
                if text is not None:
                    yield text.replace(b"\0", b"\n")


def _starts(data: _Bytes) -> Iterator[int]:
    start = data.find(ELF)
    while start >= 0:
        yield start
        start = data.find(ELF, start + 1)


def _section(data: _Bytes, start: int, end: int) -> bytes | None:
    """The bytes of the section of the ELF image that begins there; None when it has none or is damaged."""
    if end - start < _HEADER.size:
        return None
    _, table, size, count, names = _HEADER.unpack_from(data, start)
    if size < _SECTION.size or start + table + size * count > end or names >= count:
        return None
    sections = [_SECTION.unpack_from(data, start + table + size * number) for number in range(count)]
    _, first, length = sections[names]
    if first + length > end - start:
        return None
    strings = data[start + first : start + first + length]
    for name, offset, length in sections:
        if strings[name : name + len(SECTION) + 1] == SECTION + b"\0" and offset + length <= end - start:
            return data[start + offset : start + offset + length]
    return None
