"""`ptxlint show values`: the operands of each synchronization point as they were in the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ptxlint import isa
from ptxlint.cli.kernels import kernel_arguments, kernels
from ptxlint.cli.places import place
from ptxlint.cli.runs import chosen_run, described, schedule_option
from ptxlint.cli.table import Row, print_table

if TYPE_CHECKING:
    from ptxlint.execution.story import Names
    from ptxlint.execution.trace import Event, Kind
    from ptxlint.facts import Facts
    from ptxlint.ir import Instruction

COLUMNS = ("at", "instruction", "run by", "operand", "values")
MOST = 8
"""Values of one operand that are printed."""


@click.command()
@kernel_arguments
@schedule_option
def command(file: str, kernel: str, schedule: str, **launch: Any) -> None:
    """Print what the operands of each synchronization point of each kernel in FILE came to: barriers, parities, counts.

    The registers of the slice are worked out by running it; a point that no run reached has no values.
    """
    from ptxlint.execution.story import Names

    for facts in kernels(file, kernel, **launch):
        execution = facts.execution
        run = chosen_run(execution, schedule)
        if run is None:
            click.echo(f"{facts.function.name}: nothing to run")
            continue
        names = Names.of(execution)
        seen: dict[int, list[Event]] = {point: [] for point in execution.points}
        for event in run.machine.events:
            seen.setdefault(event.point, []).append(event)
        rows = (_row(point, seen[point], facts, names) for point in sorted(seen) if point in execution.points)
        print_table(described(facts, run), COLUMNS, rows)


def _row(point: int, events: list[Event], facts: Facts, names: Names) -> Row:
    from ptxlint.execution.story import together

    instruction = facts.execution.body[point]
    operands = list(_operands(instruction, events, names))
    agents = tuple(dict.fromkeys(event.agent for event in events if event.agent))
    return (
        [place(facts.module, facts.execution.body, point)],
        [instruction.name],
        [together(agents) or "not reached"],
        [operand for operand, _ in operands],
        [values for _, values in operands],
    )


def _operands(instruction: Instruction, events: list[Event], names: Names) -> Iterator[tuple[str, str]]:
    """Each operand that the events tell of, as written, with its values in the order in which they were met."""
    roles = isa.roles(instruction)
    barrier = roles.get("mbarrier") or roles.get("barrier")
    if barrier is not None:
        targets = (names.target(instruction, event.object) for event in events if event.object is not None)
        yield f"{barrier}", _few(targets)
    for role, kind in _amounts().items():
        if role in roles:
            found = [str(event.amount) for event in events if event.kind in kind]
            if found:
                yield f"{role} {roles[role]}", _few(found)


def _amounts() -> dict[str, tuple[Kind, ...]]:
    """The role of the operand that the amount of an event stands for. Arrivals are those of all threads together."""
    from ptxlint.execution.trace import Kind

    return {
        "parity": (Kind.WAIT, Kind.POLL),
        "token": (Kind.WAIT, Kind.POLL),
        "count": (Kind.INIT, Kind.SYNC, Kind.BAR_ARRIVE, Kind.ARRIVE),
        "tx": (Kind.EXPECT, Kind.COMPLETE),
        "size": (Kind.COPY,),
    }


def _few(values: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(values))
    return ", ".join(distinct[:MOST]) + (f", ... ({len(distinct)})" if len(distinct) > MOST else "")
