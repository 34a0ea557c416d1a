"""Synchronization instructions as closures: what each does to the machine's barriers.

An event closure takes the strand and the positions of the threads that run it (None: all of them). A blocking one
returns False when the strand has to wait; it then runs again once something has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ptxlint import isa
from ptxlint.execution import meetings
from ptxlint.execution.barriers import Copy
from ptxlint.execution.closures import elements
from ptxlint.execution.flights import launch
from ptxlint.execution.layout import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW, WINDOW_SIZE
from ptxlint.execution.program import Slots, Step
from ptxlint.execution.slice import reads_shared
from ptxlint.execution.strand import Strand
from ptxlint.execution.trace import Agent, Fault
from ptxlint.execution.values import spread, uniform
from ptxlint.ir import Address, Instruction, Not, Operand, Register

Positions = Sequence[int] | None
Event = Callable[[Strand, Positions], None]
Blocking = Callable[[Strand], bool]
Getter = Callable[[Strand, int], Sequence[int]]


def shared_address(address: int) -> int:
    """The `shared::cluster` address behind a generic one; others are returned as they are."""
    if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE:
        return address - SHARED_WINDOW
    return address


class Reader:
    """Reads operands by role: the values for each thread that takes part."""

    def __init__(self, slots: Slots, instruction: Instruction) -> None:
        self.slots = slots
        self.roles = isa.roles(instruction)

    def slot(self, role: str, default: int | None = None) -> int:
        """The slot of a role; one that holds `default` when the instruction has no such operand."""
        operand = self.roles.get(role)
        if operand is None:
            if default is None:
                raise KeyError(role)
            return self.slots.constant(default)
        return self.slots.operand(_base(operand), 32)

    def address(self, role: str) -> tuple[int, int]:
        """Slot of the base and offset in bytes of an address operand."""
        operand = self.roles[role]
        if isinstance(operand, Address):
            return self.slots.operand(operand.base), operand.offset
        return self.slots.operand(operand), 0

    def target(self, role: str) -> int | None:
        """The slot of a result register; None when it is thrown away."""
        operand = self.roles.get(role)
        return self.slots.register(operand.name) if isinstance(operand, Register) else None


def _base(operand: Operand) -> Operand:
    return operand.base if isinstance(operand, Address) else operand


def values(strand: Strand, slot: int, positions: Positions) -> Sequence[int]:
    """The value of a slot in each thread that takes part."""
    value = strand.registers[slot]
    if positions is None:
        return spread(value, len(strand.threads))
    return [value[i] for i in positions] if value.__class__ is tuple else [value] * len(positions)


def agent(strand: Strand, positions: Positions) -> Agent:
    """The threads that take part."""
    return strand.agent if positions is None else Agent(strand.cta.rank, tuple(strand.threads[i] for i in positions))


def grouped(columns: Iterable[Sequence[int]]) -> Counter[tuple[int, ...]]:
    """How many threads hold each combination of values."""
    return Counter(zip(*columns, strict=True))


def groups(strand: Strand, positions: Positions, slots: Sequence[int]) -> Iterable[tuple[tuple[int, ...], Agent, int]]:
    """The combinations of values of these slots, with the threads that hold each and their number."""
    registers = strand.registers
    held = [registers[slot] for slot in slots]
    if not any(value.__class__ is tuple for value in held):
        who = agent(strand, positions)
        return [(tuple(held), who, len(who.threads))]
    columns = [values(strand, slot, positions) for slot in slots]
    found: dict[tuple[int, ...], list[int]] = {}
    threads = strand.threads if positions is None else [strand.threads[i] for i in positions]
    for thread, combination in zip(threads, zip(*columns, strict=True), strict=True):
        found.setdefault(combination, []).append(thread)
    return [(key, Agent(strand.cta.rank, tuple(who)), len(who)) for key, who in found.items()]


def build(instruction: Instruction, point: int, slots: Slots) -> tuple[Event | None, Blocking | None]:
    """The closure of a synchronization instruction: one that cannot block, or one that may."""
    row = isa.row(instruction)
    if row is None:
        return None, None
    reader = Reader(slots, instruction)
    maker = EVENTS.get(row.name)
    if maker is not None:
        return maker(instruction, point, reader), None
    blocker = BLOCKERS.get(row.name)
    if blocker is not None:
        made = blocker(instruction, point, reader)
        return (None, made) if made is not None else (_barrier_arrive(instruction, point, reader), None)
    return None, None


def _init(instruction: Instruction, point: int, reader: Reader) -> Event:
    base, offset = reader.address("mbarrier")
    count = reader.slot("count")

    def run(strand: Strand, positions: Positions) -> None:
        for (address, number), who, threads in groups(strand, positions, (base, count)):
            for _ in range(threads):
                strand.machine.phases.initialize(strand, point, shared_address(address + offset), number, who)

    return run


def _inval(instruction: Instruction, point: int, reader: Reader) -> Event:
    base, offset = reader.address("mbarrier")

    def run(strand: Strand, positions: Positions) -> None:
        for (address,), who, _ in groups(strand, positions, (base,)):
            strand.machine.phases.invalidate(point, shared_address(address + offset), who)

    return run


def _arrive(instruction: Instruction, point: int, reader: Reader) -> Event:
    base, offset = reader.address("mbarrier")
    has_tx = "tx" in reader.roles
    amount = reader.slot("tx") if has_tx else reader.slot("count", 1)
    token = reader.target("token")
    drop = instruction.modifiers[0] == "arrive_drop"
    relaxed = isa.semantics(instruction) == "relaxed"

    def run(strand: Strand, positions: Positions) -> None:
        machine = strand.machine
        taken: dict[int, int] = {}
        for (raw, number), who, threads in groups(strand, positions, (base, amount)):
            address = shared_address(raw + offset)
            machine.remote(strand, point, address)
            if has_tx:
                phases = [
                    machine.phases.arrive(who, point, address, 1, expect=number, drop=drop, relaxed=relaxed)
                    for _ in range(threads)
                ]
            else:
                phases = [
                    machine.phases.arrive(who, point, address, number * threads, drop=drop, relaxed=relaxed)
                ] * threads
            taken.update(zip(who.threads, phases, strict=True))
        strand.progress()
        if token is not None:
            before = spread(strand.registers[token], len(strand.threads))
            kept = zip(strand.threads, before, strict=True)
            strand.registers[token] = uniform([taken.get(thread, old) for thread, old in kept])

    return run


def _expect(instruction: Instruction, point: int, reader: Reader) -> Event:
    base, offset = reader.address("mbarrier")
    amount = reader.slot("tx")

    def run(strand: Strand, positions: Positions) -> None:
        for (address, number), who, threads in groups(strand, positions, (base, amount)):
            strand.machine.phases.expect(who, point, shared_address(address + offset), number * threads)
        strand.progress()

    return run


def _complete(instruction: Instruction, point: int, reader: Reader) -> Event:
    base, offset = reader.address("mbarrier")
    amount = reader.slot("tx")

    def run(strand: Strand, positions: Positions) -> None:
        for (address, number), who, threads in groups(strand, positions, (base, amount)):
            strand.machine.phases.complete(who, point, shared_address(address + offset), number * threads)
        strand.progress()

    return run


def _copies_arrive(instruction: Instruction, point: int, reader: Reader) -> Event:
    """cp.async.mbarrier.arrive: without `.noinc` the pending count rises first, so the phase sees no change."""
    base, offset = reader.address("mbarrier")
    counted = "noinc" in instruction.modifiers

    def run(strand: Strand, positions: Positions) -> None:
        machine = strand.machine
        for (raw,), who, threads in groups(strand, positions, (base,)):
            address = shared_address(raw + offset)
            if not counted:
                barrier = machine.phases.mbarrier(address, point, who)
                if barrier is not None:
                    barrier.pending += threads
                    barrier.raised += threads
            launch(machine, Copy(point, who, address, 0, arrivals=threads))

    return run


def _bulk(instruction: Instruction, point: int, reader: Reader) -> Event:
    """A bulk or tensor copy that completes on an mbarrier, in each CTA of a multicast mask.

    With `.cta_group::2` the signal for a CTA goes to the CTA of its pair whose rank has the parity of the mbarrier's.
    """
    base, offset = reader.address("mbarrier")
    size = reader.slot("size") if "size" in reader.roles else None
    mask = reader.slot("mask") if "mask" in reader.roles else None
    destination = reader.address("destination")
    origin = reader.address("source") if reads_shared(instruction) else None
    is_tensor = "tensor" in instruction.modifiers
    alignment = 128 if is_tensor else 16
    is_paired = "cta_group::2" in instruction.modifiers
    watched = [base, destination[0], *([size] if size is not None else []), *([mask] if mask is not None else [])]
    watched += [origin[0]] if origin is not None else []

    def run(strand: Strand, positions: Positions) -> None:
        machine = strand.machine
        for found, who, threads in groups(strand, positions, watched):
            address = shared_address(found[0] + offset)
            where = shared_address(found[1] + destination[1])
            number = found[2] if size is not None else None
            read = shared_address(found[-1] + origin[1]) if origin is not None else -1
            if where % alignment:
                machine.blame(Fault.MISALIGNED, point, who, where, alignment=alignment, remainder=where % alignment)
            ranks = [address >> RANK_SHIFT]
            if mask is not None:
                ranks = [rank for rank in range(len(machine.ctas)) if found[2 + (size is not None)] >> rank & 1]
            for _ in range(threads):
                for rank in ranks:
                    signaled = rank & ~1 | address >> RANK_SHIFT & 1 if is_paired and mask is not None else rank
                    target = signaled << RANK_SHIFT | address & OFFSET_MASK
                    machine.remote(strand, point, target)
                    landing = rank << RANK_SHIFT | where & OFFSET_MASK if mask is not None else where
                    launch(machine, Copy(point, who, target, number, destination=landing, source=read))
        strand.progress()

    return run


def _store_async(instruction: Instruction, point: int, reader: Reader) -> Event:
    """st.async and red.async: the bytes of the value complete on the mbarrier; a stored value may be a control word."""
    base, offset = reader.address("mbarrier")
    width = isa.type_width(instruction.modifiers[-1]) // 8
    size = isa.vector_length(instruction) * width
    destination = reader.address("address")
    stored = elements(reader.roles["value"]) if instruction.opcode == "st" else ()
    words = [(reader.slots.operand(value), destination[1] + index * width) for index, value in enumerate(stored)]

    def run(strand: Strand, positions: Positions) -> None:
        for word, start in words:
            for where, value in zip(*(values(strand, s, positions) for s in (destination[0], word)), strict=True):
                strand.machine.shared_memory.store(shared_address(where + start), width, value)
        for (address, where), who, threads in groups(strand, positions, (base, destination[0])):
            target = shared_address(address + offset)
            landing = shared_address(where + destination[1])
            strand.machine.remote(strand, point, target)
            copy = Copy(point, who, target, size * threads, destination=landing, is_generic=True)
            launch(strand.machine, copy)

    return run


def _commit(instruction: Instruction, point: int, reader: Reader) -> Event:
    """tcgen05.commit: one arrival when the operations before it are done, in each CTA of a multicast mask."""
    base, offset = reader.address("mbarrier")
    mask = reader.slot("mask") if "mask" in reader.roles else None
    watched = [base, *([mask] if mask is not None else [])]

    def run(strand: Strand, positions: Positions) -> None:
        machine = strand.machine
        for found, who, threads in groups(strand, positions, watched):
            address = shared_address(found[0] + offset)
            ranks = [address >> RANK_SHIFT]
            if mask is not None:
                ranks = [rank for rank in range(len(machine.ctas)) if found[-1] >> rank & 1]
            for rank in ranks:
                target = rank << RANK_SHIFT | address & OFFSET_MASK
                machine.remote(strand, point, target)
                launch(machine, Copy(point, who, target, 0, arrivals=threads, is_commit=True))
        strand.progress()

    return run


CANCELED = 1
GRANTED_REQUESTS = 2
"""Cluster launch requests that are granted before one fails; the response is opaque, so its encoding here is ours."""


def _try_cancel(instruction: Instruction, point: int, reader: Reader) -> Event:
    base, offset = reader.address("mbarrier")
    destination = reader.address("destination")
    everywhere = "multicast::cluster::all" in instruction.modifiers

    def run(strand: Strand, positions: Positions) -> None:
        machine = strand.machine
        for (barrier, where), who, _ in groups(strand, positions, (base, destination[0])):
            address = shared_address(barrier + offset)
            granted = machine.cancel_requests < GRANTED_REQUESTS
            machine.cancel_requests += 1
            response = (machine.cancel_requests << 32 | CANCELED) if granted else 0
            ranks = range(len(machine.ctas)) if everywhere else [address >> RANK_SHIFT]
            for rank in ranks:
                target = shared_address(where + destination[1]) & OFFSET_MASK | rank << RANK_SHIFT
                machine.shared_memory.store(target, 16, response)
                launch(machine, Copy(point, who, address & OFFSET_MASK | rank << RANK_SHIFT, 16))
        strand.progress()

    return run


def _cluster_arrive(instruction: Instruction, point: int, reader: Reader) -> Event:
    relaxed = "relaxed" in instruction.modifiers

    def run(strand: Strand, positions: Positions) -> None:
        meetings.cluster_arrive(strand.machine, agent(strand, positions), point, relaxed=relaxed)

    return run


def _barrier_arrive(instruction: Instruction, point: int, reader: Reader) -> Event:
    number, count = reader.slot("barrier"), reader.slot("count", 0)
    aligned = isa.is_aligned(instruction)

    def run(strand: Strand, positions: Positions) -> None:
        for (which, expected), who, _ in groups(strand, positions, (number, count)):
            acting = strand
            if who.threads != strand.threads:
                acting = strand.part([i for i, thread in enumerate(strand.threads) if thread in set(who.threads)])
            meetings.bar(acting, point, which, expected, waits=False, aligned=aligned)
        strand.progress()

    return run


def _wait(instruction: Instruction, point: int, reader: Reader) -> Blocking:
    """test_wait and try_wait. A token is the phase that it was taken in; its parity is that of the phase."""
    base, offset = reader.address("mbarrier")
    parity = reader.slot("parity") if "parity" in reader.roles else reader.slot("token")
    done = reader.target("done")
    relaxed = isa.semantics(instruction) == "relaxed"

    def run(strand: Strand) -> bool:
        registers = strand.registers
        address = shared_address(registers[base] + offset)
        outcome = strand.machine.phases.wait(strand, point, address, registers[parity] & 1, relaxed=relaxed)
        if outcome is None:
            return False
        if done is not None:
            registers[done] = int(outcome)
        return True

    return run


def _barrier_sync(instruction: Instruction, point: int, reader: Reader) -> Blocking | None:
    if "arrive" in instruction.modifiers:
        return None
    number, count = reader.slot("barrier"), reader.slot("count", 0)
    aligned = isa.is_aligned(instruction)
    predicate = reader.slot("predicate") if "predicate" in reader.roles else None
    inverted = int(isinstance(reader.roles.get("predicate"), Not))
    result = reader.target("result")
    operation = next((m for m in ("popc", "and", "or") if m in instruction.modifiers), "popc")

    def run(strand: Strand) -> bool:
        registers = strand.registers
        pending = strand.pending
        if pending is None:
            votes = () if predicate is None else spread(registers[predicate], len(strand.threads))
            held = tuple(vote ^ inverted for vote in votes)
            named = strand.cta.named.get(registers[number])
            generation = named.generation if named else 0
            barrier = meetings.bar(
                strand, point, registers[number], registers[count], waits=True, aligned=aligned, predicate=held
            )
            pending = (barrier, generation)
        barrier, generation = pending
        if barrier.generation > generation:
            strand.pending = None
            strand.progress()
            if strand.machine.order is not None:
                strand.machine.order.bar_leave(strand.agent, barrier.number, generation)
            if result is not None:
                registers[result] = barrier.result[operation]
            return True
        strand.pending = pending
        strand.state = "at barrier"
        barrier.waiting.append(strand)
        return False

    return run


def _cluster_wait(instruction: Instruction, point: int, reader: Reader) -> Blocking:
    def run(strand: Strand) -> bool:
        return meetings.cluster_wait(strand, point)

    return run


EVENTS: dict[str, Callable[[Instruction, int, Reader], Event]] = {
    "mbarrier.init": _init,
    "mbarrier.inval": _inval,
    "mbarrier.arrive": _arrive,
    "mbarrier.arrive_drop": _arrive,
    "mbarrier.expect_tx": _expect,
    "mbarrier.complete_tx": _complete,
    "cp.async.mbarrier.arrive": _copies_arrive,
    "st.async": _store_async,
    "red.async": _store_async,
    "tcgen05.commit": _commit,
    "clusterlaunchcontrol.try_cancel": _try_cancel,
    "barrier.cluster.arrive": _cluster_arrive,
    "cp.async.bulk": _bulk,
    "cp.async.bulk.tensor": _bulk,
    "cp.reduce.async.bulk": _bulk,
}
"""Instructions that never block, by the name of their row."""

BLOCKERS: dict[str, Callable[[Instruction, int, Reader], Blocking | None]] = {
    "mbarrier.test_wait": _wait,
    "mbarrier.try_wait": _wait,
    "bar": _barrier_sync,
    "barrier": _barrier_sync,
    "barrier.cluster.wait": _cluster_wait,
}
"""Instructions that may block, by the name of their row; a maker returns None for a form that does not."""

DISTINGUISHING: dict[str, tuple[str, ...]] = {
    "mbarrier.test_wait": ("mbarrier", "parity", "token"),
    "mbarrier.try_wait": ("mbarrier", "parity", "token"),
    "bar": ("barrier", "count"),
    "barrier": ("barrier", "count"),
}
"""Roles that must agree within a strand before it can block as one."""


def is_remote_access(instruction: Instruction) -> bool:
    """Whether an instruction reads or writes the `shared::cluster` window, by itself and not through an mbarrier."""
    is_access = instruction.opcode in ("ld", "st", "atom", "red") and "async" not in instruction.modifiers
    return is_access and "shared::cluster" in instruction.modifiers


def noting_remote(instruction: Instruction, point: int, reader: Reader) -> Step:
    """The closure that notes whom a remote access reaches."""
    base, offset = reader.address("address")
    guard = reader.slots.register(instruction.guard.register.name) if instruction.guard else None
    negated = instruction.guard is not None and instruction.guard.negated

    def run(strand: Strand) -> None:
        positions: Positions = None
        if guard is not None:
            held = spread(strand.registers[guard], len(strand.threads))
            positions = [i for i, value in enumerate(held) if (value == 0) is negated]
        if positions is None or positions:
            for (address,), _, _ in groups(strand, positions, (base,)):
                strand.machine.remote(strand, point, shared_address(address + offset))

    return run


def is_event(instruction: Instruction) -> bool:
    """Whether an instruction is a synchronization point of the slice."""
    row = isa.row(instruction)
    if row is None:
        return False
    if row.name in BLOCKERS:
        return True
    if row.name not in EVENTS:
        return False
    return "mbarrier" in isa.roles(instruction) or row.name == "barrier.cluster.arrive"
