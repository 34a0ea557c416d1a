"""Build the modules that the cache lacks, let ptxas judge them, print the table."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from bench.corpus.assemble import assemble_all, ptxas_release
from bench.corpus.cache import Cache, default_root
from bench.corpus.environment import MissingPythonError, ensure_environment, environment_name
from bench.corpus.project import Project, all_projects
from bench.corpus.table import read_row, render

_REPOSITORY = Path(__file__).resolve().parents[3]


@click.command("build", help=__doc__)
@click.option("--cache", "root", type=click.Path(file_okay=False, path_type=Path), help="Folder of the corpus.")
@click.option("--project", "names", multiple=True, help="Only this project (repeatable).")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes at a time.")
def command(root: Path | None, names: tuple[str, ...], jobs: int) -> None:
    """Build, judge, report; status 1 if a project could not be built or ptxas rejected a module."""
    cache = Cache(root or default_root())
    projects = _chosen(names)
    failed = [project.name for project in projects if not _build(project, cache, jobs)]
    folders = {project.name: cache.ptx(project.name) for project in projects}
    paths = [path for folder in folders.values() for path in sorted(folder.glob("*.ptx"))]
    verdicts = assemble_all(paths, cache.verdicts, jobs)
    for path, verdict in verdicts.items():
        if verdict.state == "rejected":
            click.echo(f"rejected {path}: {verdict.message}")
    click.echo(f"ptxas {ptxas_release()}")
    click.echo(render([read_row(name, folder, verdicts) for name, folder in folders.items()]))
    if failed:
        click.echo(f"not built: {', '.join(failed)}", err=True)
    if failed or any(verdict.state == "rejected" for verdict in verdicts.values()):
        raise SystemExit(1)


def _chosen(names: Sequence[str]) -> list[Project]:
    known = {project.name: project for project in all_projects()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"no project named {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names or known]


def _build(project: Project, cache: Cache, jobs: int) -> bool:
    """Run the project's script in its environment; its output goes to the terminal and to the log."""
    out, log = cache.ptx(project.name), cache.log(project.name)
    out.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        python = ensure_environment(project, cache.venv(environment_name(project, all_projects())))
    except (MissingPythonError, subprocess.CalledProcessError) as problem:
        click.echo(f"{project.name}: {problem}", err=True)
        return False
    script = [str(python), "-P", str(project.script), "--out", str(out), "--jobs", str(jobs)]
    surroundings = {**os.environ, "PYTHONPATH": str(_REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=surroundings, text=True) as run:
        assert run.stdout is not None
        with log.open("w", encoding="utf-8") as copy:
            for line in run.stdout:
                click.echo(f"{project.name}: {line}", nl=False)
                copy.write(line)
    return run.returncode == 0
