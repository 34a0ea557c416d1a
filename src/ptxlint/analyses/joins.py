"""Which path leads to a join: the branches between its dominator and itself, as a tree of decisions."""

from __future__ import annotations

from collections.abc import Mapping

from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.ir import Register

BRANCHES = 24
"""How many branches a tree may hold before its join is left alone."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The branch at the end of a block: what is decided where its predicate holds, and where not.

    An outcome is another decision, or the block by which the join is entered.
    """

    block: int
    predicate: Register
    yes: Outcome
    no: Outcome


Outcome = Decision | int


def decisions(cfg: Cfg) -> Mapping[int, Decision]:
    """For each join whose entries are decided by guarded branches alone, without a loop between, the tree of them."""
    order = {block: place for place, block in enumerate(cfg.reverse_postorder)}
    found: dict[int, Decision] = {}
    for block in cfg.reverse_postorder:
        sources = {edge.source for edge in cfg.blocks[block].predecessors if edge.source in order}
        branch = cfg.immediate_dominators[block]
        if len(sources) < 2 or branch is None or any(order[source] >= order[block] for source in sources):
            continue
        outcome = _Tree(cfg, order, block).outcome(branch)
        if isinstance(outcome, Decision):
            found[block] = outcome
    return found


class _Tree:
    """Builds the tree of one join; what cannot be decided is None."""

    def __init__(self, cfg: Cfg, order: Mapping[int, int], join: int) -> None:
        self._cfg = cfg
        self._order = order
        self._join = join
        self._left = BRANCHES

    def outcome(self, block: int) -> Outcome | None:
        """How the join is entered from the end of a block. A side that never enters it leaves it to the other."""
        edges = self._cfg.blocks[block].successors
        if len({edge.target for edge in edges}) == 1:
            return self._beyond(block, edges[0].target)
        if len(edges) != 2 or edges[0].guard is None or edges[1].guard is None:
            return None
        self._left -= 1
        if self._left < 0:
            return None
        sides = {edge.guard.negated: edge.target for edge in edges if edge.guard is not None}
        if len(sides) != 2:
            return None
        reach = {negated: self._reaches(target) for negated, target in sides.items()}
        if not all(reach.values()):
            return self._beyond(block, sides[reach[True]]) if any(reach.values()) else None
        yes, no = self._beyond(block, sides[False]), self._beyond(block, sides[True])
        if yes is None or no is None:
            return None
        return Decision(block, edges[0].guard.register, yes, no)

    def _beyond(self, block: int, target: int) -> Outcome | None:
        if target == self._join:
            return block
        if self._order[target] <= self._order[block]:
            return None
        return self.outcome(target)

    def _reaches(self, target: int) -> bool:
        """Whether control that has come to a block may still come to the join."""
        return target == self._join or (
            self._order[target] < self._order[self._join] and bool(self._cfg.blocks[target].successors)
        )
