"""Data accesses as closures: what each instruction reads and writes of shared and tensor memory, and when it is over.

All comes from the rows of the instruction table: accesses, what an instruction opens, commits and waits for. Where the
PTX does not say how many bytes an access takes (tensor boxes, matrix descriptors), the least that it can is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ptxlint import isa
from ptxlint.execution import tensor_lanes
from ptxlint.execution.clock import BULK, CP_ASYNC, TENSOR_LOAD, TENSOR_STORE, WGMMA, Moment
from ptxlint.execution.conflict import Interval, Space, merged
from ptxlint.execution.events import Positions, Reader, is_event, shared_address
from ptxlint.execution.layout import OFFSET_MASK, RANK_SHIFT, SHARED_BASE
from ptxlint.execution.order import Order
from ptxlint.execution.program import Slots, Step
from ptxlint.execution.slice import registers_of
from ptxlint.execution.strand import WARP, WARPS_PER_GROUP, Strand
from ptxlint.execution.trace import Agent, Kind
from ptxlint.execution.values import Value, spread
from ptxlint.ir import Address, Immediate, Instruction, Register
from ptxlint.isa import Access, Mode, Proxy, Row, Tracking

KINDS = {
    Tracking.CP_ASYNC: CP_ASYNC,
    Tracking.BULK: BULK,
    Tracking.WGMMA: WGMMA,
    Tracking.TCGEN05_LD: TENSOR_LOAD,
    Tracking.TCGEN05_ST: TENSOR_STORE,
}
"""The time line of a warp's groups for each way of tracking that a warp waits for itself."""

NOTED = {
    "setmaxnreg": "registers",
    "tcgen05.alloc": "columns",
    "tcgen05.dealloc": "columns",
    "tcgen05.relinquish_alloc_permit": "",
    "griddepcontrol.launch_dependents": "",
    "griddepcontrol.wait": "",
}
"""Instructions that are recorded for the rules, by the name of their row: the role of the amount, if they have one."""

ORDERS = frozenset(
    {"fence", "membar", "fence.mbarrier_init", "tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync"}
)
"""Fences other than those of proxies, by the name of their row."""

LEAST_DESCRIBED = 128
"""Bytes that an operand described by a matrix descriptor or a tensor map has at least: one row of a swizzle atom."""

MATRIX_ROW = 16


def is_access(instruction: Instruction) -> bool:
    """Whether an instruction belongs to the data side: it touches shared or tensor memory, or orders such accesses."""
    row = isa.row(instruction)
    if row is None or is_event(instruction):
        return False
    return (
        row.name in NOTED
        or row.name in ORDERS
        or row.is_collective
        or _moves_time(row, instruction)
        or any(True for _ in _touched(instruction))
    )


def is_asynchronous(instruction: Instruction) -> bool:
    """Whether an instruction starts something that goes on by itself and touches shared or tensor memory."""
    row = isa.row(instruction)
    return row is not None and row.opens is not None and any(True for _ in _touched(instruction))


def is_generic_write(instruction: Instruction) -> bool:
    """Whether an instruction writes shared memory through the generic proxy."""
    return any(a.mode is not Mode.READ and a.proxy is Proxy.GENERIC for a in _touched(instruction))


def _moves_time(row: Row, instruction: Instruction) -> bool:
    coverage = isa.covers(instruction)
    return row.commits in KINDS or row.waits in KINDS or (coverage is not None and _fences_shared(instruction))


def _fences_shared(instruction: Instruction) -> bool:
    return "async" in instruction.modifiers and "global" not in instruction.modifiers


def _touched(instruction: Instruction) -> Iterator[Access]:
    for access in isa.accesses(instruction):
        if access.mode is Mode.OBJECT:
            continue
        is_indirect = access.is_descriptor or access.space == "tensor" or access.proxy is Proxy.TENSOR_MEMORY
        if is_indirect or isa.space(instruction, access).startswith("shared"):
            yield access


def registers(instruction: Instruction) -> Iterator[Register]:
    """The registers that say where an instruction's accesses go and how far they reach."""
    roles = isa.roles(instruction)
    for access in _touched(instruction):
        yield from registers_of(roles[access.role])
        if access.size and access.size in roles:
            yield from registers_of(roles[access.size])
    for role in ("idesc", NOTED.get(row.name, "") if (row := isa.row(instruction)) else ""):
        if role in roles:
            yield from registers_of(roles[role])


