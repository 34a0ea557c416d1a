"""PTX inside other files: objects, libraries, executables, fatbins, static archives, wheels and other zip files.

`cuobjdump` takes the PTX out; where there is none, what cubins keep of theirs is taken. Everything is written into a
temporary folder under names of our own, so that what an archive calls its members has no effect, and never more than
`LIMIT` bytes of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from glob import glob
from typing import IO

from ptxlint import embedded
from ptxlint.classes import dataclass
from ptxlint.containers import ARCHIVE, ELF, FATBIN, ZIP
from ptxlint.unreadable import UnreadableError

LIMIT = 8 << 30
"""Bytes that are unpacked from one archive."""
CHUNK = 1 << 20
TIMEOUT = 600
"""Seconds that one run of cuobjdump may take."""

HEADER_SIZE = 60
"""Bytes of a member's header in a static archive."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """One PTX module: what it is called inside its file, and its bytes."""

    name: str
    data: bytes


def extract(path: str, limit: int) -> Iterator[Extracted]:
    """The PTX modules in a file, each cut off one byte after the limit. Raises UnreadableError."""
    with tempfile.TemporaryDirectory(prefix="ptxlint-") as folder:
        head = _beginning(path, len(ARCHIVE))
        if head.startswith(ZIP):
            yield from _from_members(_zip_members(path, folder), folder, limit)
        elif head.startswith(ARCHIVE):
            yield from _from_members(_archive_members(path, folder), folder, limit)
        else:
            yield from _dumped(path, folder, limit)


def tool() -> str:
    """The path of cuobjdump: on PATH, or from the wheel. Raises UnreadableError when it is nowhere."""
    found = shutil.which("cuobjdump")
    wheels = (
        path for entry in sys.path for path in sorted(glob(os.path.join(entry, "nvidia", "*", "bin", "cuobjdump")))
    )
    found = found or next((path for path in wheels if os.access(path, os.X_OK)), None)
    if found is None:
        raise UnreadableError("needs cuobjdump to be read: pip install 'ptxlint[binary]', or put it on PATH")
    return found


def _dumped(path: str, folder: str, limit: int) -> Iterator[Extracted]:
    """The PTX of one object, else what the cubins in it keep of theirs, whether cuobjdump knows of them or not."""
    is_cubin = embedded.is_cubin(_beginning(path, 20))
    for modules in (_kept([("ptx", path)]),) if is_cubin else _ways(path, folder, limit):
        first = next(modules, None)
        if first is not None:
            yield first
            yield from modules
            return


def _ways(path: str, folder: str, limit: int) -> Iterator[Iterator[Extracted]]:
    yield (Extracted(name, _beginning(dumped, limit + 1)) for name, dumped in _cuobjdump("-xptx", path, folder))
    yield _kept(_cuobjdump("-xelf", path, folder))
    yield _kept([("ptx", path)])


def _kept(files: Iterable[tuple[str, str]]) -> Iterator[Extracted]:
    for name, path in files:
        for number, data in enumerate(embedded.kept(path), 1):
            yield Extracted(name.removesuffix(".cubin") + (f".{number}" if number > 1 else ""), data)


def _cuobjdump(option: str, path: str, folder: str) -> Iterator[tuple[str, str]]:
    """Name and path of each file that cuobjdump takes out of an object."""
    into = tempfile.mkdtemp(dir=folder)
    command = [tool(), option, "all", os.path.abspath(path)]
    try:
        done = subprocess.run(command, cwd=into, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        raise UnreadableError(f"keeps cuobjdump busy for more than {TIMEOUT} seconds") from error
    except OSError as error:
        raise UnreadableError(f"cannot be read: cuobjdump does not run: {error.strerror}") from error
    if done.returncode < 0:
        raise UnreadableError(f"crashes cuobjdump (signal {-done.returncode})")
    for name in sorted(os.listdir(into)):
        yield name, os.path.join(into, name)
    shutil.rmtree(into)


def _from_members(members: Iterator[tuple[str, str]], folder: str, limit: int) -> Iterator[Extracted]:
    """The PTX of the members that are given by name and by path of the unpacked file, which is then deleted."""
    for name, unpacked in members:
        head = _beginning(unpacked, len(ARCHIVE))
        if name.endswith(".ptx"):
            yield Extracted(name, _beginning(unpacked, limit + 1))
        elif head.startswith(ARCHIVE):
            for inner in _from_members(_archive_members(unpacked, folder), folder, limit):
                yield Extracted(f"{name}!{inner.name}", inner.data)
        elif head.startswith((ELF, FATBIN)):
            for inner in _dumped(unpacked, folder, limit):
                yield Extracted(f"{name}!{_renamed(inner.name, unpacked)}", inner.data)
        os.unlink(unpacked)


def _beginning(path: str, length: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(length)


def _renamed(name: str, unpacked: str) -> str:
    """The name of a module without the name of our temporary file, which cuobjdump puts in front of some."""
    return name.removeprefix(os.path.splitext(os.path.basename(unpacked))[0] + ".")


def _zip_members(path: str, folder: str) -> Iterator[tuple[str, str]]:
    left = LIMIT
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    if member.filename.endswith(".ptx") or file.read(len(ARCHIVE)).startswith((ELF, FATBIN, ARCHIVE)):
                        file.seek(0)
                        unpacked, size = _unpacked(file, folder, left)
                        left -= size
                        yield member.filename, unpacked
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise UnreadableError(f"is not a zip archive that can be read: {error}") from error


def _archive_members(path: str, folder: str) -> Iterator[tuple[str, str]]:
    """The members of a static archive, of the GNU or the BSD kind."""
    with open(path, "rb") as file:
        file.seek(len(ARCHIVE))
        names = b""
        while len(header := file.read(HEADER_SIZE)) == HEADER_SIZE:
            raw, size = header[:16].rstrip(), header[48:58].strip()
            if not size.isdigit() or header[58:] != b"`\n":
                raise UnreadableError("is not a static archive that can be read: a member's header is damaged")
            start, length = file.tell(), int(size)
            if raw == b"//":
                names = file.read(min(length, CHUNK))
            elif raw not in (b"/", b"/SYM64/") and not raw.startswith(b"__.SYMDEF"):
                name = _member_name(raw, names, file)
                unpacked, _ = _unpacked(file, folder, LIMIT, length - (file.tell() - start))
                yield name, unpacked
            file.seek(start + length + length % 2)


def _member_name(raw: bytes, names: bytes, file: IO[bytes]) -> str:
    if raw.startswith(b"#1/") and raw[3:].isdigit():
        raw = file.read(min(int(raw[3:]), CHUNK)).rstrip(b"\0")
    elif raw.startswith(b"/") and raw[1:].isdigit():
        raw = names[int(raw[1:]) :].partition(b"\n")[0]
    return raw.rstrip(b"/").decode(errors="replace")


def _unpacked(file: IO[bytes], folder: str, limit: int, length: int | None = None) -> tuple[str, int]:
    """A copy of the next `length` bytes of the file, or of all, and their number.

    Raises UnreadableError beyond the limit.
    """
    left = limit if length is None else length
    size = 0
    descriptor, path = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb") as out:
        while chunk := file.read(min(CHUNK, left + 1 if length is None else left)):
            size += len(chunk)
            if size > limit:
                raise UnreadableError(f"unpacks to more than {limit >> 30} GiB")
            out.write(chunk)
            left -= len(chunk)
    return path, size
