"""Static analyzer for the asynchronous machinery of NVIDIA kernels.

From Python: `ptxlint.check(path_or_text)` returns a `Report`; the names below are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptxlint.api import check
    from ptxlint.launch import Launch
    from ptxlint.result import Diagnosis, FileReport, KernelReport, Report, Verdict
    from ptxlint.rule import Severity

__version__ = "0.1.0"

__all__ = ["Diagnosis", "FileReport", "KernelReport", "Launch", "Report", "Severity", "Verdict", "__version__", "check"]

_HOMES = {
    "check": "api",
    "Launch": "launch",
    "Severity": "rule",
    **dict.fromkeys(("Diagnosis", "FileReport", "KernelReport", "Report", "Verdict"), "result"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
