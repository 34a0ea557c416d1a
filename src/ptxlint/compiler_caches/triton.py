"""Triton's cache: a folder for each kernel, with `NAME.ptx`, `NAME.json` that describes it, and MLIR of each stage.

TorchInductor has one of these in its own cache, `ROOT/triton/DEVICE`; the Python that it generates for Triton lies in
`ROOT/xx/*.py`, and the wrapper that calls it, in another such file, says before each kernel which operators it is for.
Measured on Triton 3.6 and 3.9, and on PyTorch 2.11.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ptxlint.launch import Launch
from ptxlint.result import Origin
from ptxlint.source import SourceLocation

_STAGES = (".source", ".ttir", ".ttgir")
"""The files of MLIR, from the first stage on. They have locations also where the PTX has no `.loc`."""

_WRAPPED = re.compile(
    r"^# kernel path: (?P<path>.+)\n"
    r"# .*?Source Nodes: \[(?P<nodes>.*?)\](?:, Original ATen: \[(?P<operators>.*?)\])?.*\n"
    r"(?:#.*\n)*(?P<name>\w+) = ",
    re.MULTILINE,
)


def is_ptx(path: str) -> bool:
    """Whether the file is the PTX of a kernel in the cache."""
    return path.endswith(".ptx") and os.path.isfile(_beside(path, ".json"))


def metadata(path: str) -> Mapping[str, Any] | None:
    """What the cache says of the kernel whose PTX this is; None when it is not one of Triton's."""
    if not is_ptx(path):
        return None
    import json

    try:
        found = json.loads(_read(_beside(path, ".json")))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and {"target", "num_warps"} <= found.keys() else None


def origin(path: str, described: Mapping[str, Any]) -> Origin:
    """Where the kernel comes from."""
    name = described.get("name")
    source = _defined(path, name) if isinstance(name, str) else None
    compiler = " ".join(str(part) for part in ("Triton", described.get("triton_version")) if part)
    return Origin(compiler, source, _purpose(path, source) if source else "")


def launch(described: Mapping[str, Any]) -> Launch:
    """What Triton launches the kernel with."""
    shared = described.get("shared")
    return Launch(dynamic_shared=shared) if isinstance(shared, int) and shared > 0 else Launch()


def _defined(path: str, name: str) -> SourceLocation | None:
    """Where the user's file, or what TorchInductor generated, defines the kernel."""
    for stage in _STAGES:
        try:
            text = _read(_beside(path, stage))
        except OSError:
            continue
        function = re.search(rf"^  tt\.func public @{re.escape(name)}\(.*?^  \}} loc\((#loc\d*)\)", text, re.M | re.S)
        place = re.search(rf'^{function[1]} = loc\("(.*)":(\d+):(\d+)\)', text, re.M) if function else None
        if place:
            return SourceLocation(place[1], int(place[2]), int(place[3]), name)
    return None


def _purpose(path: str, source: SourceLocation) -> str:
    """What TorchInductor generated the kernel for; empty for anybody else's."""
    parts = os.path.abspath(path).split(os.sep)
    is_inside = len(parts) > 4 and parts[-4] == "triton"
    if not is_inside:
        return ""
    purposes = _purposes(os.sep.join(parts[:-4]))
    return purposes.get(os.path.basename(source.file)) or purposes.get(source.function or "", "")


@lru_cache(maxsize=8)
def _purposes(root: str) -> Mapping[str, str]:
    """What kernels in a cache of TorchInductor are for, nodes and operators: by the file of a kernel, and by its name.

    A kernel that the tuner has compiled comes from another file than the wrapper names. A name says something only
    where all kernels of that name are for the same.
    """
    by_file: dict[str, str] = {}
    by_name: dict[str, set[str]] = {}
    for text in _generated(root):
        for match in _WRAPPED.finditer(text):
            purpose = _listed(match["nodes"], match["operators"] or "")
            by_file[os.path.basename(match["path"].strip())] = purpose
            by_name.setdefault(match["name"], set()).add(purpose)
    return {**{name: purpose for name, (purpose, *others) in by_name.items() if not others}, **by_file}


def _listed(nodes: str, operators: str) -> str:
    return f"{nodes} ({operators})" if operators else nodes


def _generated(root: str) -> Iterator[str]:
    from glob import escape, glob

    for path in sorted(glob(os.path.join(escape(root), "??", "*.py"))):
        text = _read(path)
        if "# kernel path: " in text:
            yield text


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _beside(path: str, suffix: str) -> str:
    return path.removesuffix(".ptx") + suffix
