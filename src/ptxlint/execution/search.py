"""The search for inputs under which a kernel that the usual ones leave unanalysed runs clean and reaches enough.

Host code relates sizes, counts and the grid in ways that no PTX states: lengths that are multiples of a tile, one tile
for each cluster, a single pass. So one assumption after the other is changed, and a change is kept when the run comes
to more: first what the branches that guard unreached points depend on, then the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

from ptxlint import isa
from ptxlint.execution.inputs import Assumed
from ptxlint.execution.program import Binding
from ptxlint.execution.runs import Run, Runner, varied
from ptxlint.execution.schedule import SCHEDULES
from ptxlint.execution.shapes import concerns_cluster
from ptxlint.execution.slice import Slice, Slicer
from ptxlint.ir import Address, Immediate, Instruction, Register, Symbol
from ptxlint.launch import Dimensions

SEARCH_STEPS = 400_000
"""Steps of all runs of a search."""

TRIAL_STEPS = 30_000
"""Steps of one run of a search."""

WIDE_GRID = 1 << 12
"""CTAs of a grid in which a cluster that goes on by the size of the grid has one tile."""

CLUSTERS = (2, 4, 8)
"""CTAs of clusters that are tried where nobody states one."""

MISSING = 28
"""Threads that a block lacks of whole warps."""

SIZES = (1024, 300, 64, 1, 4096)
"""Integers that all parameters and memory words may be."""

MEMORY = ((0, 0), (1, 0), (0, 1), (0x3F800000, 0), (0, 128), (1, 128), (0, 1024), (1, 1024), (4096, 0))
"""What memory may hold: the first word, and what each word is larger than the one before."""

LENGTHS = (4096, 1024)
"""What lengths behind one or two pointers may be, where all else in memory is offsets and indices from 0 on."""

STEPS = (1, 1024)
"""What one of those offsets may be larger than the one before."""

VALUES = (1, 0, 2, 8, 64, 1024, 1 << 16)
"""What a single parameter word may be."""

MOST_WORDS = 16
"""Parameter words that are changed one by one."""

MOST_POINTERS = 8
"""Pointers behind which there may be lengths."""

Score = tuple[bool, bool, int, int, int]


def wide(binding: Binding) -> Dimensions:
    """The extents of a grid that has a cluster for each tile."""
    return (WIDE_GRID * binding.cluster[0], *binding.grid[1:])


class Search:
    """Looks for inputs of one kernel, beginning with those of a run."""

    def __init__(self, runner: Runner, slicer: Slicer, slice_: Slice) -> None:
        self.runner = runner
        self.slicer = slicer
        self.slice = slice_
        self.end = runner.spent + SEARCH_STEPS

    def found(self, start: Run, enough: int) -> list[Run]:
        """Clean runs that together reach so many points, the one that reaches most first; fewer where none are found.

        Each change begins with what was best so far.
        """
        best, before = start, None
        clean = [start] if start.is_clean else list[Run]()
        self._try(self._with_missing_threads(start.binding), clean)
        while best is not before:
            before = best
            for binding in self._changes(best):
                if len(self._reached(clean)) >= enough or self.runner.spent > self.end:
                    return sorted(clean, key=self._score, reverse=True)
                best = max(best, *self._try([binding], clean), key=self._score)
                if self._score(best)[:2] > self._score(before)[:2]:
                    break
        return sorted(clean, key=self._score, reverse=True)

    def _try(self, bindings: Iterable[Binding], clean: list[Run]) -> list[Run]:
        """One run of each; those that are clean and reach something new are added."""
        runs = [self.runner.go(binding, SCHEDULES[0], steps=TRIAL_STEPS) for binding in bindings]
        for run in runs:
            is_possible = run.is_clean and not run.machine.left_cluster
            if is_possible and not self.runner.covered(run) <= self._reached(clean):
                clean.append(run)
        return runs

    def _with_missing_threads(self, binding: Binding) -> Iterator[Binding]:
        """A block that is no whole number of warps, where nobody states it."""
        if self.runner.launch.block is None and binding.block[0] > MISSING:
            yield replace(binding, block=(binding.block[0] - MISSING, *binding.block[1:]))

    def _reached(self, runs: Iterable[Run]) -> set[int]:
        return set().union(*map(self.runner.covered, runs))

    def _score(self, run: Run) -> Score:
        """How good a run is: within its budget and cluster, clean, reaching many points and phases, in few steps."""
        possible = not run.out_of_budget and not run.machine.left_cluster
        return possible, run.is_clean, *self.runner.reach(run), -run.machine.steps

    def _changes(self, run: Run) -> Iterator[Binding]:
        """The launch and inputs of a run, each time with one assumption changed."""
        binding, assumed = run.binding, run.binding.inputs
        assert isinstance(assumed, Assumed)
        if self.runner.launch.grid is None:
            yield replace(binding, grid=wide(binding))
        wanted = self._compared()
        sized = [replace(binding, inputs=replace(assumed, size=size, step=size)) for size in SIZES]
        changed = [varied(binding, wanted), *sized] if wanted else sized
        yield from changed
        for count in CLUSTERS if self._lacks_cluster(run) else ():
            grid = (count * binding.grid[0], *binding.grid[1:])
            yield from (replace(other, cluster=(count, 1, 1), grid=grid) for other in changed)
        for base, step in MEMORY:
            yield replace(binding, inputs=replace(assumed, base=base, step=step))
        deciding = self._deciding(run)
        pointers = [word for word in deciding if word in self.runner.pointers][:MOST_POINTERS]
        for step, arrays in product(STEPS, (*permutations(pointers, 1), *permutations(pointers, 2))):
            lengths = dict(zip(arrays, LENGTHS, strict=False))
            yield replace(binding, inputs=replace(assumed, base=0, step=step, arrays=lengths))
        words = self._words(deciding)[:MOST_WORDS]
        ones = replace(binding, inputs=replace(assumed, size=1, step=1))
        yield from (varied(ones, {word: VALUES[-1]}) for word in words)
        for word in words:
            for value in VALUES:
                yield varied(binding, {word: value})

    def _lacks_cluster(self, run: Run) -> bool:
        """Whether a kernel whose cluster nobody states may do what it has not done only in a cluster of several."""
        left = self.runner.seeds - self.runner.covered(run)
        is_free = self.runner.launch.cluster is None and run.binding.cluster_size == 1
        return is_free and any(concerns_cluster(self.slicer.cfg.body[point]) for point in left)

    def _compared(self) -> dict[tuple[str, int], int]:
        """The parameter words that the kernel asks to be equal to a constant, with the first such constant."""
        wanted: dict[tuple[str, int], int] = {}
        for point in sorted(self.slice.points):
            instruction = self.slicer.cfg.body[point]
            if instruction.opcode != "setp" or instruction.modifiers[0] not in ("eq", "ne"):
                continue
            register, constant = instruction.operands[1:3]
            places = self.slice.definitions.get(getattr(register, "name", ""), ())
            if len(places) != 1 or not isinstance(constant, Immediate) or not isinstance(constant.value, int):
                continue
            for word in self._parameters(self.slicer.cfg.body[next(iter(places))]):
                wanted.setdefault(word, constant.value)
        return wanted

    def _words(self, deciding: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """The parameter words, but for pointers; those first that decide over what the run has not reached."""
        slots = {(slot.name, slot.offset): None for slot in self.runner.words()}
        words = [word for word in slots if word not in self.runner.pointers]
        return sorted(words, key=lambda word: word not in deciding)

    def _deciding(self, run: Run) -> list[tuple[str, int]]:
        """The parameter words that the branches before unreached points depend on, the nearest branches first."""
        cfg = self.slicer.cfg
        blocks = {cfg.block_of[point] for point in self.runner.seeds - self.runner.covered(run)}
        found: dict[tuple[str, int], None] = {}
        seen: set[str] = set()
        passed: set[int] = set()
        while blocks:
            blocks = {controller for block in blocks for controller in self.slicer.controllers.get(block, ())} - passed
            passed |= blocks
            pending = [r.name for block in sorted(blocks) for r in isa.reads(cfg.body[cfg.blocks[block].stop - 1])]
            while pending:
                register = pending.pop()
                if register in seen:
                    continue
                seen.add(register)
                for point in self.slice.definitions.get(register, ()):
                    instruction = cfg.body[point]
                    pending.extend(r.name for r in isa.reads(instruction))
                    found.update(dict.fromkeys(self._parameters(instruction)))
        return list(found)

    def _parameters(self, instruction: Instruction) -> Iterator[tuple[str, int]]:
        """The parameter word that an instruction loads, whether it names the parameter or has its address."""
        address = instruction.operands[-1] if instruction.opcode == "ld" else None
        if not isinstance(address, Address):
            return
        bases = [address.base]
        if isinstance(address.base, Register):
            places = self.slice.definitions.get(address.base.name, ())
            bases = [
                body.operands[-1] for body in map(self.slicer.cfg.body.__getitem__, places) if body.opcode == "mov"
            ]
        for base in bases:
            if isinstance(base, Symbol) and base.name in self.runner.indices:
                yield base.name, base.offset + address.offset
