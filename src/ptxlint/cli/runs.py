"""Which run of a kernel a view shows, and how it is announced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ptxlint.execution.engine import Execution
    from ptxlint.execution.runs import Run
    from ptxlint.facts import Facts

Command = TypeVar("Command", bound=Callable[..., Any])

schedule_option = click.option(
    "--schedule", default="", metavar="TEXT", help="Show the run whose schedule has TEXT in its name, such as `late`."
)
"""Adds `--schedule`; pass it to `chosen_run`."""


def chosen_run(execution: Execution, schedule: str) -> Run | None:
    """The run to show: under the schedule asked for, else the one that showed a defect, else the first.

    Raises click.UsageError when no run has such a schedule.
    """
    matching = [run for run in execution.runs if schedule in str(run.schedule)]
    if execution.runs and not matching:
        known = "; ".join(str(run.schedule) for run in execution.runs)
        raise click.UsageError(f"no run has a schedule named {schedule!r}; there are: {known}")
    faulty = [defect.run for defect in execution.defects if defect.run in matching]
    return next(iter([*faulty, *matching]), None)


def described(facts: Facts, run: Run) -> str:
    """The kernel, the launch and the schedule of a run, and how it ended."""
    extents = " ".join(
        f"{name} {'x'.join(map(str, size))}"
        for name, size in (("block", run.binding.block), ("cluster", run.binding.cluster))
    )
    waiting = len(run.machine.blocked)
    end = "out of budget" if run.out_of_budget else f"{waiting} agents blocked" if waiting else "ran to the end"
    return f"{facts.function.name}: {extents}, schedule {run.schedule}: {end}"
