"""SARIF logs of ptxlint, from the shards of one run, made into one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

Log = dict[str, Any]
"""A SARIF log as JSON values."""


class MergeError(Exception):
    """A file that cannot be merged, and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


def read(path: str) -> Log:
    """The log in the file. Raises MergeError when it is none that ptxlint wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            log = json.load(file)
    except (OSError, ValueError) as error:
        raise MergeError(path, f"cannot be read: {error}") from error
    try:
        names = [run["tool"]["driver"]["name"] for run in log["runs"]]
    except (KeyError, TypeError) as error:
        raise MergeError(path, "is not a SARIF log") from error
    if names != ["ptxlint"]:
        raise MergeError(path, "is not a SARIF log that `ptxlint check --format sarif` wrote")
    return log  # type: ignore[no-any-return]


def merged(paths: Sequence[str]) -> Log:
    """One log with one run, the results in the order of the files, each once. Raises MergeError."""
    logs = [read(path) for path in paths]
    runs = [log["runs"][0] for log in logs]
    for path, run in zip(paths, runs, strict=True):
        if _version(run) != _version(runs[0]):
            raise MergeError(path, f"comes from ptxlint {_version(run)}, {paths[0]} from {_version(runs[0])}")
    rules = {rule["id"]: rule for run in runs for rule in run["tool"]["driver"]["rules"]}
    index = {code: number for number, code in enumerate(sorted(rules))}
    driver = {**runs[0]["tool"]["driver"], "rules": [rules[code] for code in index]}
    results = _once({**result, "ruleIndex": index[result["ruleId"]]} for run in runs for result in run["results"])
    invocations = [invocation for run in runs for invocation in run["invocations"]]
    run = {**runs[0], "tool": {"driver": driver}, "invocations": invocations, "results": results}
    return {**logs[0], "runs": [run]}


def is_complete(log: Log) -> bool:
    """Whether every shard read and linted all that it was given."""
    return all(invocation["executionSuccessful"] for invocation in log["runs"][0]["invocations"])


def levels(log: Log) -> list[str]:
    """The level of each result: error, warning or note."""
    return [result["level"] for result in log["runs"][0]["results"]]


def _version(run: dict[str, Any]) -> str:
    return str(run["tool"]["driver"]["version"])


def _once(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({json.dumps(result, sort_keys=True): result for result in results}.values())
