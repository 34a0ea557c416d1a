"""The page on the engine: its example is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxlint.cli import program

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "architecture.md"


def test_the_trace_is_what_the_command_prints(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --update the page is written anew."""
    monkeypatch.chdir(ROOT)
    page = PAGE.read_text()
    block = re.search(r"```text\n\$ ptxlint (.*)\n((?:.*\n)*?)```", page)
    assert block is not None
    result = CliRunner().invoke(program, shlex.split(block[1]), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    if request.config.getoption("--update"):
        PAGE.write_text(page[: block.start(2)] + result.output + page[block.end(2) :])
    else:
        assert result.output == block[2]


def test_files_that_it_names_are_there() -> None:
    for name in re.findall(r"`(\w+\.py)`", PAGE.read_text()):
        assert (ROOT / "src" / "ptxlint" / "execution" / name).exists(), name
