"""`ptxlint show trace`: what happened in a run, event by event."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ptxlint.cli.kernels import kernel_arguments, kernels
from ptxlint.cli.places import place
from ptxlint.cli.runs import chosen_run, described, schedule_option
from ptxlint.cli.table import Row, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ptxlint.execution.engine import Execution
    from ptxlint.execution.runs import Run
    from ptxlint.execution.story import Names
    from ptxlint.execution.trace import Event
    from ptxlint.facts import Facts

COLUMNS = ("#", "agent", "event", "on", "parity", "amount", "phase", "pending", "tx", "at")


@click.command()
@kernel_arguments
@schedule_option
@click.option("--by-agent", is_flag=True, help="The events of one agent after those of another.")
@click.option("--on", "barrier", default="*", metavar="GLOB", help="Only events of barriers whose name matches.")
@click.option("--limit", default=0, metavar="N", help="Only the first N events.")
def command(file: str, kernel: str, schedule: str, by_agent: bool, barrier: str, limit: int, **launch: Any) -> None:
    """Print what each agent of each kernel in FILE did under one schedule; defects stand at the end."""
    from ptxlint.execution.story import Names

    for facts in kernels(file, kernel, **launch):
        execution = facts.execution
        run = chosen_run(execution, schedule)
        if run is None:
            click.echo(f"{facts.function.name}: nothing to run")
            continue
        names = Names.of(execution)
        events = [event for event in run.machine.events if fnmatchcase(_target(event, execution, names), barrier)]
        if by_agent:
            events.sort(key=lambda event: (event.agent is None, event.agent or (), event.order))
        rows = (_row(event, facts, names) for event in events[: limit or None])
        print_table(described(facts, run), COLUMNS, rows)
        for line in _endings(facts, run, names):
            click.echo(f"  {line}")


def _row(event: Event, facts: Facts, names: Names) -> Row:
    from ptxlint.execution.trace import Kind

    execution = facts.execution
    is_mbarrier = event.kind in (Kind.INIT, Kind.ARRIVE, Kind.EXPECT, Kind.COMPLETE, Kind.COPY, Kind.WAIT, Kind.PHASE)
    is_wait = event.kind in (Kind.WAIT, Kind.POLL)
    amount = "a tensor box" if event.amount < 0 else str(event.amount or "")
    return (
        [str(event.order)],
        [str(event.agent) if event.agent else "hardware"],
        [str(event.kind)],
        [_target(event, execution, names)],
        [str(event.amount) if is_wait else ""],
        ["" if is_wait else amount],
        [str(event.phase) if event.object is not None else ""],
        [str(event.pending) if is_mbarrier else ""],
        [str(event.tx) if is_mbarrier else ""],
        [place(facts.module, execution.body, event.point) if event.point >= 0 else ""],
    )


def _target(event: Event, execution: Execution, names: Names) -> str:
    if event.point >= 0:
        return names.target(execution.body[event.point], event.object) if event.object is not None else ""
    return names.mbarrier(event.object) if event.object is not None else ""


def _endings(facts: Facts, run: Run, names: Names) -> Iterator[str]:
    """Who is still blocked, and what was found in this run."""
    execution = facts.execution
    where = partial(place, facts.module, execution.body)
    for strand in sorted(run.machine.blocked, key=lambda strand: strand.order):
        yield f"blocked: {strand.agent}, {strand.state}{_awaited(strand.wanted, names, where(strand.wanted[0]))}"
    for defect in execution.defects:
        if defect.run is run:
            yield f"defect: {defect.fault} at {where(defect.incident.point)}"


def _awaited(wanted: Sequence[int], names: Names, where: str) -> str:
    point, address, parity = wanted
    return f": {names.mbarrier(address)}, parity {parity}, at {where}" if point >= 0 else ""
