"""Configuration: `ptxlint.toml`, or `[tool.ptxlint]` in `pyproject.toml`, of the nearest folder that has one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ptxlint.classes import dataclass
from ptxlint.config.values import (
    WrongValueError,
    choice,
    count,
    extents,
    flag,
    integer,
    mapping,
    sequence,
    string,
    strings,
    table,
)
from ptxlint.launch import Launch
from ptxlint.rule import Severity

FILES = ("ptxlint.toml", "pyproject.toml")


class ConfigError(Exception):
    """A configuration that cannot be used: the file, the key and why."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(f"{file}: {message}")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a project; `file` is where they come from, empty when there is none.

    Patterns are globs: of paths relative to the folder of the file, and of kernel names, demangled or as in the PTX.
    `launches` are tried in order; the first whose pattern matches the kernel describes its launch. `nvcc_flags` come
    before those of the command line.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    fail_on: Severity = Severity.WARNING
    strict: bool = False
    extend_include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_kernel_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    launches: tuple[tuple[str, Launch], ...] = ()
    baseline: str | None = None
    cache: bool = True
    jobs: int = 0
    nvcc_flags: tuple[str, ...] = ()
    file: str = ""

    @property
    def folder(self) -> str:
        """The folder that paths are relative to: that of the file, else the working folder."""
        return os.path.dirname(os.path.abspath(self.file)) if self.file else os.getcwd()

    def in_folder(self, path: str | None) -> str | None:
        """A path of the configuration as seen from the working folder."""
        return os.path.relpath(os.path.join(self.folder, path)) if path else None


def discover(start: str = ".") -> Config:
    """The configuration that applies in a folder. Raises ConfigError."""
    folder = os.path.abspath(start)
    while True:
        for name in FILES:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (settings := _table(path)) is not None:
                return _config(settings, path)
        if os.path.dirname(folder) == folder:
            return Config()
        folder = os.path.dirname(folder)


def load(path: str) -> Config:
    """The configuration in that file. Raises ConfigError."""
    settings = _table(path)
    if settings is None:
        raise ConfigError(path, "has no [tool.ptxlint] table")
    return _config(settings, path)


def _table(path: str) -> dict[str, Any] | None:
    """The settings in the file; None when it is a `pyproject.toml` without any."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise ConfigError(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(path, "is not UTF-8 text") from error
    is_shared = os.path.basename(path) == "pyproject.toml"
    if is_shared and "tool.ptxlint" not in text:
        return None
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, str(error)) from error
    if not is_shared:
        return document
    settings = document.get("tool", {}).get("ptxlint")
    return settings if isinstance(settings, dict) else None


def _config(settings: Mapping[str, Any], path: str) -> Config:
    try:
        return Config(**_SETTINGS(settings), file=path)
    except WrongValueError as error:
        raise ConfigError(path, str(error)) from error


def _launch(entry: Any) -> tuple[str, Launch]:
    settings = _LAUNCH(entry)
    return settings.pop("kernel", "*"), Launch(**settings)


def _parameters(value: Any) -> dict[str | int, int]:
    return {int(name) if name.isdecimal() else name: number for name, number in mapping(integer)(value).items()}


_LAUNCH = table(
    {
        "kernel": ("kernel", string),
        "block": ("block", extents),
        "cluster": ("cluster", extents),
        "grid": ("grid", extents),
        "dynamic-smem": ("dynamic_shared", count),
        "params": ("parameters", _parameters),
    }
)

_SETTINGS = table(
    {
        "select": ("select", strings),
        "ignore": ("ignore", strings),
        "extend-select": ("extend_select", strings),
        "severity": ("severity", mapping(choice(Severity))),
        "fail-on": ("fail_on", choice(Severity)),
        "strict": ("strict", flag),
        "extend-include": ("extend_include", strings),
        "exclude": ("exclude", strings),
        "per-file-ignores": ("per_file_ignores", mapping(strings)),
        "per-kernel-ignores": ("per_kernel_ignores", mapping(strings)),
        "launch": ("launches", sequence(_launch)),
        "baseline": ("baseline", string),
        "cache": ("cache", flag),
        "jobs": ("jobs", count),
        "nvcc-flags": ("nvcc_flags", strings),
    }
)
