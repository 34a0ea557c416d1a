"""Draws `finding.svg`: what `ptxlint demo` shows on a terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 120


def main() -> None:
    """Write the picture beside this file."""
    command = [sys.executable, "-m", "ptxlint", "demo", "--color", "always"]
    folder = Path(__file__).parent
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder.parent).stdout
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown))
    drawing = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="ptxlint"), flags=re.DOTALL)
    (folder / "finding.svg").write_text(drawing)


if __name__ == "__main__":
    main()
