"""The ledger of a run: who initializes each mbarrier, arrives, copies and waits, how much and in which phases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from ptxlint.classes import dataclass
from ptxlint.execution.machine import Machine
from ptxlint.execution.story import Names, together
from ptxlint.execution.trace import Agent, Event, Kind
from ptxlint.ir import Instruction

TENSOR_BOX = -1
"""The size of a copy whose bytes are not in the PTX."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one place does to a barrier: who runs it, and how much in each phase that it takes part in.

    `amounts` are arrivals, bytes or operations per phase, each value once; for waits they are the parities in order.
    """

    point: int
    agents: tuple[Agent, ...]
    amounts: tuple[int, ...]

    @property
    def who(self) -> str:
        """The threads in words; empty for hardware."""
        return together(self.agents)


@dataclass(frozen=True, slots=True)
class Account:
    """One mbarrier of a run.

    `phases` counts those completed, `waits` holds those that returned true, `stuck` those that never did. `guards`
    names the memory that its copies fill.
    """

    address: int
    name: str
    count: int
    phases: int
    inits: tuple[Share, ...]
    arrivals: tuple[Share, ...]
    expected: tuple[Share, ...]
    copied: tuple[Share, ...]
    waits: tuple[Share, ...]
    stuck: tuple[Share, ...]
    guards: tuple[str, ...]


def ledger(machine: Machine, names: Names) -> tuple[Account, ...]:
    """The accounts of all mbarriers that a run initialized, by address."""
    books: dict[int, _Book] = {}
    for event in machine.events:
        if event.object is not None and event.kind in _MBARRIER:
            books.setdefault(event.object, _Book()).events.append(event)
    for strand in sorted(machine.blocked, key=lambda strand: strand.order):
        point, address, parity = strand.wanted
        if strand.state == "stuck" and address in books:
            books[address].stuck.append(Share(point, (strand.agent,), (parity,)))
    return tuple(book.close(address, names) for address, book in sorted(books.items()) if book.of(Kind.INIT))


_MBARRIER = frozenset({Kind.INIT, Kind.ARRIVE, Kind.EXPECT, Kind.COPY, Kind.COMPLETE, Kind.WAIT, Kind.POLL, Kind.PHASE})


@dataclass(slots=True)
class _Book:
    """Events of one mbarrier while they are being entered."""

    events: list[Event] = field(default_factory=list)
    stuck: list[Share] = field(default_factory=list)

    def of(self, kind: Kind) -> list[Event]:
        return [event for event in self.events if event.kind is kind]

    def close(self, address: int, names: Names) -> Account:
        inits, copies = self.of(Kind.INIT), self.of(Kind.COPY)
        return Account(
            address,
            names.mbarrier(address),
            inits[0].amount,
            len(self.of(Kind.PHASE)),
            tuple(_shares(inits)),
            tuple(_shares(self.of(Kind.ARRIVE), copies)),
            tuple(_shares(self.of(Kind.EXPECT))),
            tuple(_shares(event for event in copies if event.amount)),
            tuple(_waits(self.of(Kind.WAIT))),
            tuple(self.stuck),
            tuple(dict.fromkeys(names.memory(event.source) for event in copies if event.source >= 0)),
        )


def _shares(events: Iterable[Event], issuers: Iterable[Event] = ()) -> Iterator[Share]:
    """The events by place; amounts add up within a phase. What hardware does belongs to whoever issued it there."""
    issued = dict(_by_point(issuers))
    for point, group in _by_point(events):
        totals: dict[int, int] = {}
        for event in group:
            is_box = event.amount == TENSOR_BOX or totals.get(event.phase) == TENSOR_BOX
            totals[event.phase] = TENSOR_BOX if is_box else totals.get(event.phase, 0) + event.amount
        yield Share(point, _agents(group) or _agents(issued.get(point, ())), tuple(dict.fromkeys(totals.values())))


def _waits(events: Iterable[Event]) -> Iterator[Share]:
    """The waits by place; amounts are the parities that its first thread asked for."""
    for point, group in _by_point(events):
        first = group[0].agent
        same = [e for e in group if first and e.agent and e.agent.rank == first.rank and first.threads[0] in e.agent[1]]
        yield Share(point, _agents(group), tuple(event.amount for event in same))


def _by_point(events: Iterable[Event]) -> Iterator[tuple[int, list[Event]]]:
    groups: dict[int, list[Event]] = {}
    for event in events:
        groups.setdefault(event.point, []).append(event)
    return iter(groups.items())


def _agents(events: Sequence[Event]) -> tuple[Agent, ...]:
    return tuple(dict.fromkeys(event.agent for event in events if event.agent is not None))


def rings(accounts: Sequence[Account], body: Sequence[Instruction]) -> Iterator[tuple[Account, ...]]:
    """The accounts, those that are alike (the slots of a ring) together."""
    groups: dict[tuple[object, ...], list[Account]] = {}
    for account in accounts:
        groups.setdefault(_profile(account, body), []).append(account)
    return (tuple(group) for group in groups.values())


def _profile(account: Account, body: Sequence[Instruction]) -> tuple[object, ...]:
    """What the slots of a ring have in common: all but address, phases and the turn of the parities."""
    columns = (account.arrivals, account.expected, account.copied, account.waits, account.stuck)
    places = tuple(frozenset(body[share.point].loc or share.point for share in shares) for shares in columns)
    amounts = tuple(frozenset(share.amounts for share in shares) for shares in columns[:3])
    parities = tuple(share.amounts[:1] for share in account.waits)
    family = account.name.partition("[")[0].partition("+")[0]
    return (family, account.count, places, amounts, parities)
