"""The section of docs/evidence.md that is about replayed bugs."""

from collections.abc import Iterator, Mapping
from typing import Any

_COLUMNS = ("report", "class", "dialect", "rule", "lines", "before", "after")


def replay_section(record: Mapping[str, Any]) -> Iterator[str]:
    """The shares by class and dialect, every pair, and why some are not told apart yet."""
    yield "## Replayed bugs"
    yield ""
    yield (
        f"`python -m bench.replays`: {record['pairs']} kernels of ours after {record['reports']} public bug reports, "
        f"each before and after its fix. Told apart: {record['told apart']}, which means an error of the right rule at "
        "most 3 lines from the fix before, and no finding after. *Named*: the error stands elsewhere and names such a "
        "line; a severity: the rule gives no error. `lines` is the distance from the fix."
    )
    yield ""
    for title, key in (("class", "classes"), ("dialect", "dialects")):
        yield from _table((title, "pairs", "told apart"))
        for name, counts in record[key].items():
            yield _row(name, counts["pairs"], counts["told apart"])
        yield ""
    yield from _table(_COLUMNS)
    for row in record["rows"]:
        yield _row(*("-" if row[column] is None else row[column] for column in _COLUMNS))
    yield ""
    yield "Not told apart yet:"
    yield ""
    for row in record["rows"]:
        if "open" in row:
            yield f"- {row['report']} ({row['pair']}): {row['open']}"
    yield ""


def _table(titles: tuple[str, ...]) -> Iterator[str]:
    yield _row(*titles)
    yield "|---" * len(titles) + "|"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
