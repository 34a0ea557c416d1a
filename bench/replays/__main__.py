"""``python -m bench.replays``: lint the replayed bugs, each before and after its fix, and print the table.

Needs no GPU and no compiler: `fixtures/replays` holds the PTX. Exit status 1 when a pair is not told apart.
"""

import json
import sys
from pathlib import Path

import click

import ptxlint
from bench.replays.replay import read_replays
from bench.replays.table import figures, render
from bench.replays.trial import judge
from ptxlint import registry
from ptxlint.lint import Options


@click.command(help=__doc__)
@click.argument("slugs", nargs=-1)
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), help="Write the record there.")
def main(slugs: tuple[str, ...], out: Path | None) -> None:
    """Lint all pairs, or those named."""
    replays = read_replays()
    unknown = set(slugs) - {replay.slug for replay in replays}
    if unknown:
        raise click.UsageError(f"no such pair: {', '.join(sorted(unknown))}")
    options = Options(registry.select())
    chosen = [replay for replay in replays if not slugs or replay.slug in slugs]
    record = figures({replay: judge(replay, options) for replay in chosen})
    click.echo(render(record))
    if out is not None:
        out.write_text(json.dumps({"ptxlint": ptxlint.__version__, **record}, indent=1) + "\n", encoding="utf-8")
    sys.exit(record["told apart"] < record["pairs"])


if __name__ == "__main__":
    main(prog_name="python -m bench.replays")
