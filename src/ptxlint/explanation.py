"""A rule's documentation, taken from its class: for `explain`, the rule list and the generated pages."""

from __future__ import annotations

import inspect
from textwrap import indent
from typing import Any

from ptxlint.classes import dataclass
from ptxlint.rule import Rule, Severity


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a rule says of itself. `details` are the paragraphs of its docstring after the summary."""

    name: str
    code: str
    severity: Severity
    is_default: bool
    summary: str
    details: str
    section: str
    since: str
    good: tuple[str, ...]
    bad: tuple[str, ...]

    @classmethod
    def of(cls, rule: type[Rule]) -> Explanation:
        """The explanation of the rule."""
        summary, _, details = inspect.cleandoc(rule.__doc__ or "").partition("\n\n")
        return cls(
            rule.name,
            rule.code,
            rule.severity,
            rule.default,
            " ".join(summary.split()),
            details,
            rule.isa.section,
            rule.isa.since,
            rule.good,
            rule.bad,
        )

    def text(self) -> str:
        """The explanation for a terminal."""
        off = "" if self.is_default else ", off unless selected"
        parts = [
            f"{self.name} ({self.code}, {self.severity}{off})",
            self.summary,
            self.details,
            *(f"Wrong:\n\n{indent(example.strip(), '    ')}" for example in self.bad),
            *(f"Right:\n\n{indent(example.strip(), '    ')}" for example in self.good),
            f"PTX ISA: {self.section} (since {self.since})",
        ]
        return "\n\n".join(part for part in parts if part)

    def markdown(self) -> str:
        """The explanation for a web page."""
        parts = [
            f"# {self.name}",
            f"`{self.code}`, {self.severity}{'' if self.is_default else ', off unless selected'}",
            self.summary,
            self.details,
            *(f"Wrong:\n\n```ptx\n{example.strip()}\n```" for example in self.bad),
            *(f"Right:\n\n```ptx\n{example.strip()}\n```" for example in self.good),
            f"PTX ISA: *{self.section}* (since {self.since})",
        ]
        return "\n\n".join(part for part in parts if part)

    def document(self) -> dict[str, Any]:
        """The explanation as JSON values."""
        return {
            "name": self.name,
            "code": self.code,
            "severity": str(self.severity),
            "default": self.is_default,
            "summary": self.summary,
            "details": self.details,
            "isa": {"section": self.section, "since": self.since},
            "good": list(self.good),
            "bad": list(self.bad),
        }
