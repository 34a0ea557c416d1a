"""Each rule's own examples: it finds exactly what they mark, and ptxas accepts them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxlint import registry
from ptxlint.rule import Rule
from ptxlint.testing import compared, found, marked, module_of


def _examples() -> Iterator[object]:
    for rule in registry.rules():
        for kind, snippets in (("good", rule.good), ("bad", rule.bad)):
            for number, snippet in enumerate(snippets):
                yield pytest.param(rule, kind, module_of(snippet), id=f"{rule.name}/{kind}-{number}")


@pytest.mark.parametrize(("rule", "kind", "text"), list(_examples()))
def test_finds_exactly_what_is_marked(rule: type[Rule], kind: str, text: str) -> None:
    expected = {mark for mark in marked(text) if mark[1] == rule.name}
    assert bool(expected) == (kind == "bad"), f"{kind} example with {len(expected)} markers"
    difference = compared(text, expected, found(text, [rule]))
    assert not difference, difference


@pytest.mark.skipif(not shutil.which("ptxas"), reason="ptxas is not installed")
@pytest.mark.parametrize(("rule", "kind", "text"), list(_examples()))
def test_ptxas_accepts_it(rule: type[Rule], kind: str, text: str, tmp_path: Path) -> None:  # noqa: ARG001
    target = text.partition(".target ")[2].split()[0].rstrip(",")
    file = tmp_path / "example.ptx"
    file.write_text(text)
    command = ["ptxas", f"-arch={target}", "-o", str(tmp_path / "out"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{text}"