class Footprints:
    """The bytes around the addresses that threads hold, which all instructions with that base and size share."""

    def __init__(self) -> None:
        self._known: dict[tuple[Agent, Value, int, int | None], dict[int, list[Interval]]] = {}

    def by_warp(
        self, who: Agent, strand: Strand, positions: Positions, held: Value, size: int, lanes: int | None
    ) -> Footprint:
        """For each warp the intervals of so many bytes from the addresses on that these of its lanes have."""
        key = (who, held, size, lanes)
        if key not in self._known:
            at = _naming(strand, positions, lanes)
            self._known[key] = {
                warp: merged((a, a + size) for a in ({held[i] for i in members} if held.__class__ is tuple else {held}))
                for warp, members in _by_warp(strand, at).items()
            }
        return self._known[key]


Footprint = Mapping[int, Sequence[Interval]]


def build(instruction: Instruction, point: int, slots: Slots, footprints: Footprints | None = None) -> Step:
    """The closure that reports an instruction to the order of the run; `footprints` are those of its program."""
    row = isa.row(instruction)
    assert row is not None
    reader = Reader(slots, instruction)
    shared = footprints or Footprints()
    parts = [_accesses(instruction, access, row, point, reader, shared) for access in _touched(instruction)]
    parts.extend(_times(instruction, row, point, reader))
    guard = slots.register(instruction.guard.register.name) if instruction.guard else None
    negated = instruction.guard is not None and instruction.guard.negated

    def run(strand: Strand) -> None:
        order = strand.machine.order
        if order is None:
            return
        positions: Positions = None
        if guard is not None:
            held = spread(strand.registers[guard], len(strand.threads))
            positions = [i for i, value in enumerate(held) if (value == 0) is negated]
            if not positions:
                return
        order.when = len(strand.machine.events)
        for part in parts:
            part(strand, order, positions)

    return run


def name_of(instruction: Instruction) -> str:
    """The opcode with its first modifier, by which accesses are told apart."""
    return ".".join((instruction.opcode, *instruction.modifiers[:1]))


Part = Callable[[Strand, Order, Positions], None]


def _agent(strand: Strand, positions: Positions) -> Agent:
    if positions is None:
        return strand.agent
    return Agent(strand.cta.rank, tuple(strand.threads[i] for i in positions))


def _times(instruction: Instruction, row: Row, point: int, reader: Reader) -> Iterator[Part]:
    """Fences, commits, waits, and the coming together of a warp's lanes."""
    if _fences_shared(instruction) and isa.covers(instruction) is not None:
        yield _fence(point)
    if row.name in ORDERS:
        yield _orders(instruction, row)
    if row.waits in KINDS:
        pending = reader.roles.get("count")
        count = pending.value if isinstance(pending, Immediate) and isinstance(pending.value, int) else 0
        yield _wait_group(KINDS[row.waits], count, point, commits="count" not in reader.roles)
    elif row.commits in KINDS:
        yield _commit(KINDS[row.commits], point)
    if row.name in NOTED:
        yield _note(point, reader, NOTED[row.name])
    if row.is_collective:
        yield lambda strand, order, positions: order.converge(_agent(strand, positions))


def _note(point: int, reader: Reader, role: str) -> Part:
    slot = reader.slot(role) if role in reader.roles else None

    def run(strand: Strand, order: Order, positions: Positions) -> None:
        del order
        amount = 0 if slot is None else _first(strand.registers[slot])
        strand.machine.record(Kind.OTHER, _agent(strand, positions), point, amount=amount)

    return run


def _fence(point: int) -> Part:
    def run(strand: Strand, order: Order, positions: Positions) -> None:
        who = _agent(strand, positions)
        strand.machine.record(Kind.FENCE, who, point)
        order.fence(who)
        order.lifetimes.declare(who)

    return run


def _orders(instruction: Instruction, row: Row) -> Part:
    """A fence that makes synchronization out of relaxed operations, or orders operations on tensor memory with it."""
    semantics = isa.semantics(instruction)
    releases, acquires = semantics != "acquire", semantics != "release"

    def run(strand: Strand, order: Order, positions: Positions) -> None:
        who = _agent(strand, positions)
        if row.name == "fence.mbarrier_init":
            order.lifetimes.declare(who)
        elif instruction.opcode == "tcgen05":
            order.fence_tensor_memory(who, before="before" in row.name)
        else:
            order.fence_memory(who, releases=releases, acquires=acquires)

    return run


