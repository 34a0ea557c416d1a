"""The tables of `python -m bench.corpus lint`, and the same figures as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from bench.corpus.linted import Found, Linted
from bench.corpus.triage import Entry, judgement
from bench.percentile import percentile

UNJUDGED = "not judged"


_SUMMED = (
    "modules", "kernels", "clean", "findings", "not analysed", "faults", "seconds", "ptxas modules", "ptxas seconds",
    "seconds beside ptxas",
)  # fmt: skip


def figures(name: str, modules: Sequence[Linted], entries: Sequence[Entry], code: str = "") -> dict[str, Any]:
    """What is counted of one project; figures and names of rules only. `code` is the commit of what looked."""
    kernels = [kernel for module in modules for kernel in module.kernels]
    timed = [module for module in modules if module.ptxas_seconds is not None]
    seconds = [module.seconds for module in modules]
    judged = Counter(_judged(entries, module, found) for module in modules for found in module.findings)
    return {
        "project": name,
        "modules": len(modules),
        "kernels": len(kernels),
        "clean": sum(verdict == "clean" for _, verdict, _ in kernels),
        "findings": sum(verdict == "findings" for _, verdict, _ in kernels),
        "not analysed": sum(verdict == "not-analysed" for _, verdict, _ in kernels),
        "reasons": dict(Counter(_general(reason) for _, _, reason in kernels if reason).most_common()),
        "faults": sum(len(module.faults) for module in modules),
        "rules": {
            " ".join(key): count for key, count in sorted(judged.items(), key=lambda pair: (pair[0][1], pair[0]))
        },
        "seconds": round(sum(seconds), 2),
        "median": round(median(seconds), 3) if seconds else 0,
        "p90": round(percentile(seconds, 90), 3) if seconds else 0,
        "ptxas modules": len(timed),
        "ptxas seconds": round(sum(module.ptxas_seconds or 0 for module in timed), 2),
        "seconds beside ptxas": round(sum(module.seconds for module in timed), 2),
        "code": code,
    }


def total(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of all projects together; it has no median of its own."""
    summed = {key: round(sum(row[key] for row in rows), 2) if rows else 0 for key in _SUMMED}
    counted = {key: dict(sum((Counter(row[key]) for row in rows), Counter())) for key in ("reasons", "rules")}
    counted["rules"] = dict(sorted(counted["rules"].items(), key=lambda pair: (pair[0].split(" ", 2)[1], pair[0])))
    return {"project": "all", **summed, **counted, "median": None, "p90": None, "code": None}


def merged(earlier: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by project: the new ones, and earlier ones of projects that these are not about, then their total."""
    known = {row["project"]: row for row in (*earlier, *rows) if row["project"] != "all"}
    kept = [known[name] for name in sorted(known)]
    return [*kept, total(kept)]


def render(rows: Sequence[dict[str, Any]]) -> str:
    """The projects in columns, then the findings by rule, then why kernels were not analysed."""
    columns = ("modules", "kernels", "clean", "findings", "not analysed", "faults", "seconds", "median", "p90")
    cells = [["project", *columns, "to ptxas"]]
    cells += [[row["project"], *(shown(row[column]) for column in columns), ratio(row)] for row in rows]
    widths = [max(len(line[at]) for line in cells) for at in range(len(cells[0]))]
    lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
    for row in rows[:-1]:
        lines += [f"{row['project']}: {count:4} {key}" for key, count in row["rules"].items()]
        lines += [f"{row['project']}: {count:4} not analysed: {reason}" for reason, count in row["reasons"].items()]
    return "\n".join(lines)


def shown(figure: float | None) -> str:
    """A figure as the tables show it."""
    return "-" if figure is None else f"{figure:,}"


def ratio(row: dict[str, Any]) -> str:
    """Seconds of ptxlint for one of ptxas, over the modules that ptxas assembled beside it."""
    return f"{row['seconds beside ptxas'] / row['ptxas seconds']:.2f}" if row["ptxas seconds"] else "-"


def condemned(modules: Iterable[Linted], entries: Sequence[Entry]) -> list[tuple[Linted, Found, str]]:
    """The errors that nobody has judged, or that were judged false."""
    return [
        (module, found, verdict)
        for module in modules
        for found in module.findings
        if found.severity == "error" and (verdict := _judged(entries, module, found)[2]) in (UNJUDGED, "false")
    ]


def _judged(entries: Sequence[Entry], module: Linted, found: Found) -> tuple[str, str, str]:
    return (found.severity, found.rule, judgement(entries, module, found) or UNJUDGED)


def _general(reason: str) -> str:
    """The reason without the figures that differ from kernel to kernel."""
    return "".join("#" if letter.isdigit() else letter for letter in reason).replace("##", "#")[:80]
