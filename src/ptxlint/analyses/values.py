"""What the integer and predicate registers of a function hold, as symbolic values, found on demand.

State:    for each register at each point one value: an expression over symbols, parameters, special registers, results
          that are not modelled, and merges (what a register holds where paths join)
Order:    none; each value is exact, and says "unknown" by a leaf of its own
Entry:    a register that nothing has written is an unknown leaf with place -1
Transfer: `interpretation.interpret`; a guarded write chooses between the new and the old value by its guard

A join becomes a choice by the predicates of the branches that lead to it. Only the heads of loops, and joins of paths
with loops or jump tables between them, stay merges. A leaf that stands for an instruction's result or for a merge
changes its meaning when control passes that place again: `Values.stales_at` says which places those are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ptxlint import isa
from ptxlint.analyses.interpretation import immediate, interpret
from ptxlint.analyses.joins import Decision, Outcome, decisions
from ptxlint.analyses.value import (
    DEPTH_LIMIT,
    Algebra,
    Constant,
    Leaf,
    LeafKind,
    Literal,
    Sum,
    Value,
    leaves,
)
from ptxlint.cfg import Cfg, Edge
from ptxlint.ir import (
    Address,
    Guard,
    Immediate,
    Negated,
    Not,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
)

_CHANGING = ("%clock", "%globaltimer", "%pm", "%current_graph_exec")
"""Prefixes of special registers that differ from one read to the next."""

_Site = tuple[str, int, str]
"""A definition: ("write" or "merge", instruction or block, register name)."""


class Values:
    """The values of one function. Everything is computed when asked for, and once."""

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        self.algebra = Algebra()
        self._sites: dict[_Site, Value] = {}
        self._merge_blocks: dict[str, frozenset[int]] = {}
        self._ends: dict[tuple[str, int], _Site] = {}

    def register(self, index: int, register: Register) -> Value:
        """What a register holds before the instruction at `index`."""
        return self._value(self._reaching(index, register.name), register)

    def operand(self, index: int, operand: Operand) -> Value | None:
        """What an operand of the instruction at `index` is; an address without its brackets. None for other kinds."""
        match operand:
            case Register():
                return self.register(index, operand)
            case Not(Register() as inner):
                return self.algebra.negation(self.register(index, inner))
            case Negated(Register() as inner):
                return self.algebra.scaled(self.register(index, inner), -1)
            case Immediate():
                return immediate(operand, self.algebra)
            case Symbol(name, offset):
                return self.algebra.total(offset, ((self.algebra.leaf(LeafKind.SYMBOL, name), 1),))
            case SpecialRegister(name):
                return self._special(index, name)
            case Address(base, offset):
                inside = self.operand(index, base)
                return None if inside is None else self.algebra.total(offset, ((inside, 1),))
        return None

    def role(self, index: int, role: str) -> Value | None:
        """What the operand with that role is; None when the instruction has none."""
        operand = isa.roles(self.cfg.body[index]).get(role)
        return None if operand is None else self.operand(index, operand)

    def guard(self, index: int) -> Literal | None:
        """What holds in the threads that run the instruction at `index`; None when all do."""
        guard = self.cfg.body[index].guard
        return None if guard is None else self._literal(index, guard)

    def along(self, edge: Edge) -> Literal | None:
        """What holds in the threads that take an edge; None when all do."""
        return None if edge.guard is None else self._literal(self.cfg.blocks[edge.source].stop - 1, edge.guard)

    def incoming(self, merge: Leaf) -> Sequence[tuple[int, Value]]:
        """For a merge the blocks before it and what each brings; -1 is the function's entry."""
        register = self._registers[merge.name]
        blocks = [edge.source for edge in self.cfg.blocks[merge.place].predecessors]
        found = [
            (block, self._value(self._at_end(block, merge.name), register))
            for block in dict.fromkeys(blocks)
            if block in self.cfg.reachable
        ]
        if merge.place == 0:
            found.append((-1, self.algebra.leaf(LeafKind.UNKNOWN, merge.name, -1)))
        return found

    def stales_at(self, value: Value) -> Iterator[tuple[LeafKind, int]]:
        """The instructions and blocks at which the value's leaves change their meaning."""
        for leaf in leaves(value):
            if leaf.kind in (LeafKind.UNKNOWN, LeafKind.MERGE):
                yield leaf.kind, leaf.place

    def _special(self, index: int, name: str) -> Value:
        if name.startswith(_CHANGING):
            return self.algebra.leaf(LeafKind.UNKNOWN, name, index)
        return self.algebra.leaf(LeafKind.SPECIAL, name)

    def _literal(self, index: int, guard: Guard) -> Literal:
        value = self.register(index, guard.register)
        opposite = self.algebra.negation(value)
        is_plain = value.depth < opposite.depth or isinstance(value, Constant)
        return (value, not guard.negated) if is_plain else (opposite, guard.negated)

    @cached_property
    def _registers(self) -> Mapping[str, Register]:
        return {register.name: register for register, _ in self._all_writes}

    @cached_property
    def _all_writes(self) -> Sequence[tuple[Register, int]]:
        body = self.cfg.body
        return [(register, index) for index in range(len(body)) for register in isa.writes(body[index])]

    @cached_property
    def _writes(self) -> Mapping[str, Sequence[int]]:
        """For each register the instructions that write it, in the order of the body."""
        found: dict[str, list[int]] = {}
        for register, index in self._all_writes:
            found.setdefault(register.name, []).append(index)
        return found

    def _reaching(self, index: int, name: str) -> _Site:
        """The definition of a register that reaches the point before an instruction."""
        writes = self._writes.get(name, ())
        block = self.cfg.blocks[self.cfg.block_of[index]]
        place = bisect_left(writes, index)
        if place and writes[place - 1] >= block.start:
            return ("write", writes[place - 1], name)
        return self._at_start(block.index, name)

    def _at_end(self, block: int, name: str) -> _Site:
        writes = self._writes.get(name, ())
        place = bisect_left(writes, self.cfg.blocks[block].stop)
        if place and writes[place - 1] >= self.cfg.blocks[block].start:
            return ("write", writes[place - 1], name)
        return self._at_start(block, name)

    def _at_start(self, block: int, name: str) -> _Site:
        """The definition that reaches the top of a block: a merge there, or what its dominator ends with."""
        merges = self._merges(name)
        passed = []
        runner: int | None = block
        while True:
            if runner is None:
                found: _Site = ("write", -1, name)
                break
            if (name, runner) in self._ends:
                found = self._ends[name, runner]
                break
            passed.append(runner)
            if runner in merges:
                found = ("merge", runner, name)
                break
            runner = self.cfg.immediate_dominators[runner]
            if runner is None:
                continue
            writes = self._writes.get(name, ())
            place = bisect_left(writes, self.cfg.blocks[runner].stop)
            if place and writes[place - 1] >= self.cfg.blocks[runner].start:
                found = ("write", writes[place - 1], name)
                break
        for step in passed:
            self._ends[name, step] = found
        return found

    def _merges(self, name: str) -> frozenset[int]:
        """The blocks where different definitions of a register may meet."""
        found = self._merge_blocks.get(name)
        if found is None:
            merges: set[int] = set()
            stack = list({self.cfg.block_of[index] for index in self._writes.get(name, ())})
            if stack:
                stack.append(0)
            seen = set(stack)
            while stack:
                for block in self.cfg.dominance_frontiers[stack.pop()]:
                    merges.add(block)
                    if block not in seen:
                        seen.add(block)
                        stack.append(block)
            found = self._merge_blocks[name] = frozenset(merges)
        return found

    def _value(self, site: _Site, register: Register) -> Value:
        """The value of a definition; the definitions that it uses are computed first, without recursion."""
        stack = [(site, register)]
        while stack:
            at, held = stack[-1]
            if at in self._sites:
                stack.pop()
                continue
            missing = [(use, other) for use, other in self._uses(at, held) if use not in self._sites]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self._sites[at] = self._define(at, held)
        return self._sites[site]

    def _uses(self, site: _Site, register: Register) -> Iterator[tuple[_Site, Register]]:
        """The definitions that the value of a definition is made of."""
        kind, place, name = site
        if place < 0:
            return
        if kind == "merge":
            yield from self._uses_of(self._decisions.get(place), register)
            return
        instruction = self.cfg.body[place]
        if not _is_tracked(register):
            return
        for read in isa.reads(instruction):
            if _is_tracked(read):
                yield self._reaching(place, read.name), read
        if instruction.guard is not None:
            yield self._reaching(place, name), register

    def _define(self, site: _Site, register: Register) -> Value:
        kind, place, name = site
        if kind == "merge":
            decision = self._decisions.get(place)
            if decision is not None:
                return self._shallow(self._decided(decision, register), LeafKind.MERGE, name, place)
            return self.algebra.leaf(LeafKind.MERGE, name, place)
        unknown = self.algebra.leaf(LeafKind.UNKNOWN, name, place)
        if place < 0 or not _is_tracked(register):
            return unknown
        instruction = self.cfg.body[place]
        found = interpret(instruction, register, lambda operand: self._read(place, operand), self.algebra) or unknown
        found = self._shallow(found, LeafKind.UNKNOWN, name, place)
        if instruction.guard is None:
            return found
        value, truth = self._literal(place, instruction.guard)
        old = self.register(place, register)
        yes, no = (found, old) if truth else (old, found)
        return self._shallow(self.algebra.select(value, yes, no, register.type), LeafKind.UNKNOWN, name, place)

    def _read(self, place: int, operand: Operand) -> Value | None:
        is_float = isinstance(operand, Register) and not _is_tracked(operand)
        return None if is_float else self.operand(place, operand)

    def _shallow(self, value: Value, kind: LeafKind, name: str, place: int) -> Value:
        return value if value.depth <= DEPTH_LIMIT else self.algebra.leaf(kind, name, place)

    def _uses_of(self, outcome: Outcome | None, register: Register) -> Iterator[tuple[_Site, Register]]:
        match outcome:
            case int():
                yield self._at_end(outcome, register.name), register
            case Decision(block, predicate, yes, no):
                yield self._reaching(self.cfg.blocks[block].stop - 1, predicate.name), predicate
                yield from self._uses_of(yes, register)
                yield from self._uses_of(no, register)

    def _decided(self, outcome: Outcome, register: Register) -> Value:
        """What a register holds at a join, by the decisions that lead there."""
        if isinstance(outcome, int):
            return self._sites[self._at_end(outcome, register.name)]
        condition = self.register(self.cfg.blocks[outcome.block].stop - 1, outcome.predicate)
        yes, no = self._decided(outcome.yes, register), self._decided(outcome.no, register)
        return self.algebra.select(condition, yes, no, register.type)

    @cached_property
    def _decisions(self) -> Mapping[int, Decision]:
        return decisions(self.cfg)


def _is_tracked(register: Register) -> bool:
    return register.type[:1] in "busp" and register.type != "b128"


def location(value: Value | None) -> tuple[str, int] | None:
    """The symbol and the offset in bytes that a value is the address of; None when it is anything else."""
    match value:
        case Leaf(LeafKind.SYMBOL, name):
            return name, 0
        case Sum(constant, ((Leaf(LeafKind.SYMBOL, name), 1),)):
            return name, constant
    return None


def base_symbol(value: Value | None) -> str | None:
    """The one symbol that an address is relative to, whatever is added to it."""
    match value:
        case Leaf(LeafKind.SYMBOL, name):
            return name
        case Sum(_, terms):
            bases = [term.name for term, factor in terms if isinstance(term, Leaf) and term.kind is LeafKind.SYMBOL]
            return bases[0] if len(bases) == 1 else None
    return None
