"""The table of the replayed bugs, and what of it is kept as a record."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from bench.replays.replay import Replay
from bench.replays.trial import Outcome

_TITLES = ("report", "class", "dialect", "rule", "lines", "before", "after")


def figures(outcomes: Mapping[Replay, Outcome]) -> dict[str, Any]:
    """The record: one row for each pair, and counts by class and by dialect."""
    return {
        "pairs": len(outcomes),
        "reports": len({replay.report for replay in outcomes}),
        "told apart": sum(_is_told_apart(outcome) for outcome in outcomes.values()),
        "classes": _counts(outcomes, "kind"),
        "dialects": _counts(outcomes, "dialect"),
        "rows": [_row(replay, outcome) for replay, outcome in outcomes.items()],
    }


def _is_told_apart(outcome: Outcome) -> bool:
    return outcome.is_found and outcome.is_silent


def _counts(outcomes: Mapping[Replay, Outcome], attribute: str) -> dict[str, dict[str, int]]:
    pairs = Counter[str](getattr(replay, attribute) for replay in outcomes)
    good = Counter[str](getattr(replay, attribute) for replay, outcome in outcomes.items() if _is_told_apart(outcome))
    return {name: {"pairs": count, "told apart": good[name]} for name, count in sorted(pairs.items())}


def _before(outcome: Outcome) -> str:
    """`found`; `named` where an error elsewhere names the place of the fix, `far` where it does not; `missed`.

    A severity where the rule gives no error, but a warning or information.
    """
    if outcome.is_found:
        return "found"
    if outcome.is_named:
        return "named"
    return outcome.milder or "missed" if outcome.distance is None else "far"


def _row(replay: Replay, outcome: Outcome) -> dict[str, Any]:
    return {
        "pair": replay.slug,
        "report": replay.report,
        "class": replay.kind,
        "dialect": replay.dialect,
        "rule": replay.rule,
        "lines": outcome.distance,
        "before": _before(outcome),
        "after": "silent" if outcome.is_silent else ", ".join((*outcome.stray, *outcome.reasons)),
        "also": list(outcome.others),
        **({"open": replay.open} if replay.open else {}),
    }


def render(record: Mapping[str, Any]) -> str:
    """The record as text: all pairs, then the shares by class and by dialect."""
    cells = [_TITLES, *(tuple(_cell(row[title]) for title in _TITLES) for row in record["rows"])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([*lines, "", *_shares("class", record["classes"]), "", *_shares("dialect", record["dialects"])])


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _shares(title: str, counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    total = {key: sum(count[key] for count in counts.values()) for key in ("pairs", "told apart")}
    yield f"{title:20}{'pairs':>8}{'told apart':>12}{'share':>8}"
    for name, count in (*counts.items(), ("all", total)):
        share = 100 * count["told apart"] / count["pairs"] if count["pairs"] else 0
        yield f"{name:20}{count['pairs']:8}{count['told apart']:12}{share:7.0f}%"
