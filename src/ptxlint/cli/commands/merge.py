"""`ptxlint merge`: the SARIF logs of several shards as one."""

from __future__ import annotations

import json

import click

from ptxlint.cli.unusable import UnusableError
from ptxlint.merge import MergeError, is_complete, levels, merged


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="SARIF...")
@click.option("--output-file", "-o", metavar="FILE", help="Write the log there.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when there are findings.")
def command(paths: tuple[str, ...], output_file: str | None, exit_zero: bool) -> int:
    """Merge the logs that `ptxlint check --shard I/N --format sarif` wrote.

    Exit status: 0 clean, 1 findings from warnings on, 2 when a shard could not read or lint everything.
    """
    try:
        log = merged(paths)
    except MergeError as error:
        raise UnusableError(str(error)) from error
    text = json.dumps(log, indent=2, ensure_ascii=False)
    if output_file:
        try:
            with open(output_file, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            raise click.FileError(output_file, error.strerror or str(error)) from error
    else:
        click.echo(text)
    if not is_complete(log):
        return 2
    return int(not exit_zero and any(level != "note" for level in levels(log)))
