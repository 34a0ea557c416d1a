"""List the projects, what they need, and how many modules the cache holds."""

from pathlib import Path

import click

from bench.corpus.cache import Cache, default_root
from bench.corpus.project import all_projects


@click.command("list", help=__doc__)
@click.option("--cache", "root", type=click.Path(file_okay=False, path_type=Path), help="Folder of the corpus.")
def command(root: Path | None) -> None:
    """One line per project."""
    cache = Cache(root or default_root())
    for project in all_projects():
        held = sum(1 for _ in cache.ptx(project.name).glob("*.ptx"))
        click.echo(f"{project.name:18} {held:5} modules  {' '.join(project.requirements)}")
