"""``python -m bench.evidence``: write docs/evidence.md from the records; ``--check`` fails when it is stale.

The records: `fixtures/kernels/record.json` (runs on a GPU), and in `bench/results/` `corpus.json`, `replays.json`,
`mutants.json` and those of the deletions, `fences.json` and `waits.json`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from bench.corpus.lint_table import ratio, shown
from bench.evidence_mutants import deletion_section, sample_section
from bench.evidence_replays import replay_section

_ROOT = Path(__file__).resolve().parents[1]
_RESULTS = _ROOT / "bench/results"
PAGE = _ROOT / "docs/evidence.md"


@click.command(help=__doc__)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 when the page is not what it would write.")
def main(check: bool) -> None:
    """Write the page or compare it."""
    text = page()
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        raise click.ClickException("docs/evidence.md is stale: run python -m bench.evidence")


def page() -> str:
    """The whole page."""
    hardware = json.loads((_ROOT / "fixtures/kernels/record.json").read_text(encoding="utf-8"))
    parts = [
        "# Evidence",
        "",
        "Generated from records by `python -m bench.evidence`. Each section names the command that makes its record.",
        "",
        *_hardware(hardware),
    ]
    sections = (
        ("corpus", _corpus),
        ("replays", replay_section),
        ("mutants", sample_section),
        ("fences", deletion_section),
        ("waits", deletion_section),
    )
    for name, section in sections:
        record = _RESULTS / f"{name}.json"
        if record.is_file():
            parts += section(json.loads(record.read_text(encoding="utf-8")))
    return "\n".join(parts)


def _hardware(record: Mapping[str, Any]) -> Iterator[str]:
    machine, variants = record["machine"], record["variants"]
    yield "## On a GPU"
    yield ""
    device = machine["device"]
    yield (
        f"`python -m ptxlint.validate`: our kernels on an {device['name']}, driver {machine['driver']}, "
        f"{machine['launches']} launches of each variant. *Only with a delay*: right in every launch until one thread "
        "group was held up for 20 us before one instruction."
    )
    yield ""
    yield from _table(("variants", "all", "wrong result", "trap", "hang", "only with a delay", "never", "not run"))
    for title, is_right in (("right", True), ("with a fault", False)):
        kinds = Counter(_seen(entry) for entry in variants.values() if entry["is_right"] is is_right)
        columns = ("wrong", "trap", "hang", "delayed", "never", "not run")
        yield _row(title, sum(kinds.values()), *(kinds[kind] for kind in columns))
    yield ""


def _seen(entry: Mapping[str, Any]) -> str:
    """How a variant's run showed that it is wrong, if it did."""
    kind = str(entry["outcome"]["kind"])
    if kind != "right":
        return kind if kind in ("wrong", "trap", "hang") else "not run"
    return "delayed" if entry.get("delayed", {}).get("where") else "never"


def _corpus(record: Mapping[str, Any]) -> Iterator[str]:
    rows = record["projects"]
    yield "## Real modules"
    yield ""
    yield (
        "`python -m bench.corpus build` makes the modules from published packages, `python -m bench.corpus lint` lints "
        "those that ptxas accepts. Seconds are of one processor; the last columns are ptxlint's time for one second of "
        "ptxas, over the modules that ptxas assembled beside it, and the commit of the code that linted."
    )
    yield ""
    titles = ("project", "modules", "kernels", "clean", "findings", "not analysed")
    yield from _table((*titles, "seconds", "median", "90 %", "to ptxas", "code"))
    for row in rows:
        counts = (row[name] for name in ("modules", "kernels", "clean", "findings", "not analysed"))
        times = (shown(row["median"]), shown(row["p90"]), ratio(row))
        yield _row(row["project"], *map(shown, counts), shown(row["seconds"]), *times, row["code"] or "")
    yield ""
    yield "Findings, judged one by one in `bench/corpus/triage.toml`:"
    yield ""
    yield from _table(("rule", "severity", "judgement", "findings"))
    for key, count in rows[-1]["rules"].items():
        severity, rule, judgement = key.split(" ", 2)
        yield _row(rule, severity, judgement, count)
    yield ""


def _table(titles: tuple[str, ...]) -> Iterator[str]:
    yield _row(*titles)
    yield "|---" * len(titles) + "|"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main(prog_name="python -m bench.evidence")
