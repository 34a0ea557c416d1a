"""The mutants that are no fault: `redundant.toml`, each argued for.

[[redundant]]
reason = "..."
module = "fixtures/ring.*"    # globs; all that are given must match
operator = "drop-init-fence"
opcode = "*"
lines = [120, 131]            # of the PTX; all when absent
after = "mbarrier.init"       # a regular expression, found in the four instructions before the mutated one
then = "mbarrier.inval"       # the same of the three after it
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bench.mutants.mutant import Mutant

STORE = Path(__file__).with_name("redundant.toml")
_BEFORE, _BEHIND = 4, 3


@dataclass(frozen=True, slots=True)
class Entry:
    """An argument and the mutants that it is about."""

    reason: str
    operator: str
    module: str = "*"
    opcode: str = "*"
    lines: tuple[int, ...] = ()
    after: str = ""
    then: str = ""

    def covers(self, mutant: Mutant) -> bool:
        """Whether the argument is about this mutant."""
        pairs = ((mutant.operator, self.operator), (mutant.module, self.module), (mutant.opcode, self.opcode))
        is_there = (not self.lines or mutant.line in self.lines) and self._stands_in(mutant)
        return is_there and all(fnmatchcase(value, pattern) for value, pattern in pairs)

    def _stands_in(self, mutant: Mutant) -> bool:
        around = ((self.after, mutant.before(_BEFORE)), (self.then, mutant.behind(_BEHIND)))
        return all(re.search(wanted, "\n".join(lines)) for wanted, lines in around if wanted)


def read_redundant(store: Path = STORE) -> tuple[Entry, ...]:
    """The arguments."""
    tables = tomllib.loads(store.read_text(encoding="utf-8")).get("redundant", [])
    return tuple(Entry(**{**table, "lines": tuple(table.get("lines", ()))}) for table in tables)


def argument(mutant: Mutant, entries: Sequence[Entry]) -> str | None:
    """Why the mutant is no fault, when one of the arguments is about it."""
    return next((" ".join(entry.reason.split()) for entry in entries if entry.covers(mutant)), None)
