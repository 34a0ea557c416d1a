"""Co-simulation of a kernel: run its slice under assumed inputs and several schedules, and say what went wrong.

The launch shape is what the PTX or the user states, else the first of the likely shapes under which the kernel runs
clean. Inputs are chosen so that every synchronization point is reached and every barrier goes through several phases
within the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ptxlint import cfg as graphs
from ptxlint import launch as launches
from ptxlint.cfg import Cfg
from ptxlint.execution import diagnosis, events, inline, inputs, layout, lower
from ptxlint.execution import slice as slices
from ptxlint.execution.layout import Layout
from ptxlint.execution.machine import NO_REPAIR, SCHEDULES, Machine, OutOfBudgetError, Repair, Schedule
from ptxlint.execution.program import Binding, Program
from ptxlint.execution.trace import Event, Fault, Incident, Kind
from ptxlint.ir import Function, Immediate, Instruction, Module, Register
from ptxlint.launch import Dimensions, Launch

STEPS = 60_000
"""Steps of one run."""

ALL_STEPS = 400_000
"""Steps of all runs of a kernel together that look for a launch shape and inputs."""

TRIAL_STEPS = 400_000
"""Steps of all runs that try changes to a faulty kernel."""

SIZES = (13, 300, 2000, 40)
LIKELY_THREADS = (128, 256, 384, 160, 288, 32, 64, 96, 192, 224, 320, 416, 512, 640, 768, 1024)
ENOUGH_PHASES = 3


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the launch and inputs it assumed, its schedule, and what happened."""

    binding: Binding
    schedule: Schedule
    machine: Machine
    out_of_budget: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether it ended without symptom or fault."""
        return not self.out_of_budget and diagnosis.is_clean(self.machine)


@dataclass(frozen=True, slots=True)
class Defect:
    """A fault with all that a finding needs. `is_certain` is False when it rests on an assumption that may not hold."""

    incident: Incident
    witness: tuple[Event, ...]
    assumptions: tuple[str, ...]
    is_certain: bool

    @property
    def fault(self) -> Fault:
        """Which fault."""
        return self.incident.fault


@dataclass(frozen=True, slots=True)
class Execution:
    """What running a kernel showed. Points of defects and events index `body`, in which calls are inlined."""

    function: Function
    cfg: Cfg
    layout: Layout
    defects: tuple[Defect, ...]
    runs: tuple[Run, ...]
    assumptions: tuple[str, ...]
    uncovered: tuple[int, ...]
    not_analysed: str | None = None
    events: tuple[Event, ...] = field(default=())

    @property
    def body(self) -> Sequence[Instruction]:
        """The instructions that points index."""
        return self.cfg.body


def execute(module: Module, function: Function, launch: Launch) -> Execution:
    """Run a kernel."""
    return _Engine(module, function, launch).run()


class _Engine:
    def __init__(self, module: Module, function: Function, launch: Launch) -> None:
        self.launch = launches.stated(function, launch)
        self.function = inline.inline(function, module)
        endless = frozenset(f.name for f in module.functions if f.directive("noreturn"))
        self.cfg = graphs.build(self.function, endless)
        body = self.cfg.body
        self.seeds = frozenset(
            point
            for point, instruction in enumerate(body)
            if events.is_event(instruction) and self.cfg.block_of[point] in self.cfg.reachable
        )
        self.layout = layout.lay_out(module, self.function)
        self.slice = slices.compute(self.cfg, self.seeds)
        self.program: Program = lower.lower(self.cfg, self.slice, self.layout)
        self.pointers = inputs.pointer_parameters(self.cfg)
        self.indices = inputs.parameter_indices(self.function)
        self.spent = 0
        self.trial_steps = 0
        self.assumptions: list[str] = []

    def run(self) -> Execution:
        if not self.seeds:
            return self._result((), ())
        tried: list[list[Run]] = []
        for block, cluster in self._shapes():
            tried.append(self._runs(block, cluster))
            if self._is_settled(tried[-1]) or self.spent > ALL_STEPS:
                break
        best = max(tried, key=self._merit)
        return self._result(tuple(best), tuple(self._defects(best)))

    def _runs(self, block: Dimensions, cluster: Dimensions) -> list[Run]:
        """The runs under one launch shape: one for each schedule, fewer once the outcome is clear."""
        first = self._choose_inputs(block, cluster)
        runs = [first]
        if first.out_of_budget:
            return runs
        self._note_initializers(first.machine)
        for schedule in SCHEDULES[1:]:
            runs.append(self._go(first.binding, schedule))
            if not runs[-1].is_clean and not first.is_clean:
                break
        return runs

    def _is_settled(self, runs: Sequence[Run]) -> bool:
        """Whether no other launch shape needs to be tried: all is well, and nothing that another shape may reach is
        left."""
        left = self.seeds - self._covered(runs[0])
        if not all(run.is_clean for run in runs):
            return False
        if self.launch.block or self.function.directive("maxntid"):
            return not any(_concerns_cluster(self.cfg.body[point]) for point in left)
        return not left

    def _merit(self, runs: Sequence[Run]) -> tuple[bool, int, int]:
        """How much runs are worth: within the budget, reaching much, little going wrong."""
        return (not runs[0].out_of_budget, len(self._covered(runs[0])), -_badness(runs))

    def _covered(self, run: Run) -> set[int]:
        return {event.point for event in run.machine.events} & self.seeds

    # Shapes

    def _shapes(self) -> Iterator[tuple[Dimensions, Dimensions]]:
        blocks = [self.launch.block] if self.launch.block else list(self._blocks())
        clusters = [self.launch.cluster] if self.launch.cluster else list(self._clusters())
        for cluster in clusters:
            for block in blocks:
                yield block, cluster

    def _blocks(self) -> Iterator[Dimensions]:
        bound = self.function.directive("maxntid")
        most = 1024
        if bound is not None:
            most = 1
            for extent in bound.integers():
                most *= extent
            yield (most, 1, 1)
            return
        named = sorted(self._thread_constants())
        wanted = [threads for threads in named if threads % 32 == 0 and 32 <= threads <= most]
        rounded = [-(-(threads + 1) // 32) * 32 for threads in named if 1 < threads < most]
        for threads in dict.fromkeys([*reversed(rounded), *reversed(wanted), *LIKELY_THREADS]):
            if threads <= most:
                yield (threads, 1, 1)

    def _thread_constants(self) -> set[int]:
        """Constants that values depending on the thread are compared with."""
        found = set()
        for point in self.slice.points:
            instruction = self.cfg.body[point]
            if instruction.opcode == "setp":
                registers = [o for o in instruction.operands if isinstance(o, Register)]
                if any(register.name in self.slice.varying for register in registers[1:]):
                    found |= {
                        o.value
                        for o in instruction.operands
                        if isinstance(o, Immediate) and isinstance(o.value, int) and 0 <= o.value <= 1024
                    }
        return found

    def _clusters(self) -> Iterator[Dimensions]:
        yield (1, 1, 1)
        if any(_concerns_cluster(self.cfg.body[point]) for point in self.slice.points):
            yield from ((2, 1, 1), (1, 2, 1), (4, 1, 1), (2, 2, 1))

    # Inputs

    def _choose_inputs(self, block: Dimensions, cluster: Dimensions) -> Run:
        """The run whose inputs reach the most synchronization points and phases within the budget."""
        best: Run | None = None
        best_score = (-1, -1)
        for size in SIZES:
            run = self._go(self._binding(block, cluster, size), SCHEDULES[0])
            if run.out_of_budget:
                best = best or run
                continue
            covered = len(self._covered(run))
            phases = max((b.phase for b in run.machine.mbarriers.values()), default=ENOUGH_PHASES)
            score = (covered, min(phases, ENOUGH_PHASES))
            if best is not None and not best.out_of_budget and score <= best_score:
                break
            best, best_score = run, score
            if covered == len(self.seeds) and phases >= ENOUGH_PHASES:
                break
            if self.spent > ALL_STEPS:
                break
        assert best is not None
        return best

    def _binding(self, block: Dimensions, cluster: Dimensions, size: int) -> Binding:
        grid = self.launch.grid or (4 * cluster[0], cluster[1], cluster[2])
        assumed = inputs.Assumed(
            size, size, self.pointers, self.indices, {k: v for k, v in self.launch.parameters.items()}
        )
        return Binding(block, cluster, grid, self.launch.dynamic_shared or 200_000, assumed)

    def _go(self, binding: Binding, schedule: Schedule, repair: Repair = NO_REPAIR) -> Run:
        machine = Machine(self.program, binding, schedule, STEPS, repair)
        out_of_budget = False
        try:
            machine.run()
        except OutOfBudgetError:
            out_of_budget = True
        self.spent += machine.steps
        return Run(binding, schedule, machine, out_of_budget)

    def _note_initializers(self, machine: Machine) -> None:
        threads = {
            thread
            for event in machine.events
            if event.kind is Kind.INIT and event.agent
            for thread in event.agent.threads
        }
        self.program = replace(self.program, initializers=frozenset(threads))

    # Results

    def _defects(self, runs: Sequence[Run]) -> Iterator[Defect]:
        seen: set[tuple[Fault, int]] = set()
        for run in runs:
            if run.is_clean or run.out_of_budget:
                continue

            def rerun(repair: Repair, run: Run = run) -> Machine:
                return self._go(run.binding, run.schedule, repair).machine

            def mends(repair: Repair, run: Run = run) -> bool:
                order = sorted(SCHEDULES, key=lambda schedule: schedule != run.schedule)
                before, self.spent = self.spent, 0
                mended = self.trial_steps < TRIAL_STEPS and all(
                    self._go(run.binding, schedule, repair).is_clean for schedule in order
                )
                self.trial_steps += self.spent
                self.spent = before
                return mended

            for incident in diagnosis.diagnose(run.machine, self.cfg, mends, rerun):
                key = (incident.fault, incident.point)
                if key not in seen:
                    seen.add(key)
                    witness = tuple(diagnosis.involved(incident, run.machine))
                    yield Defect(incident, witness, (), is_certain=True)
            if seen:
                return

    def _result(self, runs: tuple[Run, ...], defects: tuple[Defect, ...]) -> Execution:
        covered = {event.point for run in runs for event in run.machine.events}
        reason = None
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
            reason,
        )


def _badness(runs: Sequence[Run]) -> int:
    return sum(len(run.machine.incidents) + len(run.machine.blocked) for run in runs)


def _concerns_cluster(instruction: Instruction) -> bool:
    return (
        instruction.opcode in ("mapa", "getctarank")
        or instruction.modifiers[:1] == ("cluster",)
        or "multicast::cluster" in instruction.modifiers
        or any(getattr(operand, "name", "").startswith("%cluster") for operand in instruction.operands)
    )
