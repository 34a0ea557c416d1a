"""The control-flow graph of a function: blocks as index ranges into its body, edges with the guard that takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property

from ptxlint import isa
from ptxlint.classes import dataclass
from ptxlint.graph import dominator_tree, nest_loops, reverse_postorder, with_virtual_exit
from ptxlint.ir import Function, Guard, Instruction, Label
from ptxlint.isa.row import Flow

LEFT_ALIGNED = "\\l"
"""What ends a left-aligned line in a DOT label."""


class EdgeKind(StrEnum):
    """Why control goes along an edge."""

    FALL_THROUGH = "fall-through"
    BRANCH = "branch"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Edge:
    """One way from a block to another. `guard` holds in every thread that takes it; None when all threads do."""

    source: int
    target: int
    kind: EdgeKind = EdgeKind.FALL_THROUGH
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """The instructions `start` (included) to `stop` (excluded) of a body: entered at the top, left at the bottom.

    `leaves` says that some thread may end the function at the bottom: by ret, exit, trap, or the end of the body. Only
    the block at the end of a body, the target of a label that stands there, is empty.
    """

    index: int
    start: int
    stop: int
    successors: tuple[Edge, ...]
    predecessors: tuple[Edge, ...]
    leaves: bool

    @property
    def points(self) -> range:
        """The indices of its instructions."""
        return range(self.start, self.stop)


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: the blocks that reach one of its latches without passing its header.

    `parent` is the index of the next larger loop that holds it, None for an outermost one; depth counts from 1.
    """

    index: int
    header: int
    latches: tuple[int, ...]
    parent: int | None
    depth: int


