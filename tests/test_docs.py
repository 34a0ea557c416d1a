"""The documentation: it builds, its links hold, and each rule has its page."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from bench import side_by_side
from ptxlint import registry
from ptxlint.explanation import Explanation
from ptxlint.validate import record
from ptxlint.validate.fixture import load_fixtures

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
MADE = re.compile(r"build|dist|site|.*\.egg-info|__pycache__")
"""Folders at the top that tools make."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_rule_has_its_page(site: Path) -> None:
    for rule in registry.rules():
        page = (site / "rules" / rule.name / "index.html").read_text()
        assert rule.code in page
        assert rule.name in (site / "rules" / "index.html").read_text()


def test_a_rule_shows_what_hardware_did(site: Path) -> None:
    """Of each kernel with its fault, as recorded for the PTX that is there today."""
    folder = ROOT / "fixtures" / "kernels"
    entries = record.read(folder / "record.json")["variants"]
    shown = 0
    for variant in (variant for fixture in load_fixtures(folder) for variant in fixture.variants if not variant.right):
        entry = entries.get(variant.id)
        is_current = entry is not None and entry["ptx"] == record.digest(variant)
        for rule in {marker.rule for marker in variant.markers}:
            page = unescape((site / "rules" / rule / "index.html").read_text())
            assert (f"<code>{variant.id}</code>" in page) == is_current
            assert not is_current or record.described(entry) in page
            shown += is_current
    assert shown


@pytest.mark.parametrize("name", ["rules", "side by side"])
def test_the_tables_in_the_readme(name: str, pytestconfig: pytest.Config) -> None:
    """Each rule has its line, as the class has it; the faults are as recorded. `--update` writes the tables."""
    lines = {"rules": _rules, "side by side": side_by_side.table}[name]()
    text = README.read_text()
    before, start, rest = text.partition(f"<!-- {name}:")
    end = f"<!-- end of {name} -->"
    mark, after = rest.partition("\n")[0], rest.partition(end)[2]
    expected = "".join((before, start, mark, "\n\n", "\n".join(lines), "\n\n", end, after))
    if pytestconfig.getoption("--update"):
        README.write_text(expected)
    assert README.read_text() == expected, "run `pytest tests/test_docs.py --update`"


def _rules() -> Iterator[str]:
    explanations = [Explanation.of(rule) for rule in registry.rules()]
    names = [f"`{e.name}`" if e.is_default else f"(`{e.name}`)" for e in explanations]
    yield "| code | rule | severity | finds |"
    yield "|---|---|---|---|"
    for e, name in zip(explanations, names, strict=True):
        yield f"| {e.code} | {name} | {e.severity} | {e.summary} |"


def test_the_map_in_the_readme_has_every_folder() -> None:
    mapped = set(re.findall(r"^\| `([a-z/]+)/` \|", README.read_text(), re.MULTILINE))
    there = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."}
    assert {folder.partition("/")[0] for folder in mapped} == {name for name in there if not MADE.fullmatch(name)}


def test_the_readme_names_files_that_are_there() -> None:
    text = (ROOT / "README.md").read_text()
    for path in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_commands_in_the_docs_exist(page: Path) -> None:
    """Each `ptxlint COMMAND` and each option of it is one that the program has."""
    from ptxlint.cli import program

    for line in re.findall(r"\bptxlint ([a-z-]+[^`\n#]*)", page.read_text()):
        name, *rest = line.split()
        command = program.commands.get(name) or program.get_command(None, name)  # type: ignore[arg-type]
        if command is None:
            continue
        options = {option for parameter in command.params for option in parameter.opts}
        before_flags = rest[: rest.index("--")] if "--" in rest else rest
        if hasattr(command, "commands"):
            continue
        unknown = {word for word in before_flags if word.startswith("--") and word not in options}
        assert not unknown, f"{name}: {unknown}"
