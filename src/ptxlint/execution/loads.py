"""Loads, stores and atomics as closures, on shared, local, parameter and global memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxlint import isa
from ptxlint.execution.arithmetic import identity
from ptxlint.execution.closures import address_of, elements, slot_of, type_of
from ptxlint.execution.layout import LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from ptxlint.execution.memory import load_local, store_local, store_local_scattered
from ptxlint.execution.program import Slot, Slots, Step
from ptxlint.execution.strand import Strand
from ptxlint.execution.values import Value, lift, spread, uniform
from ptxlint.ir import Address, Instruction, Register, Symbol, Vector


def _load(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    roles = isa.roles(instruction)
    targets = [slots.operand(target) for target in elements(roles["destination"])]
    width = isa.type_width(type_of(instruction)) // 8
    signed = type_of(instruction).startswith("s")
    address = roles["address"]
    if isinstance(address, Address) and isinstance(address.base, Symbol) and address.base.name in parameters:
        offset = address.base.offset + address.offset
        sources = [
            slots.of(Slot("parameter", address.base.name, offset + index * width, width))
            for index in range(len(targets))
        ]
        bits = [isa.type_width(t.type) if isinstance(t, Register) else 32 for t in elements(roles["destination"])]
        return _copies(sources, targets, width, max(bits) if signed else 0)
    base, offset = address_of(slots, address)
    register_bits = max(
        (isa.type_width(t.type) for t in elements(roles["destination"]) if isinstance(t, Register)), default=32
    )
    extend = _sign_extension(width, register_bits) if signed else None
    look = poll if isa.semantics(instruction) in _STRONG else read

    def run(strand: Strand) -> None:
        registers = strand.registers
        where = registers[base]
        for index, target in enumerate(targets):
            value = look(strand, where, offset + index * width, width)
            if extend is not None:
                value = lift(extend, (value,), len(strand.threads)) if value.__class__ is tuple else extend(value)
            registers[target] = value

    return run


def _sign_extension(width: int, bits: int) -> Callable[[int], int]:
    sign = 1 << (8 * width - 1)
    ones = (1 << bits) - 1
    return lambda value: ((value ^ sign) - sign) & ones


def _copies(sources: Sequence[int], targets: Sequence[int], width: int, signed_bits: int) -> Step:
    extend = _sign_extension(width, signed_bits) if signed_bits else identity
    pairs = list(zip(sources, targets, strict=True))

    def run(strand: Strand) -> None:
        registers = strand.registers
        for source, target in pairs:
            registers[target] = extend(registers[source])

    return run


def read(strand: Strand, where: Value, offset: int, width: int) -> Value:
    """What the threads of a strand find at an address (plus an offset), generic or of its own window."""
    if where.__class__ is not tuple:
        return read_at(strand, where + offset, width)
    found = [read_at(strand, address + offset, width) for address in where]
    return uniform([value[i] if value.__class__ is tuple else value for i, value in enumerate(found)])


_STRONG = ("acquire", "relaxed", "volatile")
"""Loads that may see what other threads of the grid have written meanwhile (*Memory Consistency Model*)."""

PATIENCE = 4
"""So often a strong load finds what the kernel itself knows of a word; then 0, 1, 2, and so on."""


def poll(strand: Strand, where: Value, offset: int, width: int) -> Value:
    """What a strong load finds; who asks for one word of global memory again and again sees others count it up."""
    found = read(strand, where, offset, width)
    if where.__class__ is tuple or not is_global(where + offset):
        return found
    looks = strand.machine.global_memory.look(where + offset)
    return found if looks < PATIENCE else looks - PATIENCE


def is_global(address: int) -> bool:
    """Whether a generic address is of global memory: in no window, and no address of shared memory's own space."""
    return address >= WINDOW_SIZE and not PARAMETER_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE


def read_at(strand: Strand, address: int, width: int) -> Value:
    """The value at one address; of local memory, the value of each thread."""
    if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_SIZE:
        return load_local(strand.local, address, width)
    if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE:
        return strand.machine.shared_memory.load(address - SHARED_WINDOW, width)
    if address < WINDOW_SIZE:
        return strand.machine.shared_memory.load(address, width)
    if PARAMETER_WINDOW <= address < LOCAL_WINDOW:
        return strand.machine.parameter_memory(address, width)
    return strand.machine.global_memory.load(address, width)


def _store(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step:
    roles = isa.roles(instruction)
    sources = [slot_of(slots, value, type_of(instruction)) for value in elements(roles["value"])]  # type: ignore[arg-type]
    width = isa.type_width(type_of(instruction)) // 8
    base, offset = address_of(slots, roles["address"])
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
            store_local(strand.local, address, width, value)
            return
        last = value[-1] if value.__class__ is tuple else value
        _write_shared(strand, address, width, last & ones)
        return
    values = spread(value, len(where))
    addresses = [address + offset for address in where]
    if LOCAL_WINDOW <= addresses[0] < LOCAL_WINDOW + WINDOW_SIZE:
        store_local_scattered(strand.local, addresses, width, values)
        return
    for address, item in zip(addresses, values, strict=True):
        _write_shared(strand, address, width, item & ones)


def _write_shared(strand: Strand, address: int, width: int, value: int) -> None:
    machine = strand.machine
    if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE:
        machine.shared_memory.store(address - SHARED_WINDOW, width, value)
    elif address < WINDOW_SIZE:
        machine.shared_memory.store(address, width, value)
    else:
        machine.global_memory.store(address, width, value)
    strand.progress()


ATOMIC: dict[str, Callable[[int, int, int], int]] = {
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


def _signed(kind: str, sign: int) -> Callable[[int, int, int], int]:
    choose = min if kind == "min" else max
    return lambda old, value, ones: choose(old, value, key=lambda bits: (bits ^ sign) - sign)


def _atomic(instruction: Instruction, slots: Slots, parameters: frozenset[str]) -> Step | None:
    """atom and red, thread by thread in lane order."""
    roles = isa.roles(instruction)
    kind = next((m for m in instruction.modifiers if m in ATOMIC or m == "cas"), None)
    if kind is None or isinstance(roles["value"], Vector) or type_of(instruction)[0] not in "bsu":
        return None
    width = isa.type_width(type_of(instruction)) // 8
    ones = (1 << 8 * width) - 1
    base, offset = address_of(slots, roles["address"])
    value = slot_of(slots, roles["value"], type_of(instruction))  # type: ignore[arg-type]
    compare = slot_of(slots, roles["compare"], type_of(instruction)) if kind == "cas" else value  # type: ignore[arg-type]
    destination = roles.get("destination")
    target = slots.register(destination.name) if isinstance(destination, Register) else None
    operation = ATOMIC.get(kind)
    if kind in ("min", "max") and type_of(instruction).startswith("s"):
        operation = _signed(kind, 1 << 8 * width - 1)

    def run(strand: Strand) -> None:
        registers = strand.registers
        count = len(strand.threads)
        results = []
        columns = zip(*(spread(registers[slot], count) for slot in (base, value, compare)), strict=True)
        for where, operand, expected in columns:
            old = read_at(strand, where + offset, width)
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


MAKERS: dict[str, Callable[[Instruction, Slots, frozenset[str]], Step | None]] = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
}
"""By opcode."""
