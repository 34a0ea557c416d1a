"""The tables that the mutants give: by operator, by rule, and the missed ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.mutants.mutant import Mutant
from bench.mutants.trial import FOUND, ILLEGAL, MISSED, REDUNDANT, Outcome

_STATES = (FOUND, MISSED, REDUNDANT, ILLEGAL)


def figures(outcomes: Mapping[Mutant, Outcome]) -> dict[str, Any]:
    """What is counted; figures, names of rules, of operators and of our own modules only."""
    by_operator: dict[str, Counter[str]] = {}
    by_rule: Counter[str] = Counter()
    for mutant, outcome in outcomes.items():
        by_operator.setdefault(mutant.operator, Counter())[outcome.state] += 1
        by_rule.update({rule.partition(":")[0] for rule in outcome.rules})
    errors = sum(any(rule.endswith(":error") for rule in outcome.rules) for outcome in outcomes.values())
    counts = Counter(outcome.state for outcome in outcomes.values())
    return {
        "modules": len({mutant.module for mutant in outcomes}),
        "mutants": len(outcomes) - counts[ILLEGAL],
        **{state: counts[state] for state in _STATES},
        "found as error": errors,
        "share": share(counts),
        "operators": {name: dict(by_operator[name]) for name in sorted(by_operator)},
        "rules": dict(sorted(by_rule.items())),
    }


def share(counts: Mapping[str, int]) -> float:
    """Per cent of the mutants that are a fault which were found."""
    faults = counts.get(FOUND, 0) + counts.get(MISSED, 0)
    return round(100 * counts.get(FOUND, 0) / faults, 1) if faults else 100.0


def render(summary: Mapping[str, Any], outcomes: Mapping[Mutant, Outcome]) -> str:
    """The tables as text."""
    lines = [f"{'operator':24}" + "".join(f"{state:>10}" for state in _STATES) + f"{'share':>8}"]
    for name, counts in [*summary["operators"].items(), ("all", summary)]:
        cells = "".join(f"{counts.get(state, 0):10}" for state in _STATES)
        lines.append(f"{name:24}{cells}{share(counts):7}%")
    lines += ["", *(f"{count:6} found by {rule}" for rule, count in summary["rules"].items()), ""]
    lines += [missed_line(mutant, outcome) for mutant, outcome in outcomes.items() if outcome.state == MISSED]
    lines.append(f"{summary['modules']} modules, {summary['mutants']} mutants, {summary['found as error']} as errors")
    return "\n".join(lines)


def missed_lines(outcomes: Mapping[Mutant, Outcome]) -> Sequence[dict[str, Any]]:
    """The missed ones as data: module, operator, line."""
    return [
        {"module": mutant.module, "operator": mutant.operator, "line": mutant.line, "reason": outcome.reason}
        for mutant, outcome in outcomes.items()
        if outcome.state == MISSED
    ]


def missed_line(mutant: Mutant, outcome: Outcome) -> str:
    """What is printed of a missed mutant."""
    reason = f" ({outcome.reason})" if outcome.reason else ""
    return f"missed {mutant.operator} {mutant.module}.ptx:{mutant.line} {mutant.opcode}{reason}"
