"""The one worklist: an Analysis says what a state is and how it changes, `solve` finds the states of every point.

The header of an analysis has four lines, in its docstring:
    State     what is known at a point, and what absence from it means
    Order     what a larger state says; `join` gives the smallest state above both
    Entry     the state at the boundary: the function's entry, or its ends when the analysis runs backward
    Transfer  how one instruction changes it
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import ClassVar, Generic, TypeVar

from ptxlint.cfg import Block, Cfg, Edge
from ptxlint.ir import Instruction

State = TypeVar("State")

VISITS = 1000
"""How often `solve` visits one block before it gives up: far more than any lattice of finite height here needs."""


class Direction(Enum):
    """Which way facts flow."""

    FORWARD = "forward"
    BACKWARD = "backward"


class NoFixpoint(Exception):  # noqa: N818, it is named like what is missing
    """An analysis whose states keep growing: a defect of the analysis, at the block where it showed."""

    def __init__(self, analysis: str, block: int) -> None:
        super().__init__(f"{analysis} does not settle at block {block}")
        self.analysis = analysis
        self.block = block


class Analysis(ABC, Generic[State]):
    """Immutable states with `==`, ordered by `join`. A block that no path reaches has no state, so no bottom is needed.

    Laws, tested: join commutes, associates and is idempotent; transfer is monotone.
    """

    direction: ClassVar[Direction] = Direction.FORWARD

    @abstractmethod
    def boundary(self) -> State:
        """The state at the entry, or at each end of the function when the analysis runs backward."""

    @abstractmethod
    def join(self, first: State, second: State) -> State:
        """The state of a point that two paths reach."""

    @abstractmethod
    def transfer(self, index: int, instruction: Instruction, state: State) -> State:
        """The state on the far side of one instruction; `index` is its place in the body."""

    def along(self, edge: Edge, state: State) -> State | None:  # noqa: ARG002, for those who override it
        """The state on the far side of an edge; None when no thread can take the edge in this state."""
        return state

    def sites(self, cfg: Cfg) -> Sequence[int] | None:  # noqa: ARG002, for those who override it
        """The instructions, ascending, where `transfer` may change a state; None when that is not known."""
        return None


class Solution(Generic[State]):
    """The states of every point that a path reaches."""

    def __init__(self, cfg: Cfg, analysis: Analysis[State], first: Mapping[int, State]) -> None:
        self._cfg = cfg
        self._analysis = analysis
        self._first = first

    def entering(self, block: int) -> State | None:
        """The state at the side of a block where the analysis enters it: its top, or its bottom when backward."""
        return self._first.get(block)

    def steps(self) -> Iterator[tuple[int, Instruction, State]]:
        """Each reached instruction, in the order of the body, with its index and the state before it runs.

        "Before" is in program order whatever the direction: for a backward analysis it is what `transfer` returned.
        """
        for block in self._cfg.blocks:
            if block.index in self._first:
                yield from self._walk(block)

    def before(self, index: int) -> State | None:
        """The state before one instruction; None when no path reaches it."""
        block = self._cfg.blocks[self._cfg.block_of[index]]
        return next((state for at, _, state in self._walk(block) if at == index), None)

    def _walk(self, block: Block) -> Iterator[tuple[int, Instruction, State]]:
        state = self._first.get(block.index)
        if state is None:
            return
        if self._analysis.direction is Direction.FORWARD:
            for index in block.points:
                yield index, self._cfg.body[index], state
                state = self._analysis.transfer(index, self._cfg.body[index], state)
            return
        states = []
        for index in reversed(block.points):
            state = self._analysis.transfer(index, self._cfg.body[index], state)
            states.append((index, self._cfg.body[index], state))
        yield from reversed(states)


def solve(cfg: Cfg, analysis: Analysis[State]) -> Solution[State]:
    """The least states that agree with every path. Raises NoFixpoint when they do not settle."""
    forward = analysis.direction is Direction.FORWARD
    order = cfg.reverse_postorder if forward else tuple(reversed(cfg.reverse_postorder))
    position = {block: place for place, block in enumerate(order)}
    points = _points(cfg, analysis)
    first: dict[int, State] = {}
    visits = [0] * len(cfg.blocks)
    queue: list[int] = []
    queued: set[int] = set()

    def reach(block: int, state: State) -> None:
        known = first.get(block)
        joined = state if known is None else analysis.join(known, state)
        if known is not None and joined == known:
            return
        first[block] = joined
        if block not in queued:
            queued.add(block)
            heapq.heappush(queue, position[block])

    for block in [0] if forward else [block for block in order if cfg.blocks[block].leaves]:
        reach(block, analysis.boundary())
    while queue:
        block = order[heapq.heappop(queue)]
        queued.discard(block)
        visits[block] += 1
        if visits[block] > VISITS:
            raise NoFixpoint(type(analysis).__name__, block)
        state = first[block]
        for index in points[block] if forward else reversed(points[block]):
            state = analysis.transfer(index, cfg.body[index], state)
        for edge in cfg.blocks[block].successors if forward else cfg.blocks[block].predecessors:
            target = edge.target if forward else edge.source
            if target in position and (beyond := analysis.along(edge, state)) is not None:
                reach(target, beyond)
    return Solution(cfg, analysis, first)


def _points(cfg: Cfg, analysis: Analysis[State]) -> Sequence[Sequence[int]]:
    """For each block the instructions that the analysis looks at."""
    sites = analysis.sites(cfg)
    if sites is None:
        return [block.points for block in cfg.blocks]
    points: list[list[int]] = [[] for _ in cfg.blocks]
    for index in sites:
        points[cfg.block_of[index]].append(index)
    return points
