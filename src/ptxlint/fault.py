"""Mistakes of our own: kept as data, so that one of them costs a rule on one kernel and nothing else."""

from __future__ import annotations

import sys
from types import TracebackType

from ptxlint import __version__
from ptxlint.classes import dataclass
from ptxlint.source import PtxSyntaxError


@dataclass(frozen=True, slots=True)
class InternalFault:
    """An exception that a rule or an analysis let out. `kernel` and `rule` are empty where it was in neither."""

    file: str
    kernel: str
    rule: str
    error: str
    traceback: str

    def __str__(self) -> str:
        where = [f"{self.file}"]
        if self.kernel:
            where.append(f"kernel {self.kernel}")
        if self.rule:
            where.append(f"rule {self.rule}")
        return f"{', '.join(where)}: {self.error}"


def request() -> str:
    """Asks the user to report a fault, and says with what."""
    python = ".".join(map(str, sys.version_info[:3]))
    return (
        f"Please report it as a bug of ptxlint {__version__} (Python {python}, {sys.platform}), "
        "with the PTX and with what the same command prints when --debug is added."
    )


class Guard:
    """Turns what escapes the block into an `InternalFault` in `faults`; the user's own mistakes pass through.

    Of a mistake in what many rules ask for, the fault of the first rule on a kernel is kept.
    """

    def __init__(self, faults: list[InternalFault], file: str, kernel: str = "", rule: str = "") -> None:
        self.faults = faults
        self.place = (file, kernel, rule)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, PtxSyntaxError):
            return False
        file, kernel, rule = self.place
        error.add_note(f"while linting {file}, kernel {kernel or '-'}, rule {rule or '-'}")
        said = f"{type(error).__name__}: {error}"
        if all((fault.file, fault.kernel, fault.error) != (file, kernel, said) for fault in self.faults):
            self.faults.append(InternalFault(file, kernel, rule, said, _text(error)))
        return True


def _text(error: Exception) -> str:
    from traceback import format_exception

    return "".join(format_exception(error))
