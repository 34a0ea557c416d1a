"""``python -m bench.cost``: what running kernels costs, without and with their data accesses, beside ptxas.

Processor seconds, so that other work on the machine counts little; of each module the least of some repeats.
"""

import gc
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click

from bench.corpus.cache import default_root
from bench.corpus.linted import ptxas_seconds
from bench.forked import Failure, each
from bench.percentile import percentile
from bench.preload import import_everything
from ptxlint.execution.engine import execute
from ptxlint.ir import Function, Module
from ptxlint.launch import Launch, stated
from ptxlint.lint import has_machinery
from ptxlint.parse import parse_bytes


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one module: its runs under all schedules, the same with the ordered run, and ptxas."""

    module: str
    alone: float
    ordered: float
    ptxas: float

    @property
    def ratio(self) -> float:
        """How many times longer everything takes than the runs without data accesses."""
        return self.ordered / self.alone


@click.command(help=__doc__)
@click.option("--corpus", "root", type=click.Path(exists=True, path_type=Path), help="Folder with modules.")
@click.option("--limit", type=click.IntRange(1), help="Only so many modules of each folder, always the same ones.")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
@click.option("--seconds", type=float, default=120, show_default=True, help="Time limit of a module.")
@click.option("--slowest", type=click.IntRange(0), default=5, show_default=True, help="Modules to name at the end.")
def main(root: Path | None, limit: int | None, repeats: int, seconds: float, slowest: int) -> None:
    """Measure modules one by one and print a row for each folder."""
    import_everything()
    paths = list(_modules(root or default_root() / "ptx", limit))
    found: list[tuple[Path, Cost]] = []
    for path, cost in each(lambda path: measured(path, repeats), paths, 1, seconds):
        if isinstance(cost, Failure):
            click.echo(f"{path}: {cost.reason}")
        elif cost is not None:
            found.append((path, cost))
    click.echo(_TITLES)
    for folder in sorted({path.parent for path, _ in found}):
        click.echo(row(folder.name, [cost for path, cost in found if path.parent == folder]))
    if found:
        click.echo(row("all", [cost for _, cost in found]))
    for _, cost in sorted(found, key=lambda pair: -pair[1].ordered)[:slowest]:
        click.echo(
            f"{cost.module}: {cost.alone:.3f} s, with data accesses {cost.ordered:.3f} s, {cost.ratio:.1f} times"
        )


def measured(path: Path, repeats: int) -> Cost | None:
    """The cost of a module; None when no kernel of it is run."""
    module = parse_bytes(path.read_bytes())
    kernels = [f for f in module.functions if f.is_entry and f.body is not None and has_machinery(f)]
    if not kernels:
        return None
    alone = min(_seconds(lambda: _run(module, kernels, with_accesses=False)) for _ in range(repeats))
    ordered = min(_seconds(lambda: _run(module, kernels, with_accesses=True)) for _ in range(repeats))
    return Cost(path.stem, alone, ordered, ptxas_seconds(path))


def _run(module: Module, kernels: Sequence[Function], *, with_accesses: bool) -> None:
    for function in kernels:
        execute(module, function, stated(function, Launch()), with_accesses=with_accesses)


def _seconds(call: Callable[[], None]) -> float:
    gc.collect()
    began = time.process_time()
    call()
    return time.process_time() - began


def _modules(root: Path, limit: int | None) -> Iterator[Path]:
    """The modules below a folder, or those of each of its folders whose names hash lowest."""
    folders: dict[Path, list[Path]] = {}
    for path in sorted(root.rglob("*.ptx")):
        folders.setdefault(path.parent, []).append(path)
    for paths in folders.values():
        yield from sorted(sorted(paths, key=lambda path: hashlib.sha256(path.name.encode()).digest())[:limit])


_TITLES = (
    f"{'':22} {'modules':>7} {'alone':>7} {'90 %':>7} {'ordered':>8} {'90 %':>7} "
    f"{'ratio':>6} {'90 %':>6} {'ptxas':>7} {'90 %':>7}"
)


def row(name: str, costs: Sequence[Cost]) -> str:
    """Median and 90th percentile of each column."""
    alone, ordered, ratio, ptxas = (
        [getattr(cost, column) for cost in costs] for column in ("alone", "ordered", "ratio", "ptxas")
    )
    return (
        f"{name:22} {len(costs):7} {median(alone):7.3f} {percentile(alone, 90):7.3f} "
        f"{median(ordered):8.3f} {percentile(ordered, 90):7.3f} {median(ratio):6.2f} {percentile(ratio, 90):6.2f} "
        f"{median(ptxas):7.3f} {percentile(ptxas, 90):7.3f}"
    )


if __name__ == "__main__":
    main(prog_name="python -m bench.cost")