def _commit(kind: str, point: int) -> Part:
    def run(strand: Strand, order: Order, positions: Positions) -> None:
        who = _agent(strand, positions)
        strand.machine.record(Kind.COMMIT, who, point)
        order.commit(who, kind)

    return run


def _wait_group(kind: str, pending: int, point: int, *, commits: bool) -> Part:
    """A wait for all but the newest `pending` groups; one without a count first makes a group of what is left."""

    def run(strand: Strand, order: Order, positions: Positions) -> None:
        who = _agent(strand, positions)
        strand.machine.record(Kind.WAIT_GROUP, who, point, amount=pending)
        if commits:
            order.commit(who, kind)
        order.wait_group(who, kind, pending)

    return run


def _moment(row: Row) -> Callable[[Order, Agent, int], Moment | None]:
    """When the accesses of an instruction are over."""
    if row.opens in KINDS:
        kind = KINDS[row.opens]
        return lambda order, agent, warp: order.in_group(agent, warp, kind)
    if row.opens is Tracking.TCGEN05_COMMIT:
        return lambda order, agent, warp: order.until_commit(agent)
    return lambda order, agent, warp: None


def _accesses(
    instruction: Instruction, access: Access, row: Row, point: int, reader: Reader, footprints: Footprints
) -> Part:
    """The part of an instruction that makes one access.

    Of wgmma's A each warp reads its own 16 rows; the first, which a descriptor names, are the first warp's. Source:
    PTX ISA, *Register Fragments and Shared Memory Matrix Layouts*; flash-attention writes P warp by warp.
    """
    base, offset = reader.address(access.role)
    moment = _moment(row)
    is_write = access.mode in (Mode.WRITE, Mode.UPDATE)
    is_tensor = access.space == "tensor" or access.proxy is Proxy.TENSOR_MEMORY
    space = Space.TENSOR if is_tensor else Space.SHARED
    extent = _extent(instruction, access, reader, point)
    what = name_of(instruction)
    is_atomic = instruction.opcode in ("atom", "red")
    is_rows = row.opens is Tracking.WGMMA and access.role == "a" and not _transposes_a(reader)
    is_by_warp = row.opens in (Tracking.TCGEN05_LD, Tracking.TCGEN05_ST)
    locate = _locator(instruction, access, is_tensor=is_tensor)
    lanes = isa.naming_lanes(instruction, access)

    placed: dict[tuple[Agent, Value, int], list[tuple[int, tuple[Interval, ...]]]] = {}

    def run(strand: Strand, order: Order, positions: Positions) -> None:
        who = _agent(strand, positions)
        held = strand.registers[base]
        size = extent(strand)
        key = (who, held, size)
        places = placed.get(key)
        if places is None:
            is_alike = locate is _plain
            moved = shifted(footprints.by_warp(who, strand, positions, held, size, lanes)) if is_alike else None
            places = placed[key] = moved or list(place(strand, positions, held, size))
        for warp, intervals in places:
            order.access(
                who,
                warp,
                intervals,
                point,
                is_write=is_write,
                proxy=access.proxy,
                space=space,
                moment=moment(order, who, warp),
                is_atomic=is_atomic,
                what=what,
            )

    def shifted(footprint: Footprint) -> list[tuple[int, tuple[Interval, ...]]] | None:
        """A footprint at the instruction's offset; None where not all of it is in one window."""
        found = []
        for warp, intervals in footprint.items():
            low, high = intervals[0][0] + offset, intervals[-1][1] - 1 + offset
            move = shared_address(low) - low
            if shared_address(high) - high != move or not _is_one_window(low + move, high + move):
                return None
            found.append((warp, tuple((start + offset + move, stop + offset + move) for start, stop in intervals)))
        return found

    def place(
        strand: Strand, positions: Positions, held: Value, size: int
    ) -> Iterator[tuple[int, tuple[Interval, ...]]]:
        for warp, members in _by_warp(strand, _naming(strand, positions, lanes)).items():
            if is_rows and warp % WARPS_PER_GROUP:
                continue
            addresses = {held[i] + offset for i in members} if held.__class__ is tuple else {held + offset}
            if is_by_warp:
                addresses = {tensor_lanes.in_quarter_of(warp, address) for address in addresses}
            intervals = tuple(merged(i for address in addresses for i in locate(address, size, strand.cta.rank)))
            if intervals:
                yield warp, intervals

    return run


