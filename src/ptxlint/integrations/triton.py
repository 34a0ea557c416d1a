"""Triton and Gluon: every kernel that `triton.compile` or a launch compiles, or takes from Triton's cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ptxlint.config import Config
from ptxlint.integrations.watch import Reaction, Seen, Watch
from ptxlint.launch import Launch


def watch(reaction: Reaction = "warn", config: Config | None = None, launch: Launch | None = None) -> Watch:
    """Lint what Triton compiles from now on, through its compilation listener; one that is there already stays."""
    return Watch(_attach, reaction, config, launch)


def _attach(seen: Seen) -> Callable[[], None]:
    from triton import knobs

    before = knobs.compilation.listener

    def listener(*, metadata: Mapping[str, Any], metadata_group: Mapping[str, str], **others: Any) -> None:
        if before is not None:
            before(metadata=metadata, metadata_group=metadata_group, **others)
        for name, path in metadata_group.items():
            if name.endswith(".ptx"):
                seen(name, Path(path).read_text())

    def detach() -> None:
        knobs.compilation.listener = before

    knobs.compilation.listener = listener
    return detach
