"""Adds a page for each rule, made from its class and the record of the hardware runs, and the table of all rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from ptxlint import registry
from ptxlint.explanation import Explanation
from ptxlint.validate import record
from ptxlint.validate.fixture import load_fixtures
from ptxlint.validate.table import sanitizer_of

KERNELS = Path(__file__).parent.parent / "fixtures" / "kernels"


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """The text of each generated page by its path."""
    explanations = [Explanation.of(rule) for rule in registry.rules()]
    seen = hardware()
    texts = {f"rules/{each.name}.md": "\n\n".join((each.markdown(), *seen.get(each.name, ()))) for each in explanations}
    return {"rules/index.md": _table(explanations), **texts}


def hardware() -> dict[str, tuple[str, str]]:
    """For each rule that was run on hardware: the heading and the table of what was seen, as Markdown.

    A fault counts for the rules that are marked in its source; a record of other PTX than that of today is left out.
    """
    recorded = record.read(KERNELS / "record.json")
    machine, entries = recorded["machine"], recorded["variants"]
    rows: dict[str, list[str]] = {}
    for fixture in load_fixtures(KERNELS):
        for variant in fixture.variants:
            entry = entries.get(variant.id)
            if variant.right or entry is None or entry["ptx"] != record.digest(variant):
                continue
            testing = record.described(entry)
            sanitizer = (
                "" if testing.startswith(record.NOT_RUN) else sanitizer_of(fixture, variant, entries) or "nothing"
            )
            row = f"| {variant.about} (`{variant.id}`) | {testing} | {sanitizer} |"
            for rule in sorted({marker.rule for marker in variant.markers}):
                rows.setdefault(rule, []).append(row)
    return {rule: ("## On hardware", "\n".join((*_head(machine), *found))) for rule, found in rows.items()}


def _head(machine: dict[str, Any]) -> Iterator[str]:
    yield f"Kernels with this fault on an {machine['device']['name']}, {machine['launches']} launches each:"
    yield ""
    yield "| fault | testing | compute-sanitizer |"
    yield "|---|---|---|"


def _table(explanations: list[Explanation]) -> str:
    rows = [f"| {e.code} | [{e.name}]({e.name}.md) | {e.severity} | {e.summary} |" for e in explanations]
    return "\n".join(("# Rules", "", "| code | rule | severity | finds |", "|---|---|---|---|", *rows, ""))
