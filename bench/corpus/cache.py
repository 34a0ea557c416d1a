"""Where the corpus lives on disk: a folder outside the repository."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path


def default_root() -> Path:
    """``$PTXLINT_CORPUS``, else the platform's cache folder."""
    named = os.environ.get("PTXLINT_CORPUS")
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "ptxlint/corpus"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ptxlint/corpus"


@dataclass(frozen=True, slots=True)
class Cache:
    """The folders of one corpus."""

    root: Path

    def venv(self, environment: str) -> Path:
        """A virtual environment, named after the first project that uses it."""
        return self.root / "venvs" / environment

    def ptx(self, project: str) -> Path:
        """The folder of the project's modules and of its ``manifest.json``."""
        return self.root / "ptx" / project

    def log(self, project: str) -> Path:
        """What the project's last build printed."""
        return self.root / "logs" / f"{project}.log"

    @property
    def verdicts(self) -> Path:
        """What ptxas said of each module."""
        return self.root / "ptxas.json"

    @property
    def linted(self) -> Path:
        """What ptxlint said of each module, by its content and the code that looked."""
        return self.root / "linted"