class Cfg:
    """Blocks in the order of the body; block 0 is the entry. Everything else is computed when first asked for."""

    def __init__(self, function: Function, body: Sequence[Instruction], blocks: tuple[Block, ...]) -> None:
        self.function = function
        self.body = body
        self.blocks = blocks

    @cached_property
    def block_of(self) -> Sequence[int]:
        """For each instruction the index of its block."""
        return [block.index for block in self.blocks for _ in block.points]

    @cached_property
    def reverse_postorder(self) -> tuple[int, ...]:
        """The blocks that the entry reaches, each before its successors except along retreating edges."""
        return tuple(reverse_postorder(0, self._successors))

    @cached_property
    def reachable(self) -> frozenset[int]:
        """The blocks that the entry reaches."""
        return frozenset(self.reverse_postorder)

    @cached_property
    def immediate_dominators(self) -> Sequence[int | None]:
        """The closest strict dominator of each block: None for the entry and for unreachable blocks."""
        return dominator_tree(0, self._successors, self._predecessors)

    @cached_property
    def exit(self) -> int:
        """The index that stands for the virtual exit: one past the last block."""
        return len(self.blocks)

    @cached_property
    def immediate_post_dominators(self) -> Sequence[int | None]:
        """The closest strict post-dominator of each block, `exit` where only the end of the function is one.

        A loop without a way out is given one from its last block in reverse postorder, so that each block has an
        answer; None for unreachable blocks.
        """
        successors, predecessors = with_virtual_exit(
            self._successors, [block.index for block in self.blocks if block.leaves], self.reverse_postorder
        )
        found = dominator_tree(self.exit, predecessors, successors)
        return [found[block] if block in self.reachable else None for block in range(self.exit)]

    def dominates(self, first: int, second: int) -> bool:
        """Whether each path from the entry to block `second` passes block `first`; a block dominates itself."""
        return _is_ancestor(self._dominator_intervals, first, second)

    def post_dominates(self, first: int, second: int) -> bool:
        """Whether each path from block `second` to the end passes block `first`; a block post-dominates itself."""
        return _is_ancestor(self._post_dominator_intervals, first, second)

    @cached_property
    def dominance_frontiers(self) -> Sequence[frozenset[int]]:
        """For each block the blocks where its dominance ends: the joins that see another definition besides its own."""
        frontiers: list[set[int]] = [set() for _ in self.blocks]
        for block in self.reverse_postorder:
            sources = [edge.source for edge in self.blocks[block].predecessors if edge.source in self.reachable]
            if len(sources) < 2 and block != 0:
                continue
            for source in sources:
                runner: int | None = source
                while runner is not None and runner != self.immediate_dominators[block]:
                    if block in frontiers[runner]:
                        break
                    frontiers[runner].add(block)
                    runner = self.immediate_dominators[runner]
        return [frozenset(frontier) for frontier in frontiers]

    @cached_property
    def back_edges(self) -> tuple[Edge, ...]:
        """The edges whose target dominates their source: each belongs to a natural loop."""
        return tuple(edge for edge in self._retreating if self.dominates(edge.target, edge.source))

    @cached_property
    def irreducible_edges(self) -> tuple[Edge, ...]:
        """The retreating edges into a cycle with more than one entry: no natural loop describes that cycle."""
        return tuple(edge for edge in self._retreating if not self.dominates(edge.target, edge.source))

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The natural loops, outer ones before the loops inside them; loops of one header are one loop."""
        return self._loop_nest[0]

    @cached_property
    def loop_of(self) -> Sequence[int | None]:
        """For each block the index of the innermost loop that holds it."""
        return self._loop_nest[1]

    def enclosing_loops(self, block: int) -> Iterator[Loop]:
        """The loops that hold a block, innermost first."""
        index = self.loop_of[block]
        while index is not None:
            yield self.loops[index]
            index = self.loops[index].parent

    def loop_blocks(self, loop: Loop) -> frozenset[int]:
        """The blocks of a loop, those of inner loops included."""
        inside = {loop.index}
        for other in self.loops[loop.index + 1 :]:
            if other.parent in inside:
                inside.add(other.index)
        return frozenset(block for block, index in enumerate(self.loop_of) if index in inside)

    @cached_property
    def _successors(self) -> Sequence[Sequence[int]]:
        return [[edge.target for edge in block.successors] for block in self.blocks]

    @cached_property
    def _predecessors(self) -> Sequence[Sequence[int]]:
        return [[edge.source for edge in block.predecessors] for block in self.blocks]

    @cached_property
    def _dominator_intervals(self) -> Sequence[tuple[int, int]]:
        return _intervals(self.immediate_dominators, 0)

    @cached_property
    def _post_dominator_intervals(self) -> Sequence[tuple[int, int]]:
        return _intervals([*self.immediate_post_dominators, None], self.exit)

    @cached_property
    def _retreating(self) -> tuple[Edge, ...]:
        position = {block: place for place, block in enumerate(self.reverse_postorder)}
        edges = (edge for block in self.reverse_postorder for edge in self.blocks[block].successors)
        return tuple(edge for edge in edges if position[edge.target] <= position[edge.source])

    @cached_property
    def _loop_nest(self) -> tuple[tuple[Loop, ...], Sequence[int | None]]:
        latches: dict[int, list[int]] = {}
        for edge in self.back_edges:
            latches.setdefault(edge.target, []).append(edge.source)
        parents, innermost = nest_loops(self.reverse_postorder, latches, self._predecessors)
        headers = [block for block in self.reverse_postorder if block in latches]
        index_of = {header: index for index, header in enumerate(headers)}
        loops: list[Loop] = []
        for index, header in enumerate(headers):
            outer = parents[header]
            parent = None if outer is None else index_of[outer]
            depth = 1 if parent is None else loops[parent].depth + 1
            loops.append(Loop(index, header, tuple(sorted(set(latches[header]))), parent, depth))
        of = [None if header is None else index_of[header] for header in innermost]
        return tuple(loops), of


def build(function: Function, never_returning: frozenset[str] = frozenset()) -> Cfg:
    """The graph of a function that has a body; a call of a function named in `never_returning` ends its path.

    A branch to a table that the function does not declare has no successors and leaves the function.
    """
    body = function.body or ()
    ends = {index: flow for index, instruction in enumerate(body) if (flow := _flow(instruction, never_returning))}
    starts = {0}
    for index in ends:
        starts.add(index + 1)
        starts.update(_targets(function, body[index]))
    last = len(body)
    if last and last not in {target for index in ends for target in _targets(function, body[index])}:
        starts.discard(last)
    ordered = sorted(starts)
    stops = [*ordered[1:], last]
    at = {start: index for index, start in enumerate(ordered)}
    outgoing = [tuple(_edges(function, body, at, block, stop, ends.get(stop - 1))) for block, stop in enumerate(stops)]
    incoming: list[list[Edge]] = [[] for _ in ordered]
    for edges in outgoing:
        for edge in edges:
            incoming[edge.target].append(edge)
    blocks = tuple(
        Block(index, start, stop, outgoing[index], tuple(incoming[index]), _leaves(body, stop, ends, outgoing[index]))
        for index, (start, stop) in enumerate(zip(ordered, stops, strict=True))
    )
    return Cfg(function, body, blocks)


def _flow(instruction: Instruction, never_returning: frozenset[str]) -> Flow | None:
    """How an instruction ends its block; None when it does not."""
    row = isa.row(instruction)
    if row is None or row.flow is Flow.NEXT:
        return None
    if row.flow is Flow.CALL:
        names = {str(operand) for operand in instruction.operands}
        return Flow.EXIT if names & never_returning else None
    return row.flow


def _targets(function: Function, instruction: Instruction) -> Iterator[int]:
    """The indices that a branch may go to."""
    for operand in instruction.operands:
        if isinstance(operand, Label):
            names = function.tables.get(operand.name, (operand.name,))
            yield from (function.labels[name] for name in names if name in function.labels)


def _edges(
    function: Function, body: Sequence[Instruction], at: dict[int, int], block: int, stop: int, flow: Flow | None
) -> Iterator[Edge]:
    """The edges that leave the block which ends before `stop`."""
    if flow is None:
        following = at.get(stop, block)
        if following != block:
            yield Edge(block, following)
        return
    instruction = body[stop - 1]
    if flow in (Flow.BRANCH, Flow.TABLE):
        kind = EdgeKind.TABLE if flow is Flow.TABLE else EdgeKind.BRANCH
        for target in dict.fromkeys(_targets(function, instruction)):
            yield Edge(block, at[target], kind, instruction.guard)
    if instruction.guard and stop in at:
        opposite = Guard(instruction.guard.register, not instruction.guard.negated)
        yield Edge(block, at[stop], EdgeKind.FALL_THROUGH, opposite)


def _leaves(body: Sequence[Instruction], stop: int, ends: dict[int, Flow], edges: tuple[Edge, ...]) -> bool:
    """Whether some thread ends the function at the bottom of a block with these edges."""
    flow = ends.get(stop - 1)
    if flow in (Flow.RETURN, Flow.EXIT):
        return True
    if flow in (Flow.BRANCH, Flow.TABLE):
        guarded_at_the_end = body[stop - 1].guard is not None and len(edges) < 2 and stop == len(body)
        return guarded_at_the_end or not edges
    return not edges


def _intervals(parents: Sequence[int | None], root: int) -> Sequence[tuple[int, int]]:
    """For each node of a tree the half-open range of preorder numbers below it; (0, 0) outside the tree."""
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(node)
    first = [0] * len(parents)
    last = [0] * len(parents)
    clock = 0
    stack = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            last[node] = clock
            continue
        first[node] = clock
        clock += 1
        stack.append((node, True))
        stack.extend((child, False) for child in children[node])
    return list(zip(first, last, strict=True))


def _is_ancestor(intervals: Sequence[tuple[int, int]], first: int, second: int) -> bool:
    return intervals[first][0] <= intervals[second][0] < intervals[first][1]


def render(cfg: Cfg, dot: bool = False) -> str:
    """The graph as text for people, or as a DOT graph."""
    return "\n".join(_dot(cfg) if dot else _text(cfg)) + "\n"


def _text(cfg: Cfg) -> Iterator[str]:
    names = _names(cfg)
    yield f"{cfg.function.name}: {len(cfg.blocks)} blocks, {len(cfg.loops)} loops"
    for block in cfg.blocks:
        loop = next(cfg.enclosing_loops(block.index), None)
        marks = [] if loop is None else [f"loop depth {loop.depth}{', header' if loop.header == block.index else ''}"]
        if block.index not in cfg.reachable:
            marks.append("unreachable")
        dominator = cfg.immediate_dominators[block.index]
        if dominator is not None:
            marks.append(f"dominated by {names[dominator]}")
        joined = cfg.immediate_post_dominators[block.index]
        if joined is not None:
            marks.append(f"joins at {'the end' if joined == cfg.exit else names[joined]}")
        yield f"\n{names[block.index]}:{'  // ' + '; '.join(marks) if marks else ''}"
        yield from (f"    {cfg.body[index]}" for index in block.points)
        targets = [f"{names[edge.target]}{f' if {edge.guard}' if edge.guard else ''}" for edge in block.successors]
        yield f"    -> {', '.join([*targets, *(['end'] if block.leaves else [])])}"


def _dot(cfg: Cfg) -> Iterator[str]:
    names = _names(cfg)
    yield f"digraph {_quoted([cfg.function.name])} {{"
    yield '    node [shape=box, fontname="monospace"];'
    for block in cfg.blocks:
        lines = [f"{names[block.index]}:", *(str(cfg.body[index]) for index in block.points)]
        yield f"    b{block.index} [label={_quoted(lines, ends=LEFT_ALIGNED)}];"
        for edge in block.successors:
            label = f" [label={_quoted([str(edge.guard)])}]" if edge.guard else ""
            yield f"    b{block.index} -> b{edge.target}{label};"
        if block.leaves:
            yield f"    b{block.index} -> end;"
    yield "}"


def _quoted(lines: Iterable[str], ends: str = "") -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') + ends for line in lines)
    return '"' + "".join(escaped) + '"'


def _names(cfg: Cfg) -> Sequence[str]:
    """What each block is called: the first label that stands before it, else its number."""
    labels: dict[int, str] = {}
    for label, index in cfg.function.labels.items():
        labels.setdefault(index, label)
    return [f"B{block.index} {labels.get(block.start, '')}".rstrip() for block in cfg.blocks]
