"""The synchronization slice: which instructions decide what the barriers of a kernel see.

The backward closure, over data and control, of the operands of every synchronization instruction. It is insensitive to
order, so it may hold too much and never too little, with one exception: stores at addresses that depend on the thread
are taken for data, and a control word read back from one of them reads as 0 in every thread alike. Branches outside it
are not taken: their region is skipped, from the branch to its immediate post-dominator. Paths that can only end in
`trap` are failed assertions, not ways on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.execution.arithmetic import CARRY
from ptxlint.execution.spread import branches, inverted, spread, uses_of
from ptxlint.graph import dominator_tree, reverse_postorder, with_virtual_exit
from ptxlint.ir import Address, Element, Instruction, Negated, Not, Operand, Pair, Register, SpecialRegister, Vector

UNUSED_ROLES = frozenset({"source", "policy", "offsets", "hint", "value", "compare", "token"})
"""Roles of a synchronization instruction that do not change what barriers see."""

LANE_DEPENDENT = frozenset({"%tid.x", "%tid.y", "%tid.z", "%laneid", "%warpid"})
LANE_PREFIXES = ("%lanemask",)
CARRYING = frozenset({"addc", "subc", "madc"})
CROSS_LANE_VARYING = frozenset({"elect.sync", "match", "activemask"})


@dataclass(frozen=True, slots=True)
class Slice:
    """What to run of a body.

    points: the instructions in the slice. varying: the registers that threads of one agent may hold different values
    of. skips: for a block that ends in a branch outside the slice, the block to go on with (`cfg.exit` for the end).
    joins: for a block, where its branches meet again. inputs: for each branch or synchronization point in the slice,
    what it depends on: names of parameters and indices of loads from global memory. valued: the points whose results
    are needed, so that a seed among them does more than mark its place.
    """

    points: frozenset[int]
    varying: frozenset[str]
    skips: Mapping[int, int]
    joins: Mapping[int, int]
    seeds: frozenset[int]
    definitions: Mapping[str, Sequence[int]]
    valued: frozenset[int]


def compute(cfg: Cfg, seeds: Mapping[int, Iterable[Register]]) -> Slice:
    """The slice of a body for these points, each with the registers that it needs."""
    return Slicer(cfg).slice(seeds)


class Slicer:
    """Slices of one body. What does not depend on the seeds is worked out once."""

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        self.passable = _passable(cfg)
        self.ends = _post_dominators(cfg, self.passable)
        self.joins = {**self.ends, **_post_dominators(cfg, self.passable, guarded_exits=False)}
        self.controllers = _controllers(cfg, self.passable, self.ends)
        self.results = [tuple(register.name for register in isa.writes(instruction)) for instruction in cfg.body]
        self.definitions = _definitions(cfg, self.results)
        self.uses = uses_of(cfg, self.passable)
        self.controlled = inverted(self.controllers)
        self.varying = self.spread(_is_lane_source)[0]
        self.stores = _stores(cfg, spread(self, _is_lane_source, over_control=False)[0])

    def slice(self, seeds: Mapping[int, Iterable[Register]]) -> Slice:
        """The slice for these points, each with the registers that it needs."""
        cfg = self.cfg
        closure = _Closure(self)
        closure.run(seeds)
        points = frozenset(closure.points)
        skips = {
            block.index: self.ends[block.index]
            for block in cfg.blocks
            if block.index in self.passable
            and block.points
            and branches(cfg.body[block.stop - 1])
            and block.stop - 1 not in points
            and len({edge.target for edge in block.successors}) + block.leaves > 1
        }
        valued = frozenset(closure.valued)
        return Slice(points, self.varying, skips, self.joins, frozenset(seeds), self.definitions, valued)

    def spread(self, is_source: Callable[[Instruction], bool]) -> tuple[frozenset[str], frozenset[int]]:
        """How far the results of some instructions reach, over data and control: the registers that depend on them, and
        the blocks that run or not by such a register."""
        return spread(self, is_source)


def _passable(cfg: Cfg) -> frozenset[int]:
    """The reachable blocks from which some path ends otherwise than in `trap`, or never ends."""
    aborting = {
        block.index
        for block in cfg.blocks
        if block.leaves and not block.successors and block.points and _aborts(cfg.body[block.stop - 1])
    }
    order = cfg.reverse_postorder
    doomed = set(aborting)
    changed = True
    while changed:
        changed = False
        for index in reversed(order):
            block = cfg.blocks[index]
            if index in doomed or block.leaves or not block.successors:
                continue
            if all(edge.target in doomed for edge in block.successors):
                doomed.add(index)
                changed = True
    passable = frozenset(order) - doomed
    return passable or frozenset(order)


def _aborts(instruction: Instruction) -> bool:
    return instruction.guard is None and (isa.aborts(instruction) or instruction.opcode == "call")


def _post_dominators(cfg: Cfg, passable: frozenset[int], *, guarded_exits: bool = True) -> dict[int, int]:
    """The immediate post-dominator of each block, with or without the ways out by an exit that only some threads take.

    Where lanes meet again, exited ones are not waited for.
    """
    successors = [
        [edge.target for edge in block.successors if edge.target in passable] if block.index in passable else []
        for block in cfg.blocks
    ]
    order = reverse_postorder(0, successors)
    leaving = [
        i
        for i in order
        if cfg.blocks[i].leaves and not _guarded_abort(cfg, i) and (guarded_exits or not cfg.blocks[i].successors)
    ]
    forward, backward = with_virtual_exit(successors, leaving, order)
    tree = dominator_tree(cfg.exit, backward, forward)
    return {block: found for block in order if (found := tree[block]) is not None}


def _guarded_abort(cfg: Cfg, block: int) -> bool:
    last = cfg.body[cfg.blocks[block].stop - 1] if cfg.blocks[block].points else None
    return last is not None and isa.aborts(last) and bool(cfg.blocks[block].successors)


def _controllers(cfg: Cfg, passable: frozenset[int], joins: Mapping[int, int]) -> dict[int, set[int]]:
    """For each block the blocks whose last branch decides whether it runs."""
    found: dict[int, set[int]] = {}
    for block in cfg.blocks:
        if block.index not in passable:
            continue
        targets = {edge.target for edge in block.successors if edge.target in passable}
        if len(targets) + (block.leaves and not _guarded_abort(cfg, block.index)) < 2:
            continue
        stop = joins.get(block.index)
        for target in targets:
            runner: int | None = target
            while runner is not None and runner != stop and runner != cfg.exit:
                found.setdefault(runner, set()).add(block.index)
                runner = joins.get(runner)
    return found


def reads(instruction: Instruction) -> tuple[str, ...]:
    """The names of the registers that an instruction reads, the carry flag included."""
    names = tuple(register.name for register in isa.reads(instruction))
    return (*names, CARRY.name) if instruction.opcode in CARRYING else names


def _definitions(cfg: Cfg, results: Sequence[tuple[str, ...]]) -> dict[str, list[int]]:
    """Where each register is written, the carry flag included."""
    found: dict[str, list[int]] = {}
    for point, instruction in enumerate(cfg.body):
        for name in (*results[point], CARRY.name) if "cc" in instruction.modifiers else results[point]:
            found.setdefault(name, []).append(point)
    return found


class _Closure:
    """The growing set of points, and the registers and memory that they read."""

    def __init__(self, slicer: Slicer) -> None:
        self.cfg = slicer.cfg
        self.definitions = slicer.definitions
        self.controllers = slicer.controllers
        self.passable = slicer.passable
        self.stores = slicer.stores
        self.points: set[int] = set()
        self.valued: set[int] = set()
        self.wanted: set[str] = set()
        self.spaces: set[str] = set()
        self.blocks: set[int] = set()
        self.pending: list[int] = []

    def run(self, seeds: Mapping[int, Iterable[Register]]) -> None:
        for point in sorted(seeds):
            self._mark(point, seeds[point])
        while self.pending:
            point = self.pending.pop()
            for space in _loads_from(self.cfg.body[point]):
                self._want_space(space)

    def _mark(self, point: int, registers: Iterable[Register]) -> None:
        block = self.cfg.block_of[point]
        if block not in self.passable:
            return
        self.points.add(point)
        for register in registers:
            self._want(register.name)
        guard = self.cfg.body[point].guard
        if guard:
            self._want(guard.register.name)
        self._reach(block)

    def _value(self, point: int) -> None:
        """Take a point in for its result or its store."""
        if point in self.valued or self.cfg.block_of[point] not in self.passable:
            return
        self.valued.add(point)
        self.pending.append(point)
        self._mark(point, isa.reads(self.cfg.body[point]))

    def _reach(self, block: int) -> None:
        stack = [block]
        while stack:
            current = stack.pop()
            if current in self.blocks:
                continue
            self.blocks.add(current)
            for controller in self.controllers.get(current, ()):
                point = self.cfg.blocks[controller].stop - 1
                if point not in self.points:
                    self.points.add(point)
                    for register in isa.reads(self.cfg.body[point]):
                        self._want(register.name)
                stack.append(controller)

    def _want(self, name: str) -> None:
        if name in self.wanted:
            return
        self.wanted.add(name)
        stack = [name]
        while stack:
            for point in self.definitions.get(stack.pop(), ()):
                if point in self.valued or self.cfg.block_of[point] not in self.passable:
                    continue
                self.valued.add(point)
                self.points.add(point)
                self.pending.append(point)
                for used in reads(self.cfg.body[point]):
                    if used not in self.wanted:
                        self.wanted.add(used)
                        stack.append(used)
                self._reach(self.cfg.block_of[point])

    def _want_space(self, space: str) -> None:
        if space in self.spaces:
            return
        self.spaces.add(space)
        for point in self.stores.get(space, ()):
            self._value(point)


def synchronization_reads(instruction: Instruction) -> Iterator[Register]:
    """The registers that decide what a synchronization instruction does to barriers."""
    for role, operand in isa.roles(instruction).items():
        if role == "destination" and not isinstance(operand, Address):
            continue
        if role == "source" and reads_shared(instruction):
            yield from registers_of(operand)
        if role in UNUSED_ROLES and not (role == "token" and "arrive" not in instruction.modifiers[:1]):
            continue
        yield from registers_of(operand)


def reads_shared(instruction: Instruction) -> bool:
    """Whether an instruction reads shared memory through its source operand."""
    sources = [access for access in isa.accesses(instruction) if access.role == "source"]
    return any(isa.space(instruction, access).startswith("shared") for access in sources)


def registers_of(operand: Operand) -> Iterator[Register]:
    """The registers inside an operand."""
    match operand:
        case Register():
            yield operand
        case Not(operand=inner) | Negated(operand=inner) | Element(register=inner):
            yield from registers_of(inner)
        case Pair(first=first, second=second):
            yield from registers_of(first)
            yield from registers_of(second)
        case Vector(elements=elements):
            for element in elements:
                yield from registers_of(element)
        case Address(base=base):
            yield from registers_of(base)
        case _:
            return


def _loads_from(instruction: Instruction) -> Iterator[str]:
    if instruction.opcode in ("ld", "atom", "ldu"):
        yield _space(instruction)


def _stores_to(instruction: Instruction) -> Iterator[str]:
    if instruction.opcode in ("st", "atom", "red"):
        yield _space(instruction)
        if _space(instruction) == "generic":
            yield from ("shared", "local", "global")
        elif _space(instruction) != "param":
            yield "generic"


def _is_scattered(instruction: Instruction, varying: frozenset[str]) -> bool:
    """Whether each thread stores somewhere else: data, not a control word, which one thread leaves for others; one that
    st.async sends may go to each CTA of the cluster.
    """
    if "async" in instruction.modifiers:
        return False
    address = isa.roles(instruction).get("address")
    return instruction.opcode == "st" and address is not None and any(r.name in varying for r in registers_of(address))


def _space(instruction: Instruction) -> str:
    for modifier in instruction.modifiers:
        head = modifier.partition("::")[0]
        if head in ("shared", "local", "global", "param", "const"):
            return head
    return "generic"


def _stores(cfg: Cfg, varying: frozenset[str]) -> dict[str, list[int]]:
    """The stores that may leave a control word, by the state space; varying: what is computed from the thread's number.

    What a role computes, whose warps alone run, is no such thing.
    """
    found: dict[str, list[int]] = {}
    for point, instruction in enumerate(cfg.body):
        spaces = tuple(_stores_to(instruction))
        if "local" not in spaces and _is_scattered(instruction, varying):
            continue
        for space in spaces:
            found.setdefault(space, []).append(point)
    return found


def _is_lane_source(instruction: Instruction) -> bool:
    """Whether threads of one agent may get different results from an instruction with equal operands.

    A shuffle of equal values gives them back; only its predicate, whether the other lane is in range, goes by the lane.
    """
    row = isa.row(instruction)
    return (
        (row is not None and row.name in CROSS_LANE_VARYING)
        or any(map(_is_lane_dependent, instruction.operands))
        or instruction.opcode == "atom"
        or (instruction.opcode == "shfl" and isinstance(instruction.operands[0], Pair))
        or (instruction.opcode == "ld" and _space(instruction) in ("local", "generic"))
    )


def _is_lane_dependent(operand: Operand) -> bool:
    match operand:
        case SpecialRegister(name=name):
            return name in LANE_DEPENDENT or name.startswith(LANE_PREFIXES)
        case Vector(elements=elements):
            return any(map(_is_lane_dependent, elements))
        case _:
            return False
