"""Instructions without effect on barriers as closures: arithmetic, memory, exchange between lanes, address windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxlint import isa
from ptxlint.execution import lanes, loads, windows
from ptxlint.execution.arithmetic import Computation, identity, scalar
from ptxlint.execution.closures import ALL_ONES, binary, elements, move, several, slot_of, ternary, unary
from ptxlint.execution.program import Slots, Step, is_volatile
from ptxlint.execution.strand import Strand, merge_local
from ptxlint.execution.values import interleave, spread, uniform
from ptxlint.ir import Instruction, Register


def build(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step | None:
    """The closure of an instruction outside the barrier machinery; None when its meaning is not known."""
    maker = MAKERS.get(instruction.opcode)
    if maker is not None:
        return maker(instruction, slots, parameters)
    if is_volatile(instruction):
        return _clock(instruction, slots)
    computation = scalar(instruction)
    return None if computation is None else _compute(computation, slots)


def unknown(instruction: Instruction, slots: Slots) -> Step:
    """The closure of an instruction whose meaning is not known: its results are 0."""
    targets = [slots.register(register.name) for register in isa.writes(instruction)]

    def run(strand: Strand) -> None:
        for target in targets:
            strand.registers[target] = 0

    return run


def guarded_effect(step: Step, guard: int, negated: bool, targets: Sequence[int]) -> Step:
    """The closure of a store or an atomic under a guard: only the threads where it holds run it."""

    def run(strand: Strand) -> None:
        condition = strand.registers[guard]
        if condition.__class__ is not tuple:
            if (condition == 0) is negated:
                step(strand)
            return
        acting = [i for i, value in enumerate(condition) if (value == 0) is negated]
        others = [i for i, value in enumerate(condition) if (value == 0) is not negated]
        part, rest = strand.part(acting), strand.part(others)
        step(part)
        order = sorted((thread, s, i) for s, own in enumerate((part, rest)) for i, thread in enumerate(own.threads))
        for target in targets:
            strand.registers[target] = interleave([part.registers[target], rest.registers[target]], order)
        merge_local(strand, (part, rest), order)

    return run


def guarded(step: Step, guard: int, negated: bool, targets: Sequence[int]) -> Step:
    """The closure under a guard: in threads where it does not hold, the results keep their old values."""

    def run(strand: Strand) -> None:
        registers = strand.registers
        condition = registers[guard]
        if condition.__class__ is not tuple:
            if (condition == 0) is negated:
                step(strand)
            return
        before = [registers[target] for target in targets]
        step(strand)
        count = len(strand.threads)
        for target, old in zip(targets, before, strict=True):
            new = registers[target]
            if new is not old:
                columns = zip(condition, spread(new, count), spread(old, count), strict=True)
                registers[target] = uniform([n if (c == 0) is negated else o for c, n, o in columns])

    return run


def _compute(computation: Computation, slots: Slots) -> Step:
    inputs = [slot_of(slots, o, t) for o, t in zip(computation.inputs, computation.types, strict=True)]
    outputs = [slots.register(o.name) if isinstance(o, Register) else slots.register("_") for o in computation.outputs]
    function = computation.function
    if len(outputs) > 1:
        return several(function, inputs, outputs)
    target = outputs[0]
    if function is identity:
        return move(inputs[0], target)
    if len(inputs) == 1:
        return unary(function, inputs[0], target)
    if len(inputs) == 2:
        return binary(function, inputs[0], inputs[1], target)
    if len(inputs) == 3:
        return ternary(function, inputs[0], inputs[1], inputs[2], target)
    return several(lambda *values: (function(*values),), inputs, outputs)


def _clock(instruction: Instruction, slots: Slots) -> Step:
    target = slots.operand(instruction.operands[0])

    def run(strand: Strand) -> None:
        strand.machine.clock += 1
        strand.registers[target] = strand.machine.clock

    return run


def _cluster_control(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step | None:
    """clusterlaunchcontrol.query_cancel, on the response as `events` encodes it."""
    if "query_cancel" not in instruction.modifiers:
        return None
    roles = isa.roles(instruction)
    response = slots.operand(roles["response"])
    targets = [slots.operand(target) for target in elements(roles["destination"])]
    is_question = "is_canceled" in instruction.modifiers

    def answer(value: int) -> int:
        return value & 1 if is_question else value >> 32 & ALL_ONES

    first = unary(answer, response, targets[0])
    rest = targets[1:]

    def run(strand: Strand) -> None:
        first(strand)
        for target in rest:
            strand.registers[target] = 0

    return run


MAKERS: dict[str, Callable[[Instruction, Slots, frozenset[str]], Step | None]] = {
    **loads.MAKERS,
    **windows.MAKERS,
    **lanes.MAKERS,
    "clusterlaunchcontrol": _cluster_control,
}
"""Instructions that need more than their registers, by opcode."""
