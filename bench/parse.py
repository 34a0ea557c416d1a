"""How fast PTX is parsed, beside ptxas on the same files, and whether the fast way agrees with the grammar.

python -m bench.parse                     # 500 to 1,000,000 lines, made of the fixtures' kernels
python -m bench.parse agree PATH...       # shapes against the grammar on whole files, and printing against parsing
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path

import click

from ptxlint.ir import Module
from ptxlint.parse import parse, parse_bytes, parse_plainly
from ptxlint.printer import print_module
from ptxlint.source import PtxSyntaxError, Span

KERNELS = Path(__file__).parent.parent / "fixtures" / "kernels"
TARGET = "sm_90a"
SIZES = (500, 5_000, 50_000, 1_000_000)
HEADER = f'.version 9.0\n.target {TARGET}\n.address_size 64\n.file 1 "bench.cu"\n'

_DEBUG = re.compile(r"(?m)^\s*\.(?:file\b.*|section\b[^{]*\{[^}]*\})")
_LOC = re.compile(r"(\.loc\s+)\d+( \d+ \d+)[^\n]*")
_DECLARED = re.compile(
    r"(?m)^\.(?:visible |extern |global |shared |const |align \d+ |\.|[ub]\d+ |entry |func )+([\w$]+)"
)
_HEAD = re.compile(r"(?ms)\A.*?\.address_size \d+\s*$")

IN_A_PROCESS = """
import sys, time
started = time.perf_counter()
from ptxlint.parse import parse_bytes
parse_bytes(open(sys.argv[1], "rb").read())
print(time.perf_counter() - started, "lark" in sys.modules)
"""


def synthesised(lines: int) -> str:
    """A module of at least that many lines: the fixtures' kernels in order, again and again under new names."""
    pieces = [HEADER]
    length = HEADER.count("\n")
    for number, (names, text) in enumerate(cycle(_sources())):
        if length >= lines:
            break
        pieces.append(names.sub(rf"\1_{number}", text))
        length += pieces[-1].count("\n")
    return "".join(pieces)


def _sources() -> list[tuple[re.Pattern[str], str]]:
    """The kernels' text without debug sections, with a pattern of the names that must differ from copy to copy."""
    found = []
    for path in sorted(KERNELS.glob("*/*.ptx")):
        text = path.read_text()
        if f".target {TARGET}\n" not in text:
            continue
        body = _LOC.sub(r"\g<1>1\2", _DEBUG.sub("", _HEAD.sub("", text, count=1)))
        names = "|".join(sorted(map(re.escape, set(_DECLARED.findall(body))), key=len, reverse=True))
        if names:
            found.append((re.compile(rf"(?<![\w$])({names})(?![a-zA-Z0-9$])"), body.strip("\n") + "\n"))
    return found


@dataclass(frozen=True, slots=True)
class Row:
    """One size: lines, seconds to parse, seconds that ptxas takes (None when it did not run), MiB of memory at most."""

    lines: int
    parse: float
    process: float
    ptxas: float | None
    memory: int

    def __str__(self) -> str:
        beside = f"{self.ptxas:9.2f} {self.ptxas / self.parse:8.1f}" if self.ptxas is not None else f"{'-':>9} {'-':>8}"
        rate = self.lines / self.parse
        return f"{self.lines:10,} {self.parse:9.3f} {rate:10,.0f} {self.process:9.3f} {beside} {self.memory:9,}"


TITLES = f"{'lines':>10} {'parse s':>9} {'lines/s':>10} {'cold s':>9} {'ptxas s':>9} {'ratio':>8} {'peak MiB':>9}"


def measured(lines: int, folder: Path, *, with_ptxas: bool) -> Row:
    """Time both on one file, the best of some runs. `process` is a fresh interpreter that knows the shapes already."""
    text = synthesised(lines)
    path = folder / f"lines{lines}.ptx"
    path.write_text(text)
    parse(text)
    repeats = 7 if lines <= 100_000 else 2
    seconds = min(_timed(partial(parse, text)) for _ in range(repeats))
    process = min(_process(path) for _ in range(3 if lines <= 100_000 else 1))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return Row(text.count("\n"), seconds, process, _ptxas(path, folder) if with_ptxas else None, memory)


def _timed(call: partial[Module]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _process(path: Path) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", IN_A_PROCESS, path], check=True, stdout=subprocess.PIPE)
    return time.perf_counter() - started


def _ptxas(path: Path, folder: Path) -> float:
    started = time.perf_counter()
    command = ["ptxas", f"--gpu-name={TARGET}", f"--output-file={folder / 'out.cubin'}", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


@click.group(invoke_without_command=True)
@click.option("--lines", "sizes", type=int, multiple=True, default=SIZES, show_default=True)
@click.option("--without-ptxas", is_flag=True, help="Do not run ptxas beside.")
@click.pass_context
def main(context: click.Context, sizes: tuple[int, ...], without_ptxas: bool) -> None:
    """Print lines per second and how many times longer ptxas takes."""
    if context.invoked_subcommand is not None:
        return
    with_ptxas = not without_ptxas and shutil.which("ptxas") is not None
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PTXLINT_CACHE_DIR"] = str(Path(folder) / "cache")
        click.echo(TITLES)
        for lines in sizes:
            click.echo(str(measured(lines, Path(folder), with_ptxas=with_ptxas)))


@main.command()
@click.argument("paths", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
def agree(paths: tuple[Path, ...]) -> None:
    """Compare, for each file, the parser with the grammar alone, and the printed module with the module."""
    files = instructions = differing = rejected = 0
    for path in _files(paths):
        files += 1
        try:
            module = parse_bytes(path.read_bytes())
        except PtxSyntaxError as error:
            rejected += 1
            click.echo(f"{path}:{error}")
            continue
        instructions += sum(len(function.body or ()) for function in module.functions)
        plain = parse_plainly(path.read_bytes().decode("utf-8", "surrogateescape"))
        printed = parse(print_module(module))
        if module != plain:
            click.echo(f"{path}: the grammar alone reads it differently")
        if placeless(printed) != placeless(module):
            click.echo(f"{path}: what was printed reads differently")
        differing += module != plain or placeless(printed) != placeless(module)
    click.echo(f"{files} files, {instructions:,} instructions: {differing} differ, {rejected} rejected")
    sys.exit(1 if differing or rejected else 0)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.ptx")) if path.is_dir() else [path]


def placeless(module: Module) -> Module:
    """The module without spans and notes, which printing does not keep."""
    start = Span(1)
    return replace(
        module,
        notes=(),
        variables=tuple(replace(item, span=start) for item in module.variables),
        directives=tuple(replace(item, span=start) for item in module.directives),
        functions=tuple(
            replace(
                function,
                span=start,
                parameters=tuple(replace(item, span=start) for item in function.parameters),
                results=tuple(replace(item, span=start) for item in function.results),
                directives=tuple(replace(item, span=start) for item in function.directives),
                variables=tuple(replace(item, span=start) for item in function.variables),
                body=None if function.body is None else tuple(replace(item, span=start) for item in function.body),
            )
            for function in module.functions
        ),
    )


if __name__ == "__main__":
    main()
