"""The loop of a project's script: recipes in, ``*.ptx`` and ``manifest.json`` out.

Runs inside the project's virtual environment, so it imports the standard library alone. Each recipe runs in a process
of its own (a compiler that crashes or hangs costs one module), in a scratch folder that is removed afterwards.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Recipe:
    """One module to build, or a group of modules."""

    name: str
    """Name of the file without its suffix; a group's files are called ``NAME__MODULE.ptx``."""
    arch: str
    """Architecture it is compiled for, such as ``sm_90a``."""
    make: Callable[[], str | dict[str, str]]
    """Returns the PTX, or several modules by name. Runs in its own process, in an empty current folder; what it raises
    is the reason of failure."""


@dataclass(frozen=True, slots=True)
class _Job:
    recipe: Recipe
    process: ForkProcess
    scratch: Path
    deadline: float


def produce(recipes: Sequence[Recipe], package: str, time_limit: float = 300.0, version: str | None = None) -> int:
    """Build the recipes that the command line's folder lacks; ``package`` is the distribution that they come from.

    Returns the exit status: 0 unless the folder holds nothing at the end. ``time_limit`` is seconds per recipe;
    ``version`` stands in for the distribution's where ``package`` is not one.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    version = version or metadata.version(package)
    waiting = [each for each in recipes if not _built(options.out, each)]
    built: list[tuple[str, str]] = []
    for _ in _build(waiting, options.out, options.jobs, time_limit):
        built = [(path.stem, each.arch) for each in recipes for path in _built(options.out, each)]
        write_manifest(options.out, built, package, version)
    missing = sum(1 for each in recipes if not _built(options.out, each))
    print(f"{package} {version}: {len(built)} modules, {missing} of {len(recipes)} recipes failed", flush=True)
    return 0 if built else 1


def write_manifest(out: Path, modules: Sequence[tuple[str, str]], project: str, version: str) -> None:
    """Write ``manifest.json``: a list of objects with ``name``, ``arch``, ``project`` and ``version``."""
    entries = [{"name": name, "arch": arch, "project": project, "version": version} for name, arch in modules]
    write_whole(out / "manifest.json", json.dumps(entries, indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def _built(out: Path, recipe: Recipe) -> list[Path]:
    single = out / f"{recipe.name}.ptx"
    return [single] if single.exists() else sorted(out.glob(f"{recipe.name}__*.ptx"))


def _build(recipes: list[Recipe], out: Path, jobs: int, time_limit: float) -> Iterator[None]:
    """Yield at the start and whenever a recipe has ended, so that what is built can be recorded."""
    waiting, running = sorted(recipes, key=_shuffled), list[_Job]()
    yield
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(_start(waiting.pop(), out, time_limit))
        first = min(each.deadline for each in running)
        wait([each.process.sentinel for each in running], max(0.0, first - time.monotonic()))
        running = [each for each in running if not _finish(each, out)]
        yield


def _shuffled(recipe: Recipe) -> str:
    """A key that mixes recipes, the same way every time: what an interrupted build leaves is a fair sample."""
    return hashlib.sha256(recipe.name.encode()).hexdigest()


def _start(recipe: Recipe, out: Path, time_limit: float) -> _Job:
    scratch = Path(tempfile.mkdtemp(prefix="ptxlint-corpus-"))
    process = multiprocessing.get_context("fork").Process(target=_child, args=(recipe, out.resolve(), scratch))
    process.start()
    return _Job(recipe, process, scratch, time.monotonic() + time_limit)


def _child(recipe: Recipe, out: Path, scratch: Path) -> None:
    sink = os.open(scratch / "output", os.O_WRONLY | os.O_CREAT)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    empty = scratch / "current"
    empty.mkdir()
    os.chdir(empty)
    tempfile.tempdir = str(scratch)
    try:
        made = recipe.make()
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - the compilers of others raise anything
        (scratch / "traceback").write_text(traceback.format_exc(), encoding="utf-8")
        (scratch / "reason").write_text(f"{type(problem).__name__}: {_gist(str(problem))}", encoding="utf-8")
        return
    if isinstance(made, str):
        write_whole(out / f"{recipe.name}.ptx", made)
    else:
        for part, text in made.items():
            write_whole(out / f"{recipe.name}__{part}.ptx", text)


def _gist(message: str) -> str:
    """First and last line: compilers print the place first and the cause last."""
    lines = [line.strip()[:200] for line in message.splitlines() if line.strip()]
    return " ... ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))


def _finish(job: _Job, out: Path) -> bool:
    late = time.monotonic() > job.deadline
    if job.process.is_alive() and not late:
        return False
    if job.process.is_alive():
        job.process.kill()
    job.process.join()
    if built := _built(out, job.recipe):
        print("\n".join(f"built   {path.stem}" for path in built), flush=True)
    else:
        print(f"failed  {job.recipe.name}: {_reason(job, late)}", flush=True)
        _keep_traceback(job, out)
    shutil.rmtree(job.scratch, ignore_errors=True)
    return True


def _reason(job: _Job, late: bool) -> str:
    reason = job.scratch / "reason"
    if reason.exists():
        return reason.read_text(encoding="utf-8")
    return "time limit" if late else f"exit status {job.process.exitcode}"


def _keep_traceback(job: _Job, out: Path) -> None:
    failures = out / "failures"
    failures.mkdir(exist_ok=True)
    parts = [job.scratch / "traceback", job.scratch / "output"]
    text = "\n".join(part.read_text(encoding="utf-8", errors="replace")[-20000:] for part in parts if part.exists())
    write_whole(failures / f"{job.recipe.name}.log", text)
