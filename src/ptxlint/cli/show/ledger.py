"""`ptxlint show ledger`: who initializes each mbarrier, arrives, copies and waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ptxlint.cli.kernels import kernel_arguments, kernels
from ptxlint.cli.places import place
from ptxlint.cli.runs import chosen_run, described, schedule_option
from ptxlint.cli.table import Row, print_table

if TYPE_CHECKING:
    from ptxlint.execution.ledger import Account, Share

COLUMNS = (
    "barrier",
    "address",
    "count",
    "initialized",
    "phases",
    "arrivals a phase",
    "bytes a phase",
    "waits",
    "guards",
)
PARITIES = 8
"""Parities of one wait that are printed."""

Place = Callable[[int], str]


@click.command()
@kernel_arguments
@schedule_option
@click.option("--each", "is_each", is_flag=True, help="One row for each slot of a ring.")
def command(file: str, kernel: str, schedule: str, is_each: bool, **launch: Any) -> None:
    """Print the ledger of the mbarriers of each kernel in FILE: counts, arrivals, bytes, waits, what they guard."""
    from ptxlint.execution.ledger import ledger, rings
    from ptxlint.execution.story import Names

    for facts in kernels(file, kernel, **launch):
        execution = facts.execution
        run = chosen_run(execution, schedule)
        if run is None:
            click.echo(f"{facts.function.name}: nothing to run")
            continue
        accounts = ledger(run.machine, Names.of(execution))
        groups = [(account,) for account in accounts] if is_each else rings(accounts, execution.body)
        where = partial(place, facts.module, execution.body)
        print_table(described(facts, run), COLUMNS, (_row(group, where) for group in groups))


def _row(group: Sequence[Account], where: Place) -> Row:
    from ptxlint.execution.story import brief

    first = group[0]
    return (
        [brief([account.name for account in group])],
        [f"{first.address:#x}"],
        [str(first.count)],
        list(dict.fromkeys(f"{share.who} at {where(share.point)}" for account in group for share in account.inits))[:2],
        [_span([account.phases for account in group])],
        [f"{_amounts(share)} by {share.who} at {where(share.point)}" for share in first.arrivals],
        [
            *(f"{_amounts(share)} expected by {share.who} at {where(share.point)}" for share in first.expected),
            *(f"{_amounts(share)} copied by {share.who} at {where(share.point)}" for share in first.copied),
        ],
        [
            *(f"{share.who}: {_parities(share)} at {where(share.point)}" for share in first.waits),
            *(
                f"{share.who}: {_parities(share)} at {where(share.point)}, never true ({account.name})"
                for account in group
                for share in account.stuck
            ),
        ],
        [brief([name for account in group for name in account.guards])],
    )


def _span(numbers: Sequence[int]) -> str:
    return f"{min(numbers)}" if min(numbers) == max(numbers) else f"{min(numbers)}-{max(numbers)}"


def _amounts(share: Share) -> str:
    return " or ".join("a tensor box" if amount < 0 else str(amount) for amount in share.amounts[:3])


def _parities(share: Share) -> str:
    shown = " ".join(map(str, share.amounts[:PARITIES]))
    return f"{shown} ..." if len(share.amounts) > PARITIES else shown
