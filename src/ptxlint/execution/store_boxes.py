"""How many bytes a tensor store reads, which the PTX does not say: what was written for it.

A store is no larger than the run of bytes that one place of the source, or one copy, has written from the store's
address on since the store before; nor does it reach the next place that a tensor copy names. Where each warp that wrote
commits groups of its own, each stores what it wrote itself. All executions of one instruction have boxes of one size,
so the least of what they show holds for it; one whose first bytes are not written yet shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxlint import isa
from ptxlint.execution.clock import WARP_LINE, Moment
from ptxlint.execution.conflict import Access, Interval, Space
from ptxlint.execution.lifetimes import Lifetimes
from ptxlint.execution.order import Order
from ptxlint.execution.schedule import OutOfBudgetError
from ptxlint.execution.trace import Agent, Event, Kind
from ptxlint.execution.ways import Warps, place, warps_of
from ptxlint.ir import Instruction
from ptxlint.isa import Mode, Proxy

MOST_LOOKED_AT = 2
"""Executions of one store that are looked at."""

COPY = "bulk copy"
"""What the machine calls copies that an mbarrier tracks."""

LEAST = 128
"""Bytes of a box at least: one row of a swizzle atom."""


class _NoLives(Lifetimes):
    """No mbarrier is looked at."""

    def initialize(self, agent: Agent, address: int, point: int) -> None:
        """It stays unknown."""


class Record(Order):
    """The accesses of a run that are watched, without any order, until each store has been seen often enough."""

    def __init__(self, watched: frozenset[int | str], stores: frozenset[int]) -> None:
        super().__init__(watched)
        self.awaited = dict.fromkeys(stores, MOST_LOOKED_AT)
        self.lifetimes = _NoLives(self)

    def _ignore(self, *_: object, **__: object) -> None:
        """No clock goes on."""

    release = acquire = converge = arrive = wait = bar_arrive = bar_leave = cluster_arrive = cluster_leave = _ignore
    fence = fence_memory = fence_tensor_memory = commit = wait_group = issue = tensor_commit = copies_arrive = _ignore

    def in_group(self, agent: Agent, warp: int, kind: str) -> Moment:
        """At no time in particular."""
        del agent, warp, kind
        return _SOMETIME

    def access(
        self,
        agent: Agent,
        warp: int,
        intervals: Sequence[Interval],
        point: int,
        *,
        is_write: bool,
        space: Space = Space.SHARED,
        what: str = "",
        **_: object,
    ) -> None:
        """Raises OutOfBudgetError where enough has been seen."""
        if point not in self.watched and not (is_write and what in self.watched):
            return
        turn = self.turns[point, agent.rank, warp] = self.turns.get((point, agent.rank, warp), 0) + 1
        filled = (interval for interval in intervals if interval[0] < interval[1])
        self.history.extend(
            Access(space, interval, is_write, Proxy.GENERIC, _SOMETIME, point, agent, warp, turn, self.when, what=what)
            for interval in filled
        )
        if point in self.awaited:
            self.awaited[point] -= 1
            if max(self.awaited.values()) <= 0:
                raise OutOfBudgetError


_SOMETIME = Moment((WARP_LINE, 0, 0), 0)
"""When an access is over of which that is not asked."""


def tensor_stores(body: Sequence[Instruction]) -> frozenset[int]:
    """The instructions that read a box of shared memory for a tensor map."""
    return frozenset(
        point
        for point, instruction in enumerate(body)
        if "tensor" in instruction.modifiers
        for access in isa.accesses(instruction)
        if access.mode is Mode.READ and not access.is_mapped and isa.space(instruction, access).startswith("shared")
    )


def store_extents(
    history: Sequence[Access],
    stores: frozenset[int],
    body: Sequence[Instruction],
    events: Sequence[Event] = (),
    *,
    is_whole: bool = True,
) -> Mapping[int, int]:
    """Bytes of the boxes of tensor stores; `history` has the stores, with the maps that they use, and all writes of a
    run in order.

    Where it is not whole, a store that was run once may have neighbours yet to be seen: nothing is said of it.
    """
    history = [access for access in history if access.space is Space.SHARED]
    named = sorted({access.interval[0] for access in history if access.point in stores or _is_copy(access)})
    seen: dict[int, list[int]] = {}
    for at, access in enumerate(history):
        sizes = seen.setdefault(access.point, [])
        if access.point in stores and len(sizes) < MOST_LOOKED_AT:
            start = access.interval[0]
            following = next((other for other in named if other > start), None)
            stop = _reach(start, _written(history, at, body, _committers(access, events)))
            sizes.append((stop if following is None else min(stop, following)) - start)
    enough = 1 if is_whole else 2
    return {
        point: max(LEAST, min((size for size in sizes if size), default=LEAST))
        for point, sizes in seen.items()
        if point in stores and len(sizes) >= enough
    }


def _is_copy(access: Access) -> bool:
    return access.is_write and access.what == COPY


def _committers(store: Access, events: Sequence[Event]) -> Warps:
    """The warps of which one lane commits groups where the group of a store is committed.

    A commit that all lanes run, as Triton has it, makes empty groups beside the one of the thread that stores.
    """
    kept = ((event, event.agent) for event in events if event.kind is Kind.COMMIT and event.agent)
    commits = [(event.order, event.point, who) for event, who in kept if len(who.threads) == len(warps_of(who))]
    own = (point for order, point, agent in commits if order >= store.when and _is_of(agent, store))
    at = next(own, None)
    return frozenset().union(*(warps_of(agent) for _, point, agent in commits if point == at))


def _is_of(agent: Agent, access: Access) -> bool:
    return agent.rank == access.agent.rank and access.agent.threads[0] in agent.threads


def _written(history: Sequence[Access], at: int, body: Sequence[Instruction], committers: Warps) -> Iterator[Interval]:
    """What the writer of a store's first bytes wrote since the store was last run there.

    Warps that lag behind may do their part of it after the store: that is what a missing barrier looks like.
    committers: the warps that commit groups where the store is; if all who wrote are among them, what its own wrote.
    """
    store = history[at]
    start = store.interval[0]
    writer = None
    earlier: list[tuple[object, Access]] = []
    for access in reversed(history[:at]):
        if access.point == store.point and access.interval[0] == start:
            break
        if access.is_write:
            here = place(body, access)
            earlier.append((here, access))
            if writer is None and access.interval[0] <= start < access.interval[1]:
                writer = here
    written = [access for origin, access in earlier if origin == writer]
    turns: dict[tuple[int, int], int] = {}
    for access in written:
        key = (access.point, access.agent.rank)
        turns[key] = max(access.turn, turns.get(key, 0))
    later = (access for access in history[at + 1 :] if access.is_write)
    written += [access for access in later if access.turn <= turns.get((access.point, access.agent.rank), 0)]
    is_by_warp = committers.issuperset((access.agent.rank, access.warp) for access in written)
    return (access.interval for access in written if not is_by_warp or access.warp == store.warp)


def _reach(start: int, intervals: Iterator[Interval]) -> int:
    """Where the run of written bytes that begins at an address ends."""
    end = start
    for first, last in sorted(intervals):
        if first > end:
            break
        end = max(end, last)
    return end
