"""The documentation: it builds, its links hold, and each rule has its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptxlint import registry

ROOT = Path(__file__).parent.parent


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
