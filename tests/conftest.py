"""Options and surroundings of all tests."""

from __future__ import annotations

import os
import tempfile

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write golden files anew instead of comparing with them")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the caches of this run away from the user's own; workers of one run share theirs."""
    if "PTXLINT_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="ptxlint-tests-")
        os.environ["PTXLINT_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)
