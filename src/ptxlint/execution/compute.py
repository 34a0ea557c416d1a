"""Instructions without effect on barriers as closures: arithmetic, memory, exchange between lanes, address windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ptxlint import isa
from ptxlint.execution.arithmetic import Computation, Input, constant, identity, scalar
from ptxlint.execution.layout import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    OFFSET_MASK,
    PARAMETER_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_SIZE,
)
from ptxlint.execution.program import Slot, Slots, Step, is_volatile
from ptxlint.execution.strand import WARP, Strand, Value, lift, spread, uniform
from ptxlint.ir import Address, Immediate, Instruction, Not, Operand, Pair, Register, Sink, Symbol, Vector

ALL_ONES = 0xFFFFFFFF
Scalar = Callable[..., Any]


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


def _slot(slots: Slots, operand: Input, type_name: str) -> int:
    if isinstance(operand, Immediate):
        return slots.constant(constant(operand, type_name))
    return slots.operand(operand)


def _compute(computation: Computation, slots: Slots) -> Step:
    inputs = [_slot(slots, o, t) for o, t in zip(computation.inputs, computation.types, strict=True)]
    outputs = [slots.register(o.name) if isinstance(o, Register) else slots.register("_") for o in computation.outputs]
    function = computation.function
    if len(outputs) > 1:
        return _several(function, inputs, outputs)
    target = outputs[0]
    if function is identity:
        return _move(inputs[0], target)
    if len(inputs) == 1:
        return _unary(function, inputs[0], target)
    if len(inputs) == 2:
        return _binary(function, inputs[0], inputs[1], target)
    if len(inputs) == 3:
        return _ternary(function, inputs[0], inputs[1], inputs[2], target)
    return _several(lambda *values: (function(*values),), inputs, outputs)


def _move(source: int, target: int) -> Step:
    def run(strand: Strand) -> None:
        registers = strand.registers
        registers[target] = registers[source]

    return run


def _unary(function: Scalar, first: int, target: int) -> Step:
    def run(strand: Strand) -> None:
        registers = strand.registers
        a = registers[first]
        registers[target] = uniform(list(map(function, a))) if a.__class__ is tuple else function(a)

    return run


def _binary(function: Scalar, first: int, second: int, target: int) -> Step:
    def run(strand: Strand) -> None:
        registers = strand.registers
        a, b = registers[first], registers[second]
        if a.__class__ is tuple or b.__class__ is tuple:
            registers[target] = lift(function, (a, b), len(strand.threads))
        else:
            registers[target] = function(a, b)

    return run


def _ternary(function: Scalar, first: int, second: int, third: int, target: int) -> Step:
    def run(strand: Strand) -> None:
        registers = strand.registers
        a, b, c = registers[first], registers[second], registers[third]
        if a.__class__ is tuple or b.__class__ is tuple or c.__class__ is tuple:
            registers[target] = lift(function, (a, b, c), len(strand.threads))
        else:
            registers[target] = function(a, b, c)

    return run


def _several(function: Scalar, inputs: Sequence[int], outputs: Sequence[int]) -> Step:
    def run(strand: Strand) -> None:
        registers = strand.registers
        arguments = [registers[slot] for slot in inputs]
        if any(value.__class__ is tuple for value in arguments):
            rows = [function(*row) for row in zip(*(spread(a, len(strand.threads)) for a in arguments), strict=True)]
            for target, column in zip(outputs, zip(*rows, strict=True), strict=True):
                registers[target] = uniform(column)
        else:
            for target, value in zip(outputs, function(*arguments), strict=True):
                registers[target] = value

    return run


def _clock(instruction: Instruction, slots: Slots) -> Step:
    target = slots.operand(instruction.operands[0])

    def run(strand: Strand) -> None:
        strand.machine.clock += 1
        strand.registers[target] = strand.machine.clock

    return run


# Memory


def _address(slots: Slots, operand: Operand) -> tuple[int, int]:
    if isinstance(operand, Address):
        return slots.operand(operand.base), operand.offset
    return slots.operand(operand), 0


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _type(instruction: Instruction) -> str:
    return instruction.modifiers[-1]


def _load(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    roles = isa.roles(instruction)
    targets = [slots.operand(target) for target in _elements(roles["destination"])]
    width = isa.type_width(_type(instruction)) // 8
    signed = _type(instruction).startswith("s")
    address = roles["address"]
    if isinstance(address, Address) and isinstance(address.base, Symbol) and address.base.name in parameters:
        offset = address.base.offset + address.offset
        sources = [
            slots.of(Slot("parameter", address.base.name, offset + index * width, width))
            for index in range(len(targets))
        ]
        return _copies(sources, targets, width, signed)
    base, offset = _address(slots, address)
    register_bits = max(
        (isa.type_width(t.type) for t in _elements(roles["destination"]) if isinstance(t, Register)), default=32
    )
    extend = _sign_extension(width, register_bits) if signed else None

    def run(strand: Strand) -> None:
        registers = strand.registers
        where = registers[base]
        for index, target in enumerate(targets):
            value = read(strand, where, offset + index * width, width)
            if extend is not None:
                value = lift(extend, (value,), len(strand.threads)) if value.__class__ is tuple else extend(value)
            registers[target] = value

    return run


def _sign_extension(width: int, bits: int) -> Callable[[int], int]:
    sign = 1 << (8 * width - 1)
    ones = (1 << bits) - 1
    return lambda value: ((value ^ sign) - sign) & ones


def _copies(sources: Sequence[int], targets: Sequence[int], width: int, signed: bool) -> Step:
    extend = _sign_extension(width, max(32, 8 * width)) if signed else identity
    pairs = list(zip(sources, targets, strict=True))

    def run(strand: Strand) -> None:
        registers = strand.registers
        for source, target in pairs:
            registers[target] = extend(registers[source])

    return run


def read(strand: Strand, where: Value, offset: int, width: int) -> Value:
    """What the threads of a strand find at an address (plus an offset), generic or of its own window."""
    if where.__class__ is not tuple:
        return read_at(strand, where + offset, width, None)
    found = [read_at(strand, address + offset, width, position) for position, address in enumerate(where)]
    return uniform([value[i] if value.__class__ is tuple else value for i, value in enumerate(found)])


def read_at(strand: Strand, address: int, width: int, position: int | None) -> Value:
    """The value at one address; `position` tells whose local memory is meant when only one thread asks."""
    if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_SIZE:
        return _read_local(strand, address, width)
    if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE:
        return strand.machine.shared_memory.load(address - SHARED_WINDOW, width)
    if address < WINDOW_SIZE:
        return strand.machine.shared_memory.load(address, width)
    if PARAMETER_WINDOW <= address < LOCAL_WINDOW:
        return strand.machine.parameter_memory(address, width)
    return strand.machine.global_memory.load(address, width)


def _read_local(strand: Strand, address: int, width: int) -> Value:
    stored = strand.local.get(address)
    if stored is not None and stored[0] == width:
        return stored[1]
    if stored is not None and stored[0] > width:
        ones = (1 << 8 * width) - 1
        value = stored[1]
        return uniform([v & ones for v in value]) if value.__class__ is tuple else value & ones
    for start in range(max(address - 15, LOCAL_WINDOW), address):
        other = strand.local.get(start)
        if other is not None and start + other[0] >= address + width:
            shift, ones = 8 * (address - start), (1 << 8 * width) - 1
            value = other[1]
            return uniform([v >> shift & ones for v in value]) if value.__class__ is tuple else value >> shift & ones
    parts = [strand.local.get(address + i) for i in range(width)]
    value = 0
    for index, part in enumerate(parts):
        if part is not None and part[1].__class__ is not tuple:
            value |= part[1] << 8 * index
    return value & (1 << 8 * width) - 1


def _store(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    del parameters
    roles = isa.roles(instruction)
    sources = [_slot(slots, value, _type(instruction)) for value in _elements(roles["value"])]  # type: ignore[arg-type]
    width = isa.type_width(_type(instruction)) // 8
    base, offset = _address(slots, roles["address"])
    ones = (1 << 8 * width) - 1

    def run(strand: Strand) -> None:
        registers = strand.registers
        for index, source in enumerate(sources):
            write(strand, registers[base], offset + index * width, width, registers[source], ones)

    return run


def write(strand: Strand, where: Value, offset: int, width: int, value: Value, ones: int) -> None:
    """Store a value where the threads of a strand say."""
    if where.__class__ is not tuple:
        address = where + offset
        if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_SIZE:
            strand.local[address] = (width, value)
            return
        last = value[-1] if value.__class__ is tuple else value
        _write_shared(strand, address, width, last & ones)
        return
    for address, item in zip(where, spread(value, len(where)), strict=True):
        if LOCAL_WINDOW <= address + offset < LOCAL_WINDOW + WINDOW_SIZE:
            strand.local[address + offset] = (width, item)
        else:
            _write_shared(strand, address + offset, width, item & ones)


def _write_shared(strand: Strand, address: int, width: int, value: int) -> None:
    machine = strand.machine
    if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE:
        machine.shared_memory.store(address - SHARED_WINDOW, width, value)
    elif address < WINDOW_SIZE:
        machine.shared_memory.store(address, width, value)
    else:
        machine.global_memory.store(address, width, value)
    strand.progress()


_ATOMIC: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, value, ones: (old + value) & ones,
    "and": lambda old, value, ones: old & value,
    "or": lambda old, value, ones: old | value,
    "xor": lambda old, value, ones: old ^ value,
    "exch": lambda old, value, ones: value & ones,
    "min": lambda old, value, ones: min(old, value),
    "max": lambda old, value, ones: max(old, value),
    "inc": lambda old, value, ones: 0 if old >= value else old + 1,
    "dec": lambda old, value, ones: value if old == 0 or old > value else old - 1,
}


def _atomic(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step | None:
    """atom and red, thread by thread in lane order."""
    del parameters
    roles = isa.roles(instruction)
    kind = next((m for m in instruction.modifiers if m in _ATOMIC or m == "cas"), None)
    if kind is None or isinstance(roles["value"], Vector) or _type(instruction)[0] not in "bsu":
        return None
    width = isa.type_width(_type(instruction)) // 8
    ones = (1 << 8 * width) - 1
    base, offset = _address(slots, roles["address"])
    value = _slot(slots, roles["value"], _type(instruction))  # type: ignore[arg-type]
    compare = _slot(slots, roles["compare"], _type(instruction)) if kind == "cas" else value  # type: ignore[arg-type]
    destination = roles.get("destination")
    target = slots.register(destination.name) if isinstance(destination, Register) else None
    operation = _ATOMIC.get(kind)

    def run(strand: Strand) -> None:
        registers = strand.registers
        count = len(strand.threads)
        results = []
        columns = zip(*(spread(registers[slot], count) for slot in (base, value, compare)), strict=True)
        for where, operand, expected in columns:
            old = read_at(strand, where + offset, width, None)
            old = old[0] if old.__class__ is tuple else old
            if operation is not None:
                new = operation(old, operand & ones, ones)
            else:
                new = operand if old == expected & ones else old
            if new != old:
                write(strand, where, offset, width, new, ones)
            results.append(old)
        if target is not None:
            registers[target] = uniform(results)

    return run


# Windows of the address space


def _cvta(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    del parameters
    target = slots.operand(instruction.operands[0])
    source, offset = _address(slots, instruction.operands[1])
    window = SHARED_WINDOW if any(m.startswith("shared") for m in instruction.modifiers) else 0
    to_generic = "to" not in instruction.modifiers

    def convert(value: int) -> int:
        value += offset
        if not window:
            return value
        return (
            value + window if to_generic and value < WINDOW_SIZE else value % WINDOW_SIZE if not to_generic else value
        )

    return _unary(convert, source, target)


def _mapa(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    del parameters
    target = slots.operand(instruction.operands[0])
    source, offset = _address(slots, instruction.operands[1])
    rank = _slot(slots, instruction.operands[2], "u32")  # type: ignore[arg-type]

    def run_one(address: int, number: int) -> int:
        window = address - address % WINDOW_SIZE
        return window + (number << RANK_SHIFT | (address + offset) & OFFSET_MASK)

    return _binary(run_one, source, rank, target)


def _getctarank(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    del parameters
    target = slots.operand(instruction.operands[0])
    source, _ = _address(slots, instruction.operands[1])
    return _unary(lambda address: address % WINDOW_SIZE >> RANK_SHIFT, source, target)


def _isspacep(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    del parameters
    target = slots.operand(instruction.operands[0])
    source, _ = _address(slots, instruction.operands[1])
    space = instruction.modifiers[0]
    bounds = {
        "shared": (SHARED_WINDOW, SHARED_WINDOW + WINDOW_SIZE),
        "local": (LOCAL_WINDOW, LOCAL_WINDOW + WINDOW_SIZE),
        "param": (PARAMETER_WINDOW, LOCAL_WINDOW),
        "global": (GLOBAL_BASE, PARAMETER_WINDOW),
    }
    low, high = bounds.get(space.partition("::")[0], (0, 0))
    return _unary(lambda address: int(low <= address < high), source, target)


# Exchange between lanes


def _by_warp(strand: Strand) -> list[list[int]]:
    return list(strand.warps().values())


def _elect(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    """elect.sync: the lowest lane of the mask leads (measured; the ISA says only that the choice is deterministic)."""
    del parameters
    leader = instruction.operands[0]
    parts = (leader.first, leader.second) if isinstance(leader, Pair) else (Sink(), leader)
    number = slots.register(parts[0].name) if isinstance(parts[0], Register) else None
    flag = slots.register(parts[1].name) if isinstance(parts[1], Register) else None

    def run(strand: Strand) -> None:
        chosen = [0] * len(strand.threads)
        lanes = [0] * len(strand.threads)
        for positions in _by_warp(strand):
            chosen[positions[0]] = 1
            for position in positions:
                lanes[position] = strand.threads[positions[0]] % WARP
        if flag is not None:
            strand.registers[flag] = uniform(chosen)
        if number is not None:
            strand.registers[number] = uniform(lanes)

    return run


def _shfl(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    """shfl: a lane that reads from outside its segment, or from one that does not take part, keeps its own value."""
    del parameters
    roles = isa.roles(instruction)
    destination = roles["destination"]
    first, second = (destination.first, destination.second) if isinstance(destination, Pair) else (destination, Sink())
    target = slots.register(first.name) if isinstance(first, Register) else None
    flag = slots.register(second.name) if isinstance(second, Register) else None
    value = _slot(slots, roles["value"], "b32")  # type: ignore[arg-type]
    lane = _slot(slots, roles["lane"], "u32")  # type: ignore[arg-type]
    clamp = _slot(slots, roles["clamp"], "u32")  # type: ignore[arg-type]
    mode = next(m for m in instruction.modifiers if m in ("up", "down", "bfly", "idx"))

    def run(strand: Strand) -> None:
        registers = strand.registers
        held = registers[value]
        if held.__class__ is not tuple:
            if target is not None:
                registers[target] = held
            if flag is not None:
                registers[flag] = 1
            return
        count = len(strand.threads)
        wanted, limits = spread(registers[lane], count), spread(registers[clamp], count)
        results, flags = list(held), [1] * count
        for positions in _by_warp(strand):
            at = {strand.threads[p] % WARP: p for p in positions}
            for own, position in at.items():
                source, valid = _source_lane(mode, own, wanted[position] & 31, limits[position])
                flags[position] = int(valid)
                if valid and source in at:
                    results[position] = held[at[source]]
        if target is not None:
            registers[target] = uniform(results)
        if flag is not None:
            registers[flag] = uniform(flags)

    return run


def _source_lane(mode: str, own: int, operand: int, clamp: int) -> tuple[int, bool]:
    """The lane that is read, and whether it is in range. Source: PTX ISA, *shfl.sync*."""
    limit, segment = clamp & 31, clamp >> 8 & 31
    highest = own & segment | limit & ~segment & 31
    lowest = own & segment
    match mode:
        case "up":
            source = own - operand
            return source, source >= highest
        case "down":
            source = own + operand
        case "bfly":
            source = own ^ operand
        case _:
            source = lowest | operand & ~segment & 31
    return source, source <= highest


def _vote(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    del parameters
    destination = instruction.operands[0]
    target = slots.register(destination.name) if isinstance(destination, Register) else slots.register("_")
    source = instruction.operands[1]
    negated = isinstance(source, Not)
    value = slots.operand(source.operand if isinstance(source, Not) else source)
    mode = next((m for m in instruction.modifiers if m in ("all", "any", "uni", "ballot")), "any")

    def run(strand: Strand) -> None:
        held = [bool(v) is not negated for v in spread(strand.registers[value], len(strand.threads))]
        results = [0] * len(held)
        for positions in _by_warp(strand):
            votes = [held[p] for p in positions]
            if mode == "ballot":
                found = sum(1 << strand.threads[p] % WARP for p in positions if held[p])
            elif mode == "uni":
                found = int(all(votes) or not any(votes))
            else:
                found = int(all(votes) if mode == "all" else any(votes))
            for position in positions:
                results[position] = found
        strand.registers[target] = uniform(results)

    return run


def _redux(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step | None:
    del parameters
    kind = next((m for m in instruction.modifiers if m in ("add", "min", "max", "and", "or", "xor")), None)
    type_name = _type(instruction)
    if kind is None or type_name.startswith("f"):
        return None
    target, source = slots.operand(instruction.operands[0]), slots.operand(instruction.operands[1])
    sign = 1 << 31 if type_name == "s32" else 0

    def combine(values: list[int]) -> int:
        if kind in ("min", "max"):
            numbers = [(v ^ sign) - sign for v in values]
            return (min(numbers) if kind == "min" else max(numbers)) & ALL_ONES
        result = values[0]
        for item in values[1:]:
            result = _ATOMIC[kind](result, item, ALL_ONES)
        return result

    def run(strand: Strand) -> None:
        held = spread(strand.registers[source], len(strand.threads))
        results = list(held)
        for positions in _by_warp(strand):
            found = combine([held[p] for p in positions])
            for position in positions:
                results[position] = found
        strand.registers[target] = uniform(results)

    return run


def _match(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    del parameters
    destination = instruction.operands[0]
    first, second = (destination.first, destination.second) if isinstance(destination, Pair) else (destination, Sink())
    target = slots.register(first.name) if isinstance(first, Register) else slots.register("_")
    flag = slots.register(second.name) if isinstance(second, Register) else None
    source = slots.operand(instruction.operands[1])
    everyone = "all" in instruction.modifiers

    def run(strand: Strand) -> None:
        held = spread(strand.registers[source], len(strand.threads))
        results = [0] * len(held)
        for positions in _by_warp(strand):
            for position in positions:
                same = [p for p in positions if held[p] == held[position]]
                agree = len(same) == len(positions)
                mask = sum(1 << strand.threads[p] % WARP for p in same)
                results[position] = mask if agree or not everyone else 0
        strand.registers[target] = uniform(results)
        if flag is not None:
            strand.registers[flag] = uniform([int(mask != 0) for mask in results])

    return run


def _activemask(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    del parameters
    target = slots.operand(instruction.operands[0])

    def run(strand: Strand) -> None:
        results = [0] * len(strand.threads)
        for positions in _by_warp(strand):
            mask = sum(1 << strand.threads[p] % WARP for p in positions)
            for position in positions:
                results[position] = mask
        strand.registers[target] = uniform(results)

    return run


def _cluster_control(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step | None:
    """clusterlaunchcontrol.query_cancel, on the response as `events` encodes it."""
    del parameters
    if "query_cancel" not in instruction.modifiers:
        return None
    roles = isa.roles(instruction)
    response = slots.operand(roles["response"])
    targets = [slots.operand(target) for target in _elements(roles["destination"])]
    is_question = "is_canceled" in instruction.modifiers

    def answer(value: int) -> int:
        return value & 1 if is_question else value >> 32 & ALL_ONES

    first = _unary(answer, response, targets[0])
    rest = targets[1:]

    def run(strand: Strand) -> None:
        first(strand)
        for target in rest:
            strand.registers[target] = 0

    return run


MAKERS: dict[str, Callable[[Instruction, Slots, frozenset[str]], Step | None]] = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
    "cvta": _cvta,
    "mapa": _mapa,
    "getctarank": _getctarank,
    "isspacep": _isspacep,
    "elect": _elect,
    "shfl": _shfl,
    "vote": _vote,
    "redux": _redux,
    "match": _match,
    "activemask": _activemask,
    "clusterlaunchcontrol": _cluster_control,
}
"""Instructions that need more than their registers, by opcode."""
