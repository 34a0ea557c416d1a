"""Runs of a kernel's slice: each under a launch, inputs and a schedule, within a budget of steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.execution import diagnosis, inputs
from ptxlint.execution.machine import Machine
from ptxlint.execution.program import Binding, Program, Slot
from ptxlint.execution.schedule import NO_REPAIR, OutOfBudgetError, Repair, Schedule
from ptxlint.execution.trace import Kind
from ptxlint.launch import Dimensions, Launch

STEPS = 60_000
"""Steps of one run."""

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


def varied(binding: Binding, special: Mapping[tuple[str, int], int]) -> Binding:
    """The same launch and inputs, but for some parameter words."""
    assert isinstance(binding.inputs, inputs.Assumed)
    return replace(binding, inputs=replace(binding.inputs, special={**binding.inputs.special, **special}))


class Runner:
    """Runs a program under launches that complete the one stated. `spent` counts the steps of all its runs."""

    def __init__(self, program: Program, cfg: Cfg, launch: Launch, seeds: frozenset[int]) -> None:
        self.program = program
        self.launch = launch
        self.seeds = seeds
        self.pointers = inputs.pointer_parameters(cfg)
        self.indices = inputs.parameter_indices(cfg.function)
        self.spent = 0

    def binding(
        self,
        block: Dimensions,
        cluster: Dimensions,
        size: int,
        special: Mapping[tuple[str, int], int] = MappingProxyType({}),
    ) -> Binding:
        """A launch with assumed integers of `size`, but for the parameter words that `special` names."""
        grid = self.launch.grid or (4 * cluster[0], cluster[1], cluster[2])
        assumed = inputs.Assumed(size, size, self.pointers, self.indices, self.launch.parameters, special)
        return Binding(block, cluster, grid, self.launch.dynamic_shared or 200_000, assumed)

    def go(self, binding: Binding, schedule: Schedule, repair: Repair = NO_REPAIR, steps: int = STEPS) -> Run:
        """One run of so many steps at most."""
        machine = Machine(self.program, binding, schedule, steps, repair)
        out_of_budget = False
        try:
            machine.run()
        except OutOfBudgetError:
            out_of_budget = True
        self.spent += machine.steps
        return Run(binding, schedule, machine, out_of_budget)

    def covered(self, run: Run) -> set[int]:
        """The synchronization points that a run reached."""
        return {event.point for event in run.machine.events} & self.seeds

    def reach(self, run: Run) -> tuple[int, int]:
        """How many synchronization points a run reached, and phases of its busiest barrier, no more than enough."""
        phases = max((b.phase for b in run.machine.mbarriers.values()), default=ENOUGH_PHASES)
        return len(self.covered(run)), min(phases, ENOUGH_PHASES)

    def words(self) -> list[Slot]:
        """The parameter words that the slice reads."""
        return [slot for slot in self.program.slots.index if slot.kind == "parameter"]

    def note_initializers(self, machine: Machine) -> None:
        """From now on schedules know who initializes mbarriers."""
        threads = {
            thread
            for event in machine.events
            if event.kind is Kind.INIT and event.agent
            for thread in event.agent.threads
        }
        self.program = replace(self.program, initializers=frozenset(threads))
