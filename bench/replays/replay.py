"""A replayed bug: the folder of a pair, its `replay.toml`, and the place of the fix.

report = "NVIDIA/cutlass#2573"    # the public issue or pull request that the pair follows
class = "cluster"                 # one of CLASSES
dialect = "nvcc"                  # one of DIALECTS
rule = "cluster-exit-unsynced"    # what must find `before`, as an error
arch = "sm_90a"
summary = "..."                   # one sentence: what went wrong there
cluster = 2                       # only where the compiler writes no cluster into the PTX: what a user states
open = "..."                      # only where ptxlint does not do what it should yet: why
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "fixtures/replays"

CLASSES = (
    "tmem",
    "mbarrier-init",
    "arrivals",
    "phase",
    "proxy-fence",
    "bulk-group-wait",
    "cluster",
    "hand-off",
    "aligned-barrier",
    "named-barrier",
    "transaction-bytes",
    "cp-async-group",
    "wgmma",
    "alignment",
    "dependent-launch",
    "setmaxnreg",
    "tensormap",
)
"""The kinds of mistakes that public reports tell of, the most frequent first."""

DIALECTS = {"nvcc": ".cu", "triton": ".py", "gluon": ".py", "cute-dsl": ".py", "tilelang": ".py"}
"""What the kernels are written in, with the suffix of the source."""

_REPORT = re.compile(r"[\w.-]+/[\w.-]+#\d+")


class ReplayError(ValueError):
    """A `replay.toml` that cannot be used."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A pair. `open` says why ptxlint does not tell its two halves apart yet, empty when it does."""

    folder: Path
    report: str
    kind: str
    dialect: str
    rule: str
    arch: str
    summary: str
    open: str = ""
    cluster: int = 0

    @property
    def slug(self) -> str:
        """The name of the folder."""
        return self.folder.name

    def source(self, side: str) -> Path:
        """What a person wrote; `side` is `before` or `after`."""
        return self.folder / f"{side}{DIALECTS[self.dialect]}"

    def located(self, side: str) -> Path:
        """The file that the line numbers of the PTX belong to: for TileLang the CUDA that it generates."""
        suffix = ".cu" if self.dialect == "tilelang" else DIALECTS[self.dialect]
        return self.folder / f"{side}{suffix}"

    def ptx(self, side: str) -> Path:
        """What the compiler made of it."""
        return self.folder / f"{side}.ptx"

    def fixed_lines(self) -> frozenset[int]:
        """The lines of `before`, from 1, that the fix changes; of an insertion the two around it."""
        texts = (self.located(side).read_text(encoding="utf-8").splitlines() for side in ("before", "after"))
        return frozenset(changed(*texts))


def changed(before: list[str], after: list[str]) -> Iterator[int]:
    """The lines of `before`, from 1, that differ from `after`; of an insertion the two around it."""
    for tag, start, end, _, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "insert":
            yield from (line for line in (start, start + 1) if 1 <= line <= len(before))
        elif tag != "equal":
            yield from range(start + 1, end + 1)


def read_replay(folder: Path) -> Replay:
    """The pair in a folder.

    Raises: ReplayError
    """
    table = tomllib.loads((folder / "replay.toml").read_text(encoding="utf-8"))
    try:
        replay = Replay(folder, kind=table.pop("class"), **table)
    except (KeyError, TypeError) as error:
        raise ReplayError(f"{folder.name}: {error}") from error
    _check(replay, table)
    return replay


def _check(replay: Replay, table: dict[str, Any]) -> None:
    texts = {key: value for key, value in table.items() if key != "cluster"}
    empty = [key for key, value in texts.items() if not isinstance(value, str) or not value.strip()]
    complaints = (
        (bool(empty), f"empty: {', '.join(empty)}"),
        (replay.kind not in CLASSES, f"unknown class {replay.kind}"),
        (replay.dialect not in DIALECTS, f"unknown dialect {replay.dialect}"),
        (not _REPORT.fullmatch(replay.report), f"not owner/repository#number: {replay.report}"),
    )
    for is_wrong, complaint in complaints:
        if is_wrong:
            raise ReplayError(f"{replay.slug}: {complaint}")


def read_replays(folder: Path = FOLDER) -> tuple[Replay, ...]:
    """All pairs, by the name of their folder.

    Raises: ReplayError
    """
    return tuple(read_replay(path.parent) for path in sorted(folder.glob("*/replay.toml")))
