"""Outcomes kept between runs, one JSON line each, in a folder outside the repository.

What ptxas said of a mutant is kept by its text; what ptxlint said, by its text and the code of ptxlint. Nothing in them
depends on where the files lie, so a journal may move to another machine.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import ptxlint
from bench.mutants.trial import Outcome
from ptxlint import registry


class Journal:
    """A file of outcomes by key, appended to as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Outcome] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                key = entry.pop("key")
                self.known[key] = Outcome(**{**entry, "rules": tuple(entry["rules"])})

    def get(self, key: str) -> Outcome | None:
        """The outcome that was kept under the key."""
        return self.known.get(key)

    def put(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome."""
        self.known[key] = outcome
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, **asdict(outcome)}) + "\n")


def code_digest() -> str:
    """Sixteen digits that change when the code of ptxlint or a rule does."""
    folders = {Path(ptxlint.__file__).parent, *(Path(registry.file_of(rule)).parent for rule in registry.rules())}
    contents = sorted(
        {file.resolve(): file.read_bytes() for folder in folders for file in folder.rglob("*.py")}.values()
    )
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()[:16]
