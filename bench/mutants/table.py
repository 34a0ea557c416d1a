"""The tables that the mutants give: by origin, by operator, by rule, and the missed ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.mutants.mutant import OWN, Mutant
from bench.mutants.trial import FOUND, ILLEGAL, MISSED, REDUNDANT, Outcome

ERROR, WARNING = "error", "warning"
COLUMNS = (ERROR, WARNING, MISSED, REDUNDANT, ILLEGAL)
"""How a mutant may end: found as an error, found as no more than a warning, or one of the other states."""

REAL = "real modules"
"""All modules of the corpus together, beside OWN."""

Outcomes = Mapping[Mutant, Outcome]


def figures(outcomes: Outcomes) -> dict[str, Any]:
    """What is counted; figures, and names of rules, operators and projects only."""
    origins = sorted({mutant.origin for mutant in outcomes}, key=lambda origin: (origin != OWN, origin))
    real = {mutant: outcome for mutant, outcome in outcomes.items() if mutant.origin != OWN}
    own = {mutant: outcome for mutant, outcome in outcomes.items() if mutant.origin == OWN}
    return {
        **_counts(outcomes),
        "origins": {
            **{name: _counts({m: outcome for m, outcome in outcomes.items() if m.origin == name}) for name in origins},
            REAL: _counts(real),
        },
        "operators": {OWN: _by_operator(own), REAL: _by_operator(real)},
        "rules": _by_rule(outcomes),
    }


def end_of(outcome: Outcome) -> str:
    """The column in which an outcome counts."""
    if outcome.state != FOUND:
        return outcome.state
    return ERROR if any(rule.endswith(f":{ERROR}") for rule in outcome.rules) else WARNING


def ends(outcomes: Outcomes) -> dict[str, int]:
    """How many mutants ended in each column, zeros left out."""
    counts = Counter(end_of(outcome) for outcome in outcomes.values())
    return {column: counts[column] for column in COLUMNS if counts[column]}


def share(counts: Mapping[str, int]) -> float:
    """Per cent of the mutants that are a fault which were found."""
    found = counts.get(ERROR, 0) + counts.get(WARNING, 0)
    faults = found + counts.get(MISSED, 0)
    return round(100 * found / faults, 1) if faults else 100.0


def render(summary: Mapping[str, Any], outcomes: Outcomes) -> str:
    """The tables as text."""
    lines = [_line("origin", COLUMNS, "found", "modules")]
    for name, row in [*summary["origins"].items(), ("all", summary)]:
        lines.append(_line(name, [row.get(column, 0) for column in COLUMNS], f"{share(row)}%", row["modules"]))
    for origin, operators in summary["operators"].items():
        lines += ["", _line(f"operator, {origin}", COLUMNS, "found")] if operators else []
        for name, counts in operators.items():
            lines.append(_line(name, [counts.get(column, 0) for column in COLUMNS], f"{share(counts)}%"))
    lines += ["", _line("rule", (ERROR, WARNING), OWN, REAL)]
    for name, row in summary["rules"].items():
        lines.append(_line(name, [row.get(column, 0) for column in (ERROR, WARNING, OWN, REAL)]))
    lines += ["", *(missed_line(*item) for item in _in_order(outcomes) if item[1].state == MISSED)]
    return "\n".join(lines)


def missed_lines(outcomes: Outcomes) -> Sequence[dict[str, Any]]:
    """The missed ones as data."""
    return [
        {"module": mutant.module, "operator": mutant.operator, "line": mutant.line, "reason": outcome.reason}
        for mutant, outcome in _in_order(outcomes)
        if outcome.state == MISSED
    ]


def redundant_lines(outcomes: Outcomes) -> Sequence[dict[str, Any]]:
    """The redundant ones as data, those of one module, operator and argument together."""
    lines: dict[tuple[str, str, str], list[int]] = {}
    for mutant, outcome in _in_order(outcomes):
        if outcome.state == REDUNDANT:
            lines.setdefault((mutant.module, mutant.operator, outcome.reason), []).append(mutant.line)
    return [
        {"module": module, "operator": operator, "lines": places, "reason": reason}
        for (module, operator, reason), places in lines.items()
    ]


def missed_line(mutant: Mutant, outcome: Outcome) -> str:
    """What is printed of a missed mutant."""
    reason = f" ({outcome.reason})" if outcome.reason else ""
    return f"missed {mutant.operator} {mutant.module}.ptx:{mutant.line} {mutant.opcode}{reason}"


def _counts(outcomes: Outcomes) -> dict[str, Any]:
    row = ends(outcomes)
    legal = len(outcomes) - row.get(ILLEGAL, 0)
    return {"modules": len({mutant.module for mutant in outcomes}), "mutants": legal, **row, "share": share(row)}


def _by_rule(outcomes: Outcomes) -> dict[str, dict[str, int]]:
    """How many mutants each rule found, by severity and by whose module."""
    rows: dict[str, Counter[str]] = {}
    for mutant, outcome in outcomes.items():
        for found in outcome.rules:
            rule, _, severity = found.partition(":")
            rows.setdefault(rule, Counter()).update((severity, OWN if mutant.origin == OWN else REAL))
    return {rule: dict(sorted(rows[rule].items())) for rule in sorted(rows)}


def _by_operator(outcomes: Outcomes) -> dict[str, dict[str, int]]:
    operators = sorted({mutant.operator for mutant in outcomes})
    return {name: ends({m: outcome for m, outcome in outcomes.items() if m.operator == name}) for name in operators}


def _in_order(outcomes: Outcomes) -> list[tuple[Mutant, Outcome]]:
    return sorted(outcomes.items(), key=lambda item: (item[0].module, item[0].line, item[0].operator))


def _line(name: str, cells: Sequence[object], *more: object) -> str:
    return f"{name:30}" + "".join(f"{cell!s:>14}" for cell in (*cells, *more))
