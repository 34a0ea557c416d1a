"""Tables of the views: ruled ones on a terminal, aligned columns elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import click

Row = Sequence[Sequence[str]]
"""The cells of a row; a cell is one or more lines."""


def print_table(title: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Print a table under its title. Columns that are empty in every row are left out."""
    every = [list(row) for row in rows]
    kept = [index for index in range(len(columns)) if any("".join(row[index]) for row in every)]
    heads = [columns[index] for index in kept]
    cells = [[row[index] for index in kept] for row in every]
    if sys.stdout.isatty():
        _print_ruled(title, heads, cells)
    else:
        click.echo(title)
        for line in _aligned(heads, cells):
            click.echo(f"  {line}".rstrip())


def _aligned(heads: Sequence[str], rows: Sequence[Row]) -> list[str]:
    widths = [max(map(len, (head, *(line for row in rows for line in row[i])))) for i, head in enumerate(heads)]
    lines = [heads]
    for row in rows:
        height = max(map(len, row), default=0)
        lines += [[cell[i] if i < len(cell) else "" for cell in row] for i in range(height)]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines]


def _print_ruled(title: str, heads: Sequence[str], rows: Sequence[Row]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_lines=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text("\n".join(cell)) for cell in row))
    Console(highlight=False).print(table)
