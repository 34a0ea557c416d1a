"""The table that the corpus prints: one row per project."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.corpus.assemble import Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """The modules of one project."""

    project: str
    version: str
    modules: int
    accepted: int
    newer: int
    rejected: int
    lines: int
    """Lines of the accepted modules."""


def read_row(project: str, folder: Path, verdicts: Mapping[Path, Verdict]) -> Row:
    """Count the modules of one folder, whose verdicts are given."""
    states = [verdicts[path].state for path in verdicts if path.parent == folder]
    accepted = [path for path, verdict in verdicts.items() if path.parent == folder and verdict.state == "accepted"]
    lines = sum(path.read_bytes().count(b"\n") for path in accepted)
    return Row(
        project,
        _version(folder),
        len(states),
        states.count("accepted"),
        states.count("newer"),
        states.count("rejected"),
        lines,
    )


def render(rows: Sequence[Row]) -> str:
    """The rows and their sum, in columns."""
    counts = ("modules", "accepted", "newer", "rejected", "lines")
    total = Row("all", "", *(sum(getattr(row, name) for row in rows) for name in counts))
    cells: list[list[str]] = [["project", *counts, "version"]]
    cells += [[row.project, *(f"{getattr(row, name):,}" for name in counts), row.version] for row in [*rows, total]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return "\n".join(_aligned(line, widths) for line in cells)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Names to the left, numbers to the right."""
    first, *numbers, last = cells
    padded = (number.rjust(width) for number, width in zip(numbers, widths[1:-1], strict=True))
    return "  ".join([first.ljust(widths[0]), *padded, last])


def _version(folder: Path) -> str:
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return "-"
    entries = json.loads(manifest.read_text(encoding="utf-8"))
    return ", ".join(sorted({f"{entry['project']} {entry['version']}" for entry in entries}))
