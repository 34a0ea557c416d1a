"""Options and surroundings of all tests."""

from __future__ import annotations

import os
import sys
import tempfile

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=20, deadline=None, database=None)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write golden files anew instead of comparing with them")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the caches of this run away from the user's own; workers of one run share theirs.

    Programs that the tests start find compiled bytecode, as they do where they are installed.
    """
    if "PTXLINT_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="ptxlint-tests-")
        os.environ["PTXLINT_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
