"""The judgements on what was found in the corpus: `triage.toml`, one table a judgement.

[[finding]]
judgement = "true"            # true | false | contested
reason = "..."
project = "gluon_hopper"      # every key below is optional; globs, and all that are given must match
module = "matmul_*"
kernel = "*"
rule = "wait-without-arrival"
source = "kernel.py:120"      # a frame of the finding's source chain
fingerprint = "0123456789abcdef"
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from bench.corpus.linted import Found, Linted

STORE = Path(__file__).with_name("triage.toml")


class Judgement(StrEnum):
    """What a person found when they looked at a finding."""

    TRUE = "true"
    FALSE = "false"
    CONTESTED = "contested"


class TriageError(ValueError):
    """An entry of the triage file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A judgement and the findings that it is about."""

    judgement: Judgement
    reason: str
    rule: str
    project: str = "*"
    module: str = "*"
    kernel: str = "*"
    source: str = "*"
    fingerprint: str = "*"

    def covers(self, linted: Linted, found: Found) -> bool:
        """Whether the entry speaks of this finding."""
        pairs = (
            (found.rule, self.rule),
            (linted.project, self.project),
            (linted.module, self.module),
            (found.kernel, self.kernel),
            (found.fingerprint, self.fingerprint),
        )
        is_there = self.source == "*" or any(fnmatchcase(frame, self.source) for frame in found.source)
        return is_there and all(fnmatchcase(value, pattern) for value, pattern in pairs)


def read_triage(store: Path = STORE) -> tuple[Entry, ...]:
    """The entries in their order; the first that covers a finding decides.

    Raises: TriageError
    """
    tables = tomllib.loads(store.read_text(encoding="utf-8")).get("finding", [])
    return tuple(_entry(number, table) for number, table in enumerate(tables, start=1))


def judgement(entries: Sequence[Entry], linted: Linted, found: Found) -> Judgement | None:
    """What the triage file says of a finding; None when nobody has looked at it."""
    return next((entry.judgement for entry in entries if entry.covers(linted, found)), None)


def _entry(number: int, table: dict[str, str]) -> Entry:
    try:
        judged = Judgement(table["judgement"])
        entry = Entry(judged, **{key: text for key, text in table.items() if key != "judgement"})
    except (KeyError, TypeError, ValueError) as error:
        raise TriageError(f"entry {number} of the triage file: {error}") from error
    if not entry.reason.strip():
        raise TriageError(f"entry {number} of the triage file gives no reason")
    return entry
