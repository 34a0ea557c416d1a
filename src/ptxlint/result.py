"""What linting gives back: reports on files and kernels, findings stamped with all that a reader needs."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from ptxlint.classes import dataclass
from ptxlint.fault import InternalFault
from ptxlint.rule import Severity
from ptxlint.source import SourceLocation


class Verdict(StrEnum):
    """How a kernel ends. What was not analysed is never called clean."""

    CLEAN = "clean"
    FINDINGS = "findings"
    NOT_ANALYSED = "not-analysed"


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the PTX, from 1, with the part it plays; in a witness, also the agent that acts there."""

    line: int
    message: str
    agent: str = ""
    source: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A finding as it is reported: stamped with rule, kernel, the user's source line and a fingerprint.

    `excerpt` is the PTX line, empty when it was not kept.
    """

    rule: str
    code: str
    severity: Severity
    message: str
    kernel: str
    line: int
    column: int
    source: SourceLocation | None
    related: tuple[Place, ...]
    witness: tuple[Place, ...]
    assumptions: tuple[str, ...]
    help: str
    fingerprint: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The verdict on one kernel; `reason` says what of it was not analysed and why, empty when all was.

    `source` is where its code begins, as far as the PTX says.
    """

    name: str
    verdict: Verdict
    reason: str = ""
    source: SourceLocation | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """What the cache of a compiler says of a kernel in it: the compiler with its version, where the kernel is defined.

    `purpose` names what the kernel was generated for, empty when a person wrote it.
    """

    compiler: str
    source: SourceLocation | None = None
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file could not be read as PTX; line and column from 1, or 0 when it is about the whole file."""

    message: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class SourceComment:
    """A comment for ptxlint in the user's source, beside code that a module was compiled from.

    `remark` is what to say about it when no module of the run uses it.
    """

    location: SourceLocation
    remark: str
    is_used: bool


@dataclass(frozen=True, slots=True)
class FileReport:
    """All that was found in one file. With a `problem`, nothing else was.

    `remarks` name what was accepted without being known, such as an opcode of a newer ISA, and comments that silence
    nothing. `suppressed` counts the findings that comments silenced, `known` those that the baseline has. `copies` are
    files with the same kernel in a compiler's cache, which were not linted again.
    """

    path: str
    kernels: tuple[KernelReport, ...] = ()
    findings: tuple[Diagnosis, ...] = ()
    remarks: tuple[Place, ...] = ()
    problem: Problem | None = None
    faults: tuple[InternalFault, ...] = ()
    suppressed: int = 0
    known: int = 0
    comments: tuple[SourceComment, ...] = ()
    origin: Origin | None = None
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """A run over some files, in the order they were given."""

    files: tuple[FileReport, ...]

    @property
    def findings(self) -> Iterator[Diagnosis]:
        """Every finding, file by file."""
        return (finding for file in self.files for finding in file.findings)

    @property
    def kernels(self) -> Iterator[KernelReport]:
        """Every kernel, file by file."""
        return (kernel for file in self.files for kernel in file.kernels)

    @property
    def faults(self) -> Iterator[InternalFault]:
        """Every mistake of our own."""
        return (fault for file in self.files for fault in file.faults)

    def verdicts(self) -> dict[Verdict, int]:
        """How many kernels ended with each verdict."""
        ended = [kernel.verdict for kernel in self.kernels]
        return {verdict: ended.count(verdict) for verdict in Verdict}

    def severities(self) -> dict[Severity, int]:
        """How many findings there are of each severity."""
        found = [finding.severity for finding in self.findings]
        return {severity: found.count(severity) for severity in Severity}
