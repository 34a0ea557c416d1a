"""What ptxas says of a module: the proof that it is PTX that a user could run."""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

_TIME_LIMIT = 1800
_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)
_BANNER = re.compile(r"release (\d+\.\d+)")
_NEWER = re.compile(r"Unsupported \.version|Program with \.target|is not defined for option 'gpu-name'")
_SAVE_EVERY = 25


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one module."""

    state: str
    """``accepted``, ``newer`` (made for a later ptxas than this one) or ``rejected``."""
    seconds: float
    """Wall time of ptxas."""
    message: str
    """First line of the complaint, empty when accepted."""


def ptxas_release() -> str:
    """The toolkit release of the ptxas on the PATH, such as ``13.0``."""
    banner = subprocess.run(["ptxas", "--version"], check=True, capture_output=True, text=True).stdout
    found = _BANNER.search(banner)
    return found[1] if found else banner.strip()


def assemble_all(paths: Iterable[Path], store: Path, jobs: int) -> dict[Path, Verdict]:
    """Verdicts of all modules; those that ``store`` (JSON, by content and release) knows are not assembled again."""
    release = ptxas_release()
    known = _load(store)
    keys = {path: f"{release}:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in paths}
    fresh = [path for path, key in keys.items() if key not in known]
    for done, (path, verdict) in enumerate(_run(fresh, jobs), start=1):
        known[keys[path]] = verdict
        if done % _SAVE_EVERY == 0 or done == len(fresh):
            _save(store, known)
    return {path: known[key] for path, key in keys.items()}


def assemble(path: Path) -> Verdict:
    """Assemble one module for the architecture that its ``.target`` names, and throw the result away."""
    target = _TARGET.search(path.read_text(encoding="utf-8", errors="replace"))
    if target is None:
        return Verdict("rejected", 0.0, "no .target")
    before = os.times().elapsed
    command = ["ptxas", f"-arch={target[1]}", str(path), "-o", os.devnull]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict("rejected", float(_TIME_LIMIT), f"no answer within {_TIME_LIMIT} s")
    seconds = round(os.times().elapsed - before, 2)
    if ran.returncode == 0:
        return Verdict("accepted", seconds, "")
    complaints = [line for line in ran.stderr.splitlines() if "error" in line or "fatal" in line]
    state = "newer" if _NEWER.search(ran.stderr) else "rejected"
    return Verdict(state, seconds, complaints[0] if complaints else f"exit status {ran.returncode}")


def _run(paths: list[Path], jobs: int) -> Iterator[tuple[Path, Verdict]]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(paths, pool.map(assemble, paths), strict=True)


def _load(store: Path) -> dict[str, Verdict]:
    if not store.is_file():
        return {}
    return {key: Verdict(**fields) for key, fields in json.loads(store.read_text(encoding="utf-8")).items()}


def _save(store: Path, known: dict[str, Verdict]) -> None:
    unfinished = store.with_suffix(f".{os.getpid()}.tmp")
    merged = {**_load(store), **known}
    unfinished.write_text(json.dumps({key: asdict(verdict) for key, verdict in merged.items()}), encoding="utf-8")
    unfinished.replace(store)
