"""compute-sanitizer over one variant: what each of its tools reports."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOOLS = {
    "racecheck": [
        "--check-tensor-ops=yes",
        "--racecheck-deadlock-timeout=2000",
        "--racecheck-continue-on-deadlock=no",
        "--racecheck-report=all",
    ],
    "synccheck": ["--check-tensor-ops=yes"],
    "memcheck": ["--check-tensor-ops=yes"],
}
"""The tools and the options that make them look at bulk and tensor copies and at deadlocks."""

NOISE = re.compile(
    r"COMPUTE-SANITIZER|SUMMARY|Saved host backtrace|Host Frame|Program hit|Target application|"
    r"Internal Sanitizer Error|^=========\s*$|^=========\s{2,}"
)
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class Report:
    """What one tool said: its first finding, empty for none, whether it came to its end, and all of its text."""

    tool: str
    first: str
    count: int
    ended: bool
    text: str


def report_of(tool: str, text: str) -> Report:
    """The report in a tool's output. A failed launch that it only passes on is no finding of its own."""
    lines = [line for line in text.splitlines() if line.startswith("========= ") and not NOISE.search(line)]
    summary = SUMMARY.search(text)
    first = lines[0].removeprefix("========= ").strip() if lines else ""
    return Report(tool, first, int(summary["count"]) if summary else 0, summary is not None, text)


def sanitize(tool: str, sanitizer: Path, command: Sequence[str], port: int, seconds: float) -> Report:
    """Runs the command under a tool, for the given time at most."""
    line = [str(sanitizer), f"--tool={tool}", f"--port={port}", "--print-limit=8", "--show-backtrace=no", *TOOLS[tool]]
    process = subprocess.Popen(
        [*line, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        stop(process)
        output, _ = process.communicate()
    return report_of(tool, output.decode(errors="replace"))


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kills the process and those that it started."""
    subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=False)
