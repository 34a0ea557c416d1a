"""Adds a page for each rule, made from its class, and the table of all rules."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files

from ptxlint import registry
from ptxlint.explanation import Explanation


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """The text of each generated page by its path."""
    explanations = [Explanation.of(rule) for rule in registry.rules()]
    texts = {f"rules/{explanation.name}.md": explanation.markdown() for explanation in explanations}
    return {"rules/index.md": _table(explanations), **texts}


def _table(explanations: list[Explanation]) -> str:
    rows = [f"| {e.code} | [{e.name}]({e.name}.md) | {e.severity} | {e.summary} |" for e in explanations]
    return "\n".join(("# Rules", "", "| code | rule | severity | finds |", "|---|---|---|---|", *rows, ""))
