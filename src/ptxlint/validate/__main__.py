"""`python -m ptxlint.validate`: every variant of the fixture kernels on the GPU of this machine, and the record of it.

Exit status 1 when a right variant was not right every time.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from ptxlint.validate import record, sanitizer
from ptxlint.validate.fixture import Fixture, Variant, load_fixtures

RUNNABLE = ("sm_80", "sm_90", "sm_90a")
START_UP = 60
"""Seconds that a process may take beside its launches."""

Work = tuple[Fixture, Variant]


def selected(options: argparse.Namespace) -> Iterator[Work]:
    """The variants that the options ask for."""
    for fixture in load_fixtures(options.fixtures):
        for variant in fixture.variants:
            if any(fnmatch(variant.id, pattern) for pattern in options.only):
                yield fixture, variant


def trial_command(variant: Variant, *options: str) -> list[str]:
    """The command that runs one variant in its own process."""
    return [sys.executable, "-m", "ptxlint.validate.trial", str(variant.source), variant.name, *options]


def tested(work: Work, options: argparse.Namespace) -> dict[str, Any]:
    """What plain and delayed launches of a variant gave."""
    fixture, variant = work
    entry: dict[str, Any] = {"ptx": record.digest(variant), "is_right": variant.right}
    if fixture.arch not in RUNNABLE:
        outcome = {
            "kind": f"{record.NOT_RUN} {int(fixture.arch[3:].rstrip('a')) // 10}",
            "right": 0,
            "wrong": 0,
            "detail": "",
        }
        return {**entry, "outcome": outcome}
    limits = (
        f"--launches={options.launches}",
        f"--delayed={options.delayed}",
        f"--delayed-seconds={options.delayed_seconds}",
    )
    command = trial_command(variant, *limits)
    lines = last_lines(command, options.launches * 0.05 + START_UP)
    if not lines:
        return {**entry, "outcome": {"kind": "hang", "right": 0, "wrong": 0, "detail": "process killed"}}
    return {**entry, **json.loads(lines[-1])}


def last_lines(command: list[str], seconds: float) -> list[str]:
    """What the command printed until its end or until its time was up."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    return [line for line in output.splitlines() if line.startswith("{")]


def sanitized(number: int, work: Work, check: str, options: argparse.Namespace) -> sanitizer.Report:
    """What one check of the sanitizer says of one launch of a variant."""
    limits = ("--launches=1", "--no-poison", "--largest-grid=8", f"--seconds={options.sanitizer_seconds / 2}")
    command = trial_command(work[1], *limits)
    port = 20000 + number % 400 * 100
    return sanitizer.sanitize(check, options.sanitizer, command, port, options.sanitizer_seconds)


def run_trials(work: list[Work], options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Tests the variants, several at a time, and keeps the record up to date."""
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(tested, item, options): item[1] for item in work}
        for future in as_completed(running):
            entry = future.result()
            device = entry.pop("device", None)
            if device:
                results["machine"]["device"] = device
            results["variants"][running[future].id] = entry
            record.write(options.record, results)
            print(f"{running[future].id}: {record.described(entry)}", flush=True)


def run_sanitizer(work: list[Work], options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Runs the sanitizer's checks over the variants and adds what they say to the record; all text goes to the log."""
    runnable = [item for item in work if item[0].arch in RUNNABLE]
    jobs = [(item, check) for check in options.checks for item in runnable]
    with ThreadPoolExecutor(options.jobs) as pool, options.sanitizer_log.open("a") as log:
        running = {
            pool.submit(sanitized, number, item, check, options): item[1] for number, (item, check) in enumerate(jobs)
        }
        for future in as_completed(running):
            report, variant = future.result(), running[future]
            said = {"first": report.first, "count": report.count, "ended": report.ended}
            results["variants"].setdefault(variant.id, {}).setdefault("sanitizer", {})[report.check] = said
            log.write(json.dumps({"variant": variant.id, "check": report.check, "text": report.text[:6000]}) + "\n")
            record.write(options.record, results)
            print(f"{variant.id}: {report.check}: {report.first or 'nothing'}", flush=True)


def toolkit(variant: Variant) -> str:
    """The compiler's release, as it wrote it into the PTX."""
    with variant.ptx.open() as lines:
        return next((line.rpartition(" ")[2].strip() for line in lines if "compilation tools" in line), "unknown")


def sanitizer_version(path: Path) -> str:
    """The release that the sanitizer names itself."""
    text = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=True).stdout
    return text.strip().splitlines()[-1].removeprefix("Version ").split(" ")[0]


def driver_release() -> str:
    """The release of the installed driver, as nvidia-smi gives it."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m ptxlint.validate", description=__doc__)
    parser.add_argument("only", nargs="*", default=["*"], help="KERNEL/VARIANT patterns")
    parser.add_argument("--fixtures", type=Path, default=Path("fixtures/kernels"))
    parser.add_argument("--record", type=Path, default=Path("fixtures/kernels/record.json"))
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--delayed", type=int, default=5, help="launches for each delay, 0 for none")
    parser.add_argument("--delayed-seconds", type=float, default=30, help="for all delays of a variant together")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--sanitizer", type=Path, help="path of compute-sanitizer; without it, it is not run")
    parser.add_argument("--checks", nargs="+", default=list(sanitizer.CHECKS), choices=list(sanitizer.CHECKS))
    parser.add_argument("--sanitizer-seconds", type=float, default=20)
    parser.add_argument("--sanitizer-log", type=Path, default=Path(os.devnull))
    parser.add_argument("--no-trials", action="store_true", help="only the sanitizer")
    return parser.parse_args()


def main() -> int:
    """Runs what the command line asks for; the number of right variants that were not right, 1 at most."""
    options = parse_options()
    work = list(selected(options))
    results = record.read(options.record)
    results["machine"].update(toolkit=toolkit(work[0][1]), driver=driver_release(), launches=options.launches)
    if not options.no_trials:
        run_trials(work, options, results)
    if options.sanitizer:
        results["machine"]["sanitizer"] = sanitizer_version(options.sanitizer)
        run_sanitizer(work, options, results)
    entries = [results["variants"].get(variant.id, {}) for _, variant in work if variant.right]
    failed = [entry for entry in entries if entry.get("outcome", {}).get("kind") in ("wrong", "trap", "hang")]
    print(f"{len(work)} variants, {len(failed)} right ones that are not right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
