"""Lint the modules that ptxas accepted, print what was found; fails on an error that is false or not judged.

Modules that the same code has linted before are not linted again.
"""

import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import click

import ptxlint
from bench.corpus.assemble import assemble_all
from bench.corpus.cache import Cache, default_root
from bench.corpus.lint_table import condemned, figures, merged, render
from bench.corpus.linted import Found, Linted, Task, lint, unanswered
from bench.corpus.project import all_projects
from bench.corpus.triage import Entry, judgement, read_triage
from bench.forked import Failure, each
from bench.preload import import_everything
from ptxlint import registry
from ptxlint.lint import Options

_TIMED_IN = 5
"""One module in so many is assembled by ptxas beside."""


@click.command("lint", help=__doc__)
@click.option("--cache", "root", type=click.Path(file_okay=False, path_type=Path), help="Folder of the corpus.")
@click.option("--project", "names", multiple=True, help="Only this project (repeatable).")
@click.option("--module", "pattern", default="*", help="Only modules whose name matches the glob.")
@click.option("--sample", type=click.IntRange(1), help="Only so many modules of each project, always the same ones.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes at a time.")
@click.option("--seconds", type=float, default=1800, show_default=True, help="Time limit of a module.")
@click.option(
    "--json",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the figures there, beside those of other projects.",
)
@click.option("--verbose", is_flag=True, help="Print every finding, whatever its judgement.")
def command(
    root: Path | None,
    names: tuple[str, ...],
    pattern: str,
    sample: int | None,
    jobs: int,
    seconds: float,
    out: Path | None,
    verbose: bool,
) -> None:
    """Lint, judge, report."""
    cache = Cache(root or default_root())
    entries = read_triage()
    projects = [project.name for project in all_projects() if not names or project.name in names]
    paths = [path for name in projects for path in _modules(cache.ptx(name), pattern, sample)]
    accepted = {
        path for path, verdict in assemble_all(paths, cache.verdicts, jobs).items() if verdict.state == "accepted"
    }
    tasks = [Task(path, _hash(path)[0] % _TIMED_IN == 0) for path in paths if path in accepted]
    done: list[Linted] = []
    for linted in _lint_all(tasks, cache.linted, jobs, seconds):
        done.append(linted)
        for line in _remarks(linted, entries, verbose):
            click.echo(line)
    code = _commit()
    rows = [figures(name, [linted for linted in done if linted.project == name], entries, code) for name in projects]
    click.echo(render(merged([], rows)))
    if out is not None:
        earlier = json.loads(out.read_text())["projects"] if out.is_file() else []
        record = {"ptxlint": ptxlint.__version__, "projects": merged(earlier, rows)}
        out.write_text(json.dumps(record, indent=1) + "\n")
    bad = condemned(done, entries)
    click.echo(f"{len(bad)} errors that are false or not judged")
    if bad or any(linted.faults for linted in done):
        raise SystemExit(1)


def _modules(folder: Path, pattern: str, sample: int | None) -> list[Path]:
    """The modules of a folder, or the ones whose names hash lowest."""
    found = [path for path in sorted(folder.glob("*.ptx")) if fnmatchcase(path.stem, pattern)]
    return sorted(sorted(found, key=_hash)[:sample])


def _commit() -> str:
    """The commit of the code that lints, marked when files differ from it; empty outside a repository."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _hash(path: Path) -> bytes:
    return hashlib.sha256(path.name.encode()).digest()


def _lint_all(tasks: Sequence[Task], store: Path, jobs: int, seconds: float) -> Iterator[Linted]:
    import_everything()
    work = partial(lint, options=Options(registry.select()), store=store)
    for task, result in each(work, tasks, jobs, seconds):
        if isinstance(result, Failure):
            yield unanswered(task.path, result.reason, seconds)
        else:
            yield result


def _remarks(linted: Linted, entries: Sequence[Entry], verbose: bool) -> Iterator[str]:
    where = f"{linted.project}/{linted.module}"
    if verbose:
        verdicts = Counter(verdict for _, verdict, _ in linted.kernels)
        yield f"{where}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}, {linted.seconds} s"
        yield from (f"{where}: {name[:60]}: not analysed: {reason}" for name, _, reason in linted.kernels if reason)
    for fault in linted.faults:
        yield f"{where}: internal: {fault}"
    for found in linted.findings:
        judged = judgement(entries, linted, found)
        if verbose or judged is None:
            yield f"{where}.ptx:{found.line}: {_sentence(found)} ({judged or 'not judged'})"


def _sentence(found: Found) -> str:
    frames = " < ".join(found.source[:3])
    assumed = f" [{'; '.join(found.assumptions)}]" if found.assumptions else ""
    return f"{found.severity} {found.rule}: {found.message}{assumed} | {frames} | {found.fingerprint}"
