"""For pytest: `--ptxlint` lints the kernels that the tests compile, and the fixture `ptxlint_clean` checks one.

pytest loads this in every session of an environment that has ptxlint, so it imports the rest when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ptxlint.integrations.watch import Watch
    from ptxlint.result import Report

COMPILERS = {"triton": "triton", "nvidia_cutlass_dsl": "cute_dsl", "tilelang": "tilelang"}
"""The packages of compilers that can be watched, and our modules for them."""

COLLECTION = "(collection)"
"""Stands for the test when a kernel was compiled outside of any."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("ptxlint").addoption(
        "--ptxlint", action="store_true", help="Lint the kernels that Triton, CuTe DSL and TileLang compile."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start watching the compilers that are installed, before a test file imports them."""
    if config.getoption("--ptxlint"):
        config.pluginmanager.register(_Session(), "ptxlint-session")


@pytest.fixture
def ptxlint_clean() -> Callable[..., Report]:
    """A function that fails the test unless a kernel is clean; it takes the kernel and what `ptxlint.check` takes."""
    import ptxlint
    from ptxlint.integrations.kernel import ptx_of
    from ptxlint.integrations.watch import is_wrong, shown

    def check(kernel: object, **settings: Any) -> Report:
        report = ptxlint.check(ptx_of(kernel), **settings)
        for file in report.files:
            if is_wrong(file):
                pytest.fail(shown(file), pytrace=False)
        for found in report.kernels:
            if found.verdict is ptxlint.Verdict.NOT_ANALYSED:
                pytest.fail(f"kernel {found.name} was not analysed: {found.reason}", pytrace=False)
        return report

    return check


class _Session:
    """What a session compiled. `found` holds the reports in text, by test; `seen` counts the kernels' modules."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.seen = 0
        self._watches = tuple(_watches())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._take(COLLECTION)
        result = yield
        self._take(item.nodeid)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist has ended: take over what it found."""
        given: Mapping[str, Any] = getattr(node, "workeroutput", {})
        self.found += (tuple(pair) for pair in given.get("ptxlint-found", ()))
        self.seen += given.get("ptxlint-seen", 0)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._take(COLLECTION)
        for watch in self._watches:
            watch.stop()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput.update({"ptxlint-found": self.found, "ptxlint-seen": self.seen})
        elif self.found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("ptxlint")
        for test, text in self.found:
            terminalreporter.write_line(f"{test} compiled:")
            terminalreporter.write_line(text)
            terminalreporter.write_line("")
        terminalreporter.write_line(f"{len(self.found)} of {self.seen} compiled modules have findings.")

    def _take(self, test: str) -> None:
        from ptxlint.integrations.watch import is_wrong, shown

        for watch in self._watches:
            self.seen += len(watch.reports)
            self.found += ((test, shown(report)) for report in watch.reports if is_wrong(report))
            watch.reports.clear()


def _watches() -> Iterator[Watch]:
    for package, module in COMPILERS.items():
        if find_spec(package):
            yield import_module(f"ptxlint.integrations.{module}").watch("collect")