def _transposes_a(reader: Reader) -> bool:
    operand = reader.roles.get("transpose_a")
    return isinstance(operand, Immediate) and operand.value != 0


def _naming(strand: Strand, positions: Positions, lanes: int | None) -> Sequence[int]:
    """The positions of the threads that name bytes: all that take part, or those of so many lanes of each warp."""
    at = range(len(strand.threads)) if positions is None else positions
    return at if lanes is None else [i for i in at if strand.threads[i] % WARP < lanes]


def _by_warp(strand: Strand, positions: Iterable[int]) -> dict[int, Sequence[int]]:
    if isinstance(positions, range):
        return dict(strand.warps())
    found: dict[int, list[int]] = {}
    for position in positions:
        found.setdefault(strand.threads[position] // WARP, []).append(position)
    return dict(found)


def _extent(instruction: Instruction, access: Access, reader: Reader, point: int) -> Callable[[Strand], int]:
    """Bytes of shared memory from the address on, or columns of tensor memory."""
    if access.is_descriptor or access.is_mapped:
        return lambda strand: LEAST_DESCRIBED
    if access.space == "tensor" or access.proxy is Proxy.TENSOR_MEMORY:
        return _columns(instruction, access, reader)
    if access.size and access.size in reader.roles:
        size = reader.slot(access.size)
        return lambda strand: _first(strand.registers[size])
    if "tensor" in instruction.modifiers:
        return lambda strand: strand.machine.program.extents.get(point, LEAST_DESCRIBED)
    least = MATRIX_ROW if "matrix" in instruction.opcode else 1
    known = isa.access_bytes(instruction, access) or least
    return lambda strand: known


def _first(value: object) -> int:
    return value[0] if isinstance(value, tuple) else value if isinstance(value, int) else 0


def _columns(instruction: Instruction, access: Access, reader: Reader) -> Callable[[Strand], int]:
    """Columns of tensor memory: those of a load's or store's shape, or N of an MMA's instruction descriptor.

    Source: PTX ISA, *tcgen05.ld*, *Data Movement Shape*; *Instruction descriptor* (N / 8 in bits 17 to 22).
    """
    if access.size and access.size in reader.roles:
        size = reader.slot(access.size)
        return lambda strand: _first(strand.registers[size])
    if "idesc" in reader.roles:
        descriptor = reader.slot("idesc")
        extent = tensor_lanes.described_columns(access.role, instruction)
        return lambda strand: extent(_first(strand.registers[descriptor]))
    count = tensor_lanes.moved_columns(instruction)
    return lambda strand: count


def _locator(
    instruction: Instruction, access: Access, *, is_tensor: bool
) -> Callable[[int, int, int], Iterator[Interval]]:
    """From an address operand's value to intervals: (value, extent, rank of the CTA)."""
    if is_tensor:
        return tensor_lanes.locator(instruction)
    return _described if access.is_descriptor else _plain


def _plain(address: int, size: int, rank: int) -> Iterator[Interval]:
    del rank
    start = shared_address(address)
    if size > 0 and start & OFFSET_MASK >= SHARED_BASE:
        yield start, start + size


def _is_one_window(low: int, high: int) -> bool:
    """Whether shared memory of one CTA holds all bytes from one address to another."""
    return low <= high and low >> RANK_SHIFT == high >> RANK_SHIFT and low & OFFSET_MASK >= SHARED_BASE


def _described(descriptor: int, size: int, rank: int) -> Iterator[Interval]:
    """The first row of what a matrix descriptor names. Source: PTX ISA, *Matrix Descriptor* (address / 16, 14 bits)."""
    start = (descriptor & 0x3FFF) << 4
    if start >= SHARED_BASE:
        yield rank << RANK_SHIFT | start, (rank << RANK_SHIFT | start) + size


def address_roles(instruction: Instruction) -> Sequence[str]:
    """The roles of the address operands that accesses use."""
    roles = isa.roles(instruction)
    return [access.role for access in _touched(instruction) if isinstance(roles[access.role], Address)]
