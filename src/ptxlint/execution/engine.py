"""Co-simulation of a kernel: run its slice under assumed inputs and several schedules, and say what went wrong.

The launch shape is what the PTX or the user states, else the first of the likely shapes under which the kernel runs
clean; `choice` chooses it and the inputs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from functools import cached_property
from math import ceil

from ptxlint import cfg as graphs
from ptxlint import isa
from ptxlint import launch as launches
from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.execution import (
    accesses,
    components,
    diagnosis,
    events,
    inline,
    inputs,
    layout,
    lower,
    ordered,
    tensor_maps,
    waits,
)
from ptxlint.execution import slice as slices
from ptxlint.execution.choice import LONG_STEPS, SHORT_TABLES, TILE, Choice, other_sizes
from ptxlint.execution.conflict import Access, Conflict, Failure
from ptxlint.execution.disputes import disputes
from ptxlint.execution.exempt import Exemptions
from ptxlint.execution.judgement import Defect, Judge
from ptxlint.execution.layout import Layout
from ptxlint.execution.machine import Machine
from ptxlint.execution.ordered import NOT_ORDERED, Ordered, Real
from ptxlint.execution.program import Binding, Program
from ptxlint.execution.rows import reads_rows
from ptxlint.execution.runs import STEPS, Run, Runner
from ptxlint.execution.schedule import SCHEDULES, Repair
from ptxlint.execution.search import Search, wide
from ptxlint.execution.shapes import Shapes
from ptxlint.execution.strand import WARP
from ptxlint.execution.trace import Event, Fault, Incident
from ptxlint.ir import Function, Instruction, Module
from ptxlint.launch import Dimensions, Launch

TRIAL_STEPS = 400_000
"""Steps of all runs that try changes to a faulty kernel."""

TENSOR_MAP_BYTES = 128
SYMPTOMS = frozenset({Fault.OVERTAKE, Fault.NO_ARRIVAL, Fault.CYCLE, Fault.STUCK})
"""Faults that may come of a phase that was overtaken."""

MOST_BLOCKS = 6
"""Further extents of a block that goes by rows that are tried where accesses conflict."""

ENOUGH_POINTS = 0.6
"""The share of the synchronization points that must be reached for a kernel to count as analysed."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What running a kernel showed. Points of defects and events index `body`, in which calls are inlined.

    has_unknown_rows: threads go by their row in a block of which nobody states the extents, and under all extents that
    were tried accesses conflict, but others under each.
    """

    function: Function
    cfg: Cfg
    layout: Layout
    defects: tuple[Defect, ...]
    runs: tuple[Run, ...]
    assumptions: tuple[str, ...]
    uncovered: tuple[int, ...]
    points: frozenset[int]
    conflicts: tuple[Conflict, ...]
    conflict_events: tuple[Event, ...]
    conflict_accesses: tuple[Access, ...]
    contested: tuple[Conflict, ...]
    not_analysed: str | None = None
    is_whole: bool = True
    has_unknown_rows: bool = False

    @property
    def events(self) -> Sequence[Event]:
        """Those of the ordered run, where it ended well."""
        return self.conflict_events if self.is_whole else ()

    @property
    def body(self) -> Sequence[Instruction]:
        """The instructions that points index."""
        return self.cfg.body

    @property
    def block(self) -> Dimensions | None:
        """The extents of the block of its runs; None where nothing was run."""
        return self.runs[0].binding.block if self.runs else None


def execute(module: Module, function: Function, launch: Launch, *, with_accesses: bool = True) -> Execution:
    """Run a kernel; without its data accesses no conflicts are found."""
    return _Engine(module, function, launch, with_accesses).run()


class _Engine:
    def __init__(self, module: Module, function: Function, launch: Launch, with_accesses: bool) -> None:
        self.launch = launches.stated(function, launch)
        self.with_accesses = with_accesses
        self.function = components.scalars(inline.inline(function, module))
        endless = frozenset(f.name for f in module.functions if f.directive("noreturn"))
        self.cfg = graphs.build(self.function, endless)
        body = self.cfg.body
        self.seeds = frozenset(
            point
            for point, instruction in enumerate(body)
            if events.is_event(instruction) and self.cfg.block_of[point] in self.cfg.reachable
        )
        self.layout = layout.lay_out(module, self.function)
        marks = {point: tuple(slices.synchronization_reads(body[point])) for point in self.seeds}
        marks |= {p: tuple(slices.synchronization_reads(i)) for p, i in enumerate(body) if events.is_remote_access(i)}
        self.marks = marks
        self.slicer = slices.Slicer(self.cfg)
        self.slice = self.slicer.slice(marks)
        self.closures = lower.Closures(self.cfg)
        program = lower.lower(self.cfg, self.slice, self.layout, closures=self.closures)
        self.runner = Runner(program, self.cfg, self.launch, self.seeds)
        self.choice = Choice(self.runner, self.cfg)
        self.shapes = Shapes(self.cfg, self.slice, self.launch)
        self.exemptions = Exemptions(self.cfg, self.seeds)
        self.has_unknown_rows = False
        self.trial_steps = 0
        has_related_inputs = any(p.size > 8 and p.size != TENSOR_MAP_BYTES for p in self.function.parameters) or any(
            body[point].opcode == "ld" and "global" in body[point].modifiers for point in self.slice.points
        )
        has_roles = bool(self.slice.varying)
        self.judge = Judge(self.choice, has_related_inputs=has_related_inputs, has_roles=has_roles)
        self.unreached = False
        self.assumptions: list[str] = []

    @cached_property
    def decided(self) -> Set[int]:
        """The blocks that run, or run again, as assumed integers have it."""
        return self.slicer.spread(lambda instruction: inputs.is_assumed(instruction, self.runner.pointers))[1]

    def run(self) -> Execution:
        """What the usual inputs show; where they leave the kernel unanalysed, what better ones do."""
        found = self._found()
        tells = bool(found.defects) or (bool(found.conflicts) and not found.has_unknown_rows)
        if found.not_analysed and found.runs and not tells:
            return self._under_other_inputs(found)
        return found

    def _under_other_inputs(self, found: Execution) -> Execution:
        """The kernel under inputs that are searched for, if it runs clean and nothing conflicts; else as it was found.

        A fault under inputs that are as far-fetched would say little.
        """
        enough = ceil(ENOUGH_POINTS * len(self.seeds))
        clean = Search(self.runner, self.slicer, self.slice).found(found.runs[0], enough)
        runs = [*self.choice.schedules(clean[0]), *clean[1:]] if clean else []
        reached = set().union(*map(self.runner.covered, runs))
        if not all(run.is_clean for run in runs) or len(reached) < enough:
            return found
        conflicts = self._conflicts(runs)
        if conflicts.conflicts:
            return found
        self.judge.hinging.clear()
        self.unreached = self.has_unknown_rows = False
        return self._result(tuple(runs), (), conflicts)

    def _found(self) -> Execution:
        if not self.seeds and not any(_is_shared_work(instruction) for instruction in self.cfg.body):
            return self._result((), ())
        tried = self.choice.tried(self.shapes)
        best = max(tried, key=self.choice.merit)
        if all(run.is_clean for run in best):
            same = [run.machine for run in best if run.binding is best[0].binding]
            found = [self.judge.judged(self._defect(i, best[0]), best[0], tried) for i in disputes(same)]
            best, conflicts = self._in_likely_rows(best)
            conflicts = self._ahead(best[0], conflicts)
            found += self._lapping(best[0], conflicts)
            return self._result(tuple(best), tuple(d for d in found if d), conflicts)
        judged = [self.judge.judged(defect, best[0], tried) for defect in list(self._defects(best))]
        defects = tuple(defect for defect in judged if defect is not None)
        instead = self.choice.alternatives.get((best[0].binding.block, best[0].binding.cluster))
        if not defects and instead is not None:
            calm = self.choice.schedules(instead)
            if all(run.is_clean for run in calm):
                self.judge.hinging.clear()
                self.unreached = False
                conflicts = self._ahead(calm[0], self._conflicts(calm))
                return self._result(tuple(calm), tuple(self._lapping(calm[0], conflicts)), conflicts)
        overtaken = self._overtaken(defects)
        if overtaken:
            conflicts = self._conflicts(best[:1], ordered.run_overtaken)
            return self._result(tuple(best), overtaken if conflicts.conflicts else defects, conflicts)
        return self._result(tuple(best), defects)

    def _ahead(self, first: Run, conflicts: Ordered) -> Ordered:
        """Conflicts, or where there are none those of a long run in which one side runs ahead."""
        ahead = self.choice.overtaken.get((first.binding.block, first.binding.cluster))
        if ahead is None or conflicts.conflicts:
            return conflicts
        for run_ordered in (ordered.run_ordered, ordered.run_overtaken):
            found = self._conflicts([ahead], run_ordered)
            if found.conflicts:
                return found
        return conflicts

    def _lapping(self, first: Run, conflicts: Ordered) -> list[Defect]:
        """The faults of that long run where there are no conflicts, if other large integers show them as well."""
        ahead = self.choice.overtaken.get((first.binding.block, first.binding.cluster))
        if ahead is None or conflicts.conflicts:
            return []
        for size in other_sizes(ahead.binding.inputs.size):
            assumed = self.runner.binding(ahead.binding.block, ahead.binding.cluster, size).inputs
            other = self.runner.go(replace(ahead.binding, inputs=assumed), ahead.schedule)
            if {i.point for i in other.machine.incidents}.isdisjoint(i.point for i in ahead.machine.incidents):
                return []
        return list(self._defects([ahead]))

    def _overtaken(self, defects: Sequence[Defect]) -> tuple[Defect, ...]:
        """The phases that were overtaken in the run of the defects, if these are no more than symptoms."""
        if any(defect.fault not in SYMPTOMS for defect in defects):
            return ()
        return tuple(
            replace(defect, incident=incident, witness=tuple(waits.involved(incident, defect.run.machine)))
            for defect in defects[:1]
            for incident in defect.run.machine.incidents
            if incident.fault is Fault.OVERTAKE
        )

    def _defect(self, incident: Incident, run: Run) -> Defect:
        return Defect(incident, tuple(waits.involved(incident, run.machine)), (), True, run)

    # Results

    def _defects(self, runs: Sequence[Run]) -> Iterator[Defect]:
        seen: set[tuple[Fault, int]] = set()
        for run in runs:
            if run.is_clean or run.out_of_budget:
                continue

            def rerun(repair: Repair, run: Run = run) -> Machine:
                return self.runner.go(run.binding, run.schedule, repair).machine

            def mends(repair: Repair, run: Run = run) -> bool:
                order = sorted(SCHEDULES, key=lambda schedule: schedule != run.schedule)
                before, self.runner.spent = self.runner.spent, 0
                mended = self.trial_steps < TRIAL_STEPS and all(
                    self.runner.go(run.binding, schedule, repair).is_clean for schedule in order
                )
                self.trial_steps += self.runner.spent
                self.runner.spent = before
                return mended

            found = diagnosis.diagnose(run.machine, self.cfg, mends, rerun)
            if found is None:
                self.unreached = True
                return
            for incident in found:
                key = (incident.fault, incident.point)
                if key not in seen:
                    seen.add(key)
                    yield self._defect(incident, run)
            if seen:
                return

    def _conflicts(
        self, runs: Sequence[Run], run_ordered: Callable[[Program, Binding, Real], Ordered] = ordered.run_ordered
    ) -> Ordered:
        """Accesses to common bytes that lack order in each schedule, with the events of the first run of that kind.

        Besides the inputs of the runs, loops of no and of one trip are tried where they may hold proxy fences: a loop
        that is skipped leaves accesses bare.
        """
        if not self.with_accesses:
            return NOT_ORDERED
        body = self.cfg.body
        data = {
            point: tuple(accesses.registers(instruction))
            for point, instruction in enumerate(body)
            if self.cfg.block_of[point] in self.cfg.reachable and accesses.is_access(instruction)
        }
        maps = tensor_maps.registers(self.cfg, self.slice.definitions)
        if not data and not maps and not any("relaxed" in i.modifiers or "inval" in i.modifiers for i in body):
            return NOT_ORDERED
        seeds = {**data, **self.marks}
        wider = self.slicer.slice({**seeds, **{p: (*seeds.get(p, ()), *more) for p, more in maps.items()}})
        program = replace(
            lower.lower(self.cfg, wider, self.layout, frozenset(data), frozenset(maps), self.closures),
            initializers=self.runner.program.initializers,
            extents=dict(e for run in reversed(runs) for e in ordered.box_extents(run.machine.events).items()),
        )
        binding = runs[0].binding
        stores = ordered.store_extents(program, binding, body)
        program = replace(program, extents={**program.extents, **stores})
        sizes = ordered.FEW_TRIPS if self._may_skip_fences() else ()
        few = [self.runner.binding(binding.block, binding.cluster, size) for size in sizes]
        away = (run.binding for run in runs if run.binding is not binding)
        first = NOT_ORDERED
        for again in (binding, *away, *few):
            found = run_ordered(program, again, self.exemptions.real)
            conflicts = found.conflicts
            if again in few:
                conflicts = tuple(conflict for conflict in conflicts if conflict.failure is Failure.UNFENCED)
            else:
                conflicts = self._confirmed(conflicts, program, again, run_ordered)
            if conflicts:
                return replace(found, conflicts=conflicts)
            first = first if first.events else replace(found, conflicts=())
        return first

    def _in_likely_rows(self, best: list[Run]) -> tuple[list[Run], Ordered]:
        """The runs with their conflicts; where these may come of wrong extents of a block that goes by rows, those
        under other extents that show none.

        If all extents show some, the accesses that lack order under each of them remain.
        """
        conflicts = self._conflicts(best)
        if not conflicts.conflicts or self.launch.block or not reads_rows(self.cfg):
            return best, conflicts
        binding = best[0].binding
        common = {_places(c) for c in conflicts.conflicts if c.failure is Failure.UNORDERED}
        others = (block for block in self.shapes.by_rows() if block != binding.block)
        for block in itertools.islice(others, MOST_BLOCKS):
            runs = self.choice.under(block, binding.cluster)
            if self.choice.merit(runs) >= self.choice.merit(best):
                found = self._conflicts(runs)
                if not found.conflicts:
                    return runs, found
                common &= {_places(c) for c in found.conflicts}
        self.has_unknown_rows = not common
        kept = tuple(c for c in conflicts.conflicts if not common or _places(c) in common)
        return best, replace(conflicts, conflicts=kept)

    def _confirmed(
        self,
        kept: tuple[Conflict, ...],
        program: Program,
        binding: Binding,
        run_ordered: Callable[[Program, Binding, Real], Ordered],
    ) -> tuple[Conflict, ...]:
        """Conflicts without those that other integers make go away, where host code relates the integers: a structure,
        or words of memory, that the assumed values contradict."""
        for size in other_sizes(binding.inputs.size) if kept and self.judge.has_related_inputs else ():
            assumed = self.runner.binding(binding.block, binding.cluster, size).inputs
            other = run_ordered(program, replace(binding, inputs=assumed), self.exemptions.real)
            if other.is_clean:
                kept = tuple(conflict for conflict in kept if ordered.is_alike(conflict, other.conflicts))
        far = [conflict for conflict in kept if self._is_by_trips(conflict)]
        for size in SHORT_TABLES if far else ():
            assumed = self.runner.binding(binding.block, binding.cluster, size).inputs
            gone = ordered.absent(program, replace(binding, inputs=assumed, cut=0, enough={}), far)
            kept = tuple(conflict for conflict in kept if conflict not in gone)
        guessed = self._by_parts(program, binding, [conflict for conflict in kept if self._is_by_part(conflict)])
        return tuple(conflict for conflict in kept if conflict not in guessed)

    def _is_by_trips(self, conflict: Conflict) -> bool:
        """Whether an access is in a loop that nothing synchronizes, and that assumed integers end: where it comes in
        late laps is a guess."""
        for access in (conflict.first, conflict.second):
            block = self.cfg.block_of[access.point]
            loop = next(self.cfg.enclosing_loops(block), None)
            if loop is not None and block in self.decided:
                around = self.cfg.loop_blocks(loop)
                if not any(self.cfg.block_of[point] in around for point in self.seeds):
                    return True
        return False

    def _by_parts(self, program: Program, binding: Binding, parted: Sequence[Conflict]) -> set[Conflict]:
        """Those of some conflicts that go away where whole warps make their accesses: in the first laps of a loop that
        has both, or in one lap of each loop."""
        whole = replace(
            binding, inputs=self.runner.binding(binding.block, binding.cluster, TILE).inputs, cut=0, enough={}
        )
        laps = replace(whole, cut=LONG_STEPS)
        single = laps if self.launch.grid else replace(whole, grid=wide(binding))
        around = [conflict for conflict in parted if self._share_a_loop(conflict)]
        apart = [conflict for conflict in parted if conflict not in around]
        trials = ((laps, around), (single, apart))
        return {gone for other, some in trials if some for gone in ordered.absent(program, other, some)}

    def _share_a_loop(self, conflict: Conflict) -> bool:
        places = (self.cfg.block_of[access.point] for access in (conflict.first, conflict.second))
        first, second = (set(self.cfg.enclosing_loops(block)) for block in places)
        return bool(first & second)

    def _is_by_part(self, conflict: Conflict) -> bool:
        """Whether some lanes of a warp make an access where assumed integers say who comes: they may part it as no host
        would."""
        return any(
            self.cfg.block_of[access.point] in self.decided
            and any(1 < lanes < WARP for lanes in Counter(t // WARP for t in access.agent.threads).values())
            for access in (conflict.first, conflict.second)
        )

    def _may_skip_fences(self) -> bool:
        """Whether assumed integers decide if a proxy fence runs, or in a kernel with such fences a write for them."""
        body = self.cfg.body
        fences = {point for point, instruction in enumerate(body) if isa.covers(instruction) is not None}
        if not fences:
            return False
        writes = {point for point, instruction in enumerate(body) if accesses.is_generic_write(instruction)}
        return any(self.cfg.block_of[point] in self.decided for point in fences | writes)

    def _result(
        self,
        runs: tuple[Run, ...],
        defects: tuple[Defect, ...],
        conflicts: Ordered = NOT_ORDERED,
    ) -> Execution:
        covered = {event.point for run in runs for event in run.machine.events}
        reason = None
        if self.judge.hinging:
            reason = "inputs: the assumed parameters, or the assumed cluster, contradict the kernel"
        if runs and self.seeds and len(self.seeds & covered) < ENOUGH_POINTS * len(self.seeds):
            self.unreached = True
        if self.unreached and not defects:
            left = len(self.seeds - covered)
            reason = f"inputs: {left} of {len(self.seeds)} synchronization points are not reached by those assumed"
        if runs and all(run.out_of_budget for run in runs):
            reason = f"budget: more than {STEPS} steps"
        return Execution(
            self.function,
            self.cfg,
            self.layout,
            defects,
            runs,
            tuple(self.assumptions),
            tuple(sorted(self.seeds - covered)),
            self.seeds,
            conflicts.conflicts,
            conflicts.events,
            conflicts.accesses,
            conflicts.contested,
            reason,
            conflicts.is_whole,
            self.has_unknown_rows,
        )


def _is_shared_work(instruction: Instruction) -> bool:
    """Whether others may see what an instruction does in shared memory: it is asynchronous, or it writes there."""
    return accesses.is_asynchronous(instruction) or any(
        access.mode in (isa.Mode.WRITE, isa.Mode.UPDATE) and isa.space(instruction, access).startswith("shared")
        for access in isa.accesses(instruction)
    )


def _places(conflict: Conflict) -> tuple[Failure, int, int]:
    """What makes a conflict the same under other assumptions."""
    return conflict.failure, conflict.first.point, conflict.second.point
