"""What a rule is and what it yields."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from ptxlint.classes import dataclass
from ptxlint.source import Span

if TYPE_CHECKING:
    from ptxlint.facts import Facts


class Severity(StrEnum):
    """How sure a finding is. DESIGN: *error* holds for every tried input, *warning* rests on a named assumption."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class IsaRef:
    """A section of the PTX ISA by its title (the numbers move between releases), and since which version it applies."""

    section: str
    since: str


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that belongs to a finding, with the part it plays."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a witness: who did what, where, and what the barrier looked like after it."""

    agent: str
    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. The engine adds rule, file and kernel; a rule says the rest.

    `severity` overrides the rule's own when an assumption weakens it. `help` is one sentence: how to fix it.
    """

    span: Span
    message: str
    help: str = ""
    related: tuple[Related, ...] = ()
    witness: tuple[Step, ...] = ()
    assumptions: tuple[str, ...] = ()
    severity: Severity | None = None


class Rule:
    """One kind of mistake: its docs, its examples and its logic, in a file named like the class.

    A subclass states `code`, `severity`, `isa`, `good` and `bad`, and implements `check`. The first paragraph of its
    docstring is the summary; `Why:`, `Fix:` and `Not reported:` paragraphs follow. `default` False turns it off unless
    it is selected. Raises TypeError at import when something is missing.
    """

    code: ClassVar[str]
    severity: ClassVar[Severity]
    isa: ClassVar[IsaRef]
    good: ClassVar[tuple[str, ...]]
    bad: ClassVar[tuple[str, ...]]
    default: ClassVar[bool] = True
    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        file = getattr(sys.modules.get(cls.__module__), "__file__", cls.__module__)
        missing = [field for field in ("code", "severity", "isa", "good", "bad") if field not in cls.__dict__]
        if not cls.__doc__:
            missing.append("docstring")
        if missing:
            raise TypeError(f"{file}: rule {cls.name} lacks {', '.join(missing)}")
        if not re.fullmatch(r"[A-Z]+\d{3}", cls.code):
            raise TypeError(f"{file}: rule {cls.name} has the malformed code {cls.code!r}")

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Yield what is wrong with the kernel that `facts` describes. Pure: no state, no output."""
        raise NotImplementedError
