"""What testing, the sanitizer and ptxlint find, kind by kind: a table from the record of `ptxlint.validate.table`."""

import json
from collections.abc import Iterator
from pathlib import Path

RECORD = Path(__file__).parent / "results/side_by_side.json"

_TITLES = ("kind of fault", "variants", "testing, 200 launches", "more with a delay", "compute-sanitizer", "ptxlint")


def table() -> Iterator[str]:
    """Lines of Markdown: a row for each kind, and the sum. What needs another GPU was not run: a dash."""
    sums = json.loads(RECORD.read_text(encoding="utf-8"))
    yield f"| {' | '.join(_TITLES)} |"
    yield "|---" * len(_TITLES) + "|"
    total = dict.fromkeys(("faults", "at once", "delayed", "sanitizer", "ptxlint", "run"), 0)
    for family in sums["families"]:
        yield _row(family["family"], family)
        for name in total:
            total[name] += family[name]
    yield _row("all", total)
    right = sums["right"]
    yield f"| right variants | {right['variants']} | {right['at once']} | {right['delayed']} | | {right['ptxlint']} |"


def _row(name: str, sums: dict[str, int]) -> str:
    run = sums["run"]
    seen = (f"{sums[column]} of {run}" if run else "-" for column in ("at once", "delayed", "sanitizer"))
    return f"| {' | '.join((name, str(sums['faults']), *seen, str(sums['ptxlint'])))} |"
