"""compute-sanitizer over one variant: what each of its tools reports."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RACECHECK = (
    "--tool=racecheck",
    "--racecheck-deadlock-timeout=2000",
    "--racecheck-continue-on-deadlock=no",
    "--racecheck-report=all",
)
CHECKS: dict[str, tuple[str, ...]] = {
    "racecheck": (*RACECHECK, "--racecheck-fence-proxy-async=no"),
    "racecheck with proxies": RACECHECK,
    "synccheck": ("--tool=synccheck",),
    "memcheck": ("--tool=memcheck",),
}
"""The tool and its options for each check. With proxies, racecheck asks every ring for a fence before a refill, which
the ISA does not clearly demand; those reports hide others, so it runs without them too."""

NOISE = re.compile(
    r"COMPUTE-SANITIZER|SUMMARY|Saved host backtrace|Host Frame|Program hit|Target application|"
    r"Internal Sanitizer Error|^=========\s*$|^=========\s{2,}"
)
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class Report:
    """What one check said: its first finding, empty for none, whether it came to its end, and all of its text."""

    check: str
    first: str
    count: int
    ended: bool
    text: str


def report_of(check: str, text: str) -> Report:
    """The report in a tool's output. A failed launch that it only passes on is no finding of its own."""
    lines = [line for line in text.splitlines() if line.startswith("========= ") and not NOISE.search(line)]
    summary = SUMMARY.search(text)
    first = lines[0].removeprefix("========= ").strip() if lines else ""
    return Report(check, first, int(summary["count"]) if summary else 0, summary is not None, text)


def sanitize(check: str, sanitizer: Path, command: Sequence[str], port: int, seconds: float) -> Report:
    """Runs the command under a check, for the given time at most."""
    options = ["--check-tensor-ops=yes", "--print-limit=8", "--show-backtrace=no", f"--port={port}"]
    line = [str(sanitizer), *CHECKS[check], *options]
    process = subprocess.Popen(
        [*line, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        stop(process)
        output, _ = process.communicate()
    return report_of(check, output.decode(errors="replace"))


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kills the process and those that it started."""
    subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=False)
