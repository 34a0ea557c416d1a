"""`python -m ptxlint.validate.table`: what testing, the sanitizer and ptxlint find of each fault, side by side.

Markdown. Exit status 1 when ptxlint misses a wrong variant or finds something in a right one.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxlint import registry
from ptxlint.launch import Dimensions, Launch
from ptxlint.lint import Options, lint_text
from ptxlint.result import Diagnosis
from ptxlint.validate import record, sanitizer
from ptxlint.validate.fixture import Fixture, Variant, load_fixtures

FAMILIES = {
    "PTX1": "mbarriers: phases, arrivals, bytes, initialization",
    "PTX2": "layout and alignment of shared memory",
    "PTX3": "proxy fences and tensor maps",
    "PTX4": "groups of cp.async and bulk copies",
    "PTX5": "wgmma",
    "PTX6": "tcgen05 (not run: needs compute capability 10)",
    "PTX7": "barriers of CTA and cluster",
    "PTX8": "launch and registers",
    "PTX9": "hand-over of shared memory slots",
}
"""Kinds of faults, by the beginning of their rules' codes."""

VOLATILE = re.compile(r"0x[0-9a-f]+|\d+")

Entries = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Row:
    """One variant: what testing saw, what only the sanitizer's run of this variant says, and what ptxlint finds."""

    variant: Variant
    testing: str
    is_loud: bool
    sanitizer: str
    found: tuple[str, ...]
    is_met: bool


def row_of(fixture: Fixture, variant: Variant, entries: Entries) -> Row:
    """The row of a variant that is in the record."""
    entry = entries[variant.id]
    findings = findings_of(fixture, variant)
    return Row(
        variant,
        record.described(entry),
        entry["outcome"]["kind"] in ("wrong", "trap", "hang"),
        sanitizer_of(fixture, variant, entries),
        tuple(sorted({finding.rule for finding in findings})),
        is_as_marked(variant, findings),
    )


def sanitizer_of(fixture: Fixture, variant: Variant, entries: Entries) -> str:
    """The first report that the sanitizer gives of the variant and of no right variant of the kernel."""
    usual = {kind for other in fixture.variants if other.right for kind in reports(entries[other.id])}
    own = {kind: text for kind, text in reports(entries[variant.id]).items() if variant.right or kind not in usual}
    return next(iter(own.values()), "")


def reports(entry: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """What each check said first, by the check and the text without its numbers."""
    said = entry.get("sanitizer", {})
    ordered = [(check, said[check]) for check in sanitizer.CHECKS if check in said]
    return {
        (check, VOLATILE.sub("#", report["first"])): f"{check}: {report['first'].partition(' at ')[0]}"
        for check, report in ordered
        if report["first"]
    }


def findings_of(fixture: Fixture, variant: Variant) -> tuple[Diagnosis, ...]:
    """What the default rules find, under the launch of the fixture."""
    launch = Launch(
        block=extents(fixture.launch.block),
        cluster=extents(fixture.launch.cluster),
        grid=extents(fixture.launch.grid),
        dynamic_shared=fixture.launch.dynamic_smem,
    )
    return lint_text(variant.ptx.read_text(), str(variant.ptx), Options(registry.select(), launch)).findings


def extents(values: tuple[int, ...]) -> Dimensions:
    """Three extents."""
    x, y, z = (*values, 1, 1)[:3]
    return (x, y, z)


def is_as_marked(variant: Variant, findings: tuple[Diagnosis, ...]) -> bool:
    """Whether every marked rule is found on a marked line, and nothing but these and the variant's `also`."""
    expected = {marker.rule for marker in variant.markers}
    met = {
        marker.rule for marker in variant.markers for finding in findings if is_at(finding, marker.line, marker.rule)
    }
    return met == expected and all(finding.rule in expected | variant.also for finding in findings)


def is_at(finding: Diagnosis, line: int, rule: str) -> bool:
    """Whether the rule's finding has a source frame on the line."""
    return (
        finding.rule == rule
        and finding.source is not None
        and any(frame.line == line for frame in finding.source.frames())
    )


def markdown(rows: list[Row]) -> str:
    """The wrong variants in a table, and the sums."""
    wrong = [row for row in rows if not row.variant.right]
    right = [row for row in rows if row.variant.right]
    run = [row for row in wrong if record.NOT_RUN not in row.testing]
    delayed = [row for row in run if "with a delay" in row.testing]
    lines = [
        "| kernel, fault | testing | compute-sanitizer | ptxlint |",
        "|---|---|---|---|",
        *(
            f"| {row.variant.id}: {row.variant.about} | {row.testing} | {row.sanitizer or 'nothing'} | "
            f"{', '.join(row.found) or 'nothing'}{'' if row.is_met else ' (not as marked)'} |"
            for row in wrong
        ),
        "",
        f"Testing finds {sum(row.is_loud for row in run)} of {len(run)}, {len(delayed)} more with a delay put in; "
        f"the sanitizer {sum(bool(row.sanitizer) for row in run)} of {len(run)}; "
        f"ptxlint {sum(row.is_met for row in wrong)} of {len(wrong)} as marked, "
        f"and something in {sum(bool(row.found) for row in right)} of {len(right)} right variants.",
    ]
    return "\n".join(lines)


def by_family(rows: list[Row]) -> Iterator[dict[str, str | int]]:
    """For each kind of fault how many variants have one, how many ran, and by whom they are found.

    `at once`: a launch is wrong, traps or hangs; `delayed`: one does with a delay put in.
    """
    wrong = [row for row in rows if not row.variant.right]
    for beginning, family in FAMILIES.items():
        own = [row for row in wrong if _code(row).startswith(beginning)]
        run = [row for row in own if record.NOT_RUN not in row.testing]
        if own:
            yield {
                "family": family,
                "faults": len(own),
                "run": len(run),
                "at once": sum(row.is_loud for row in run),
                "delayed": sum("with a delay" in row.testing for row in run),
                "sanitizer": sum(bool(row.sanitizer) for row in run),
                "ptxlint": sum(row.is_met for row in own),
            }


def _code(row: Row) -> str:
    """The code of the rule that is marked first."""
    return registry.named(row.variant.markers[0].rule).code


def main() -> int:
    """Prints the table of the committed record."""
    parser = argparse.ArgumentParser(prog="python -m ptxlint.validate.table", description=__doc__)
    parser.add_argument("--fixtures", type=Path, default=Path("fixtures/kernels"))
    parser.add_argument("--record", type=Path, default=Path("fixtures/kernels/record.json"))
    parser.add_argument("--summary", type=Path, help="also write the sums for each kind of fault to this JSON file")
    options = parser.parse_args()
    entries = record.read(options.record)["variants"]
    fixtures = list(load_fixtures(options.fixtures))
    rows = [row_of(fixture, variant, entries) for fixture in fixtures for variant in fixture.variants]
    print(markdown(rows))
    if options.summary:
        right = [row for row in rows if row.variant.right]
        sums = {
            "families": list(by_family(rows)),
            "right": {
                "variants": len(right),
                "at once": sum(row.is_loud for row in right),
                "delayed": sum("with a delay" in row.testing for row in right),
                "ptxlint": sum(bool(row.found) for row in right),
            },
        }
        options.summary.write_text(json.dumps(sums, indent=1) + "\n")
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
