"""Snippets of PTX made into kernels and run, so that a test says only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ptxlint import cfg as graphs
from ptxlint.cfg import Cfg
from ptxlint.execution import engine, events, inputs, layout, lower
from ptxlint.execution import slice as slices
from ptxlint.execution.components import scalars
from ptxlint.execution.conflict import Failure
from ptxlint.execution.engine import Execution
from ptxlint.execution.layout import Layout
from ptxlint.execution.machine import Machine
from ptxlint.execution.program import Binding, Program
from ptxlint.execution.schedule import NO_REPAIR, SCHEDULES, Repair, Schedule
from ptxlint.execution.slice import Slice
from ptxlint.execution.trace import Event, Fault, Kind
from ptxlint.ir import Function, Module
from ptxlint.launch import Dimensions, Launch
from ptxlint.parse import parse
from ptxlint.testing import module_of

BUDGET = 20_000

PROBE = """
.shared .align 8 .b64 probe;
mov.u32 %r98, %tid.x;
setp.eq.u32 %p99, %r98, 0;
@%p99 mbarrier.init.shared.b64 [probe], 1;
{snippet}
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [probe], {register};
"""

INITIALIZED = """
.shared .align 8 .b8 bars[64];
mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared.b64 [bars], {first};
@%p1 mbarrier.init.shared.b64 [bars+8], {second};
bar.sync 0;
"""


def initialized(first: int = 1, second: int = 1) -> str:
    """The beginning of a kernel with two barriers of these counts; %r1 is the thread, %p1 holds in thread 0."""
    return INITIALIZED.format(first=first, second=second)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A snippet made ready to run: its slice as a program."""

    module: Module
    function: Function
    cfg: Cfg
    layout: Layout
    slice: Slice
    program: Program

    def opcodes(self) -> list[str]:
        """The instructions of the slice in order, by name."""
        return [self.cfg.body[point].name for point in sorted(self.slice.points)]

    def machine(
        self,
        threads: int | Dimensions = 32,
        cluster: int | Dimensions = 1,
        *,
        schedule: Schedule = SCHEDULES[0],
        repair: Repair = NO_REPAIR,
        size: int = 13,
        given: Mapping[str | int, int] | None = None,
        position: Dimensions = (0, 0, 0),
        budget: int = BUDGET,
    ) -> Machine:
        """A run that has not begun."""
        block = threads if isinstance(threads, tuple) else (threads, 1, 1)
        extents = cluster if isinstance(cluster, tuple) else (cluster, 1, 1)
        grid = (4 * extents[0], extents[1], extents[2])
        pointers = inputs.pointer_parameters(self.cfg)
        indices = inputs.parameter_indices(self.function)
        assumed = inputs.Assumed(size, 0, pointers, indices, given or {})
        return Machine(self.program, Binding(block, extents, grid, 4096, assumed, position), schedule, budget, repair)


def kernel(snippet: str) -> Kernel:
    """The first function of a snippet."""
    module = parse(module_of(snippet))
    function = scalars(module.functions[0])
    cfg = graphs.build(function)
    placed = layout.lay_out(module, function)
    seeds = {
        point: tuple(slices.synchronization_reads(instruction))
        for point, instruction in enumerate(cfg.body)
        if events.is_event(instruction) or events.is_remote_access(instruction)
    }
    found = slices.compute(cfg, seeds)
    return Kernel(module, function, cfg, placed, found, lower.lower(cfg, found, placed))


def run(snippet: str, threads: int | Dimensions = 32, cluster: int | Dimensions = 1, **how: object) -> Machine:
    """What happened in one run of a snippet."""
    machine = kernel(snippet).machine(threads, cluster, **how)  # type: ignore[arg-type]
    machine.run()
    return machine


def values(snippet: str, register: str, threads: int | Dimensions = 32, **how: object) -> list[int]:
    """What a register holds after a snippet, by thread of CTA 0. Threads that have exited are left out."""
    machine = run(PROBE.format(snippet=snippet, register=register), threads, **how)  # type: ignore[arg-type]
    held: dict[int, int] = {}
    for event in happened(machine, Kind.EXPECT):
        assert event.agent is not None
        if event.agent.rank == 0:
            held.update(dict.fromkeys(event.agent.threads, event.amount // len(event.agent.threads)))
    return [held[thread] for thread in sorted(held)]


def happened(machine: Machine, *kinds: Kind) -> list[Event]:
    """The events of these kinds, in order."""
    return [event for event in machine.events if event.kind in kinds]


def agents(machine: Machine, *kinds: Kind) -> list[str]:
    """Who took part in each event of these kinds, in words and sorted."""
    return sorted(str(event.agent) for event in happened(machine, *kinds))


def faults(machine: Machine) -> set[Fault]:
    """The incidents of a run by kind."""
    return {incident.fault for incident in machine.incidents}


def executed(
    snippet: str,
    threads: int | None = None,
    cluster: int | None = None,
    parameters: Mapping[str | int, int] | None = None,
) -> Execution:
    """What the engine says of the first kernel of a snippet; launched so, or as it finds out."""
    module = parse(module_of(snippet))
    block = None if threads is None else (threads, 1, 1)
    extents = None if cluster is None else (cluster, 1, 1)
    return engine.execute(module, module.functions[0], Launch(block, extents, parameters=parameters or {}))


def told(execution: Execution) -> list[tuple[Fault, str]]:
    """The defects of a kernel: which fault, and the instruction that is blamed."""
    return [(defect.fault, str(execution.body[defect.incident.point])) for defect in execution.defects]


def failures(snippet: str, threads: int = 64, cluster: int = 1) -> set[Failure]:
    """What is missing between the data accesses of a kernel that has no other fault."""
    execution = executed(snippet, threads, cluster)
    assert not execution.defects, [
        (defect.fault, str(execution.body[defect.incident.point])) for defect in execution.defects
    ]
    assert execution.not_analysed is None, execution.not_analysed
    return {conflict.failure for conflict in execution.conflicts}
