"""The sections of docs/evidence.md that are about mutants: the sample, and the deletions in ten kernels each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.mutants.mutant import OWN
from bench.mutants.table import ERROR, REAL, WARNING, share
from bench.mutants.trial import MISSED, REDUNDANT

_ENDS = (ERROR, WARNING, MISSED, REDUNDANT)
_TITLES = ("found as error", "only as warning", "missed", "redundant", "found of the faults")


def sample_section(record: Mapping[str, Any]) -> Iterator[str]:
    """The sample of mutants by origin, operator and rule."""
    yield "## Mutants"
    yield ""
    yield (
        f"`python -m bench.mutants`: {record['mutants']:,} mutants of {record['modules']} clean modules, each with one "
        f"synchronization instruction dropped or weakened and accepted by ptxas. Found: {record['share']} % of those "
        "that are a fault. Redundant ones are argued for in `bench/mutants/redundant.toml`."
    )
    yield ""
    yield from _origins(record)
    for origin in (OWN, REAL):
        yield from _operators(origin, record["operators"][origin])
    yield from _table(("rule", "mutants it found as error", "as warning", f"in {OWN}", f"in {REAL}"))
    for name, counts in record["rules"].items():
        yield _row(name, *(counts.get(column, 0) for column in (ERROR, WARNING, OWN, REAL)))
    yield ""


def deletion_section(record: Mapping[str, Any]) -> Iterator[str]:
    """All deletions of a kind in real kernels, and why some are redundant."""
    yield f"## {record['mutated'].capitalize()}"
    yield ""
    yield (
        f"`python -m bench.mutants --set {record['set']}`: {record['mutants']:,} mutants of {record['modules']} clean "
        f"kernels of real compilers. Found: {record['share']} % of those that are a fault."
    )
    yield ""
    yield from _origins(record)
    yield from _operators(REAL, record["operators"][REAL])
    yield "Redundant ones:"
    yield ""
    for entry in record["redundant ones"]:
        lines = ", ".join(map(str, entry["lines"]))
        yield f"- {entry['operator']} in {entry['module']}, line {lines}: {entry['reason']}"
    yield ""


def _origins(record: Mapping[str, Any]) -> Iterator[str]:
    yield from _table(("modules of", "modules", "mutants", *_TITLES))
    for name, row in [*record["origins"].items(), ("all", record)]:
        yield _row(name, row["modules"], f"{row['mutants']:,}", *_ends(row))
    yield ""


def _operators(origin: str, operators: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    yield from _table((f"operator, {origin}", *_TITLES))
    for name, counts in operators.items():
        yield _row(name, *_ends(counts))
    yield ""


def _ends(counts: Mapping[str, int]) -> Sequence[object]:
    return (*(counts.get(end, 0) for end in _ENDS), f"{share(counts)} %")


def _table(titles: tuple[str, ...]) -> Iterator[str]:
    yield _row(*titles)
    yield "|---" * len(titles) + "|"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
