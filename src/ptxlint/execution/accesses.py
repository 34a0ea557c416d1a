"""Data accesses as closures: what each instruction reads and writes of shared and tensor memory, and when it is over.

All comes from the rows of the instruction table: accesses, what an instruction opens, commits and waits for. Where the
PTX does not say how many bytes an access takes (tensor boxes, matrix descriptors), the least that it can is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ptxlint import isa
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

OPERAND_COLUMNS = 8
"""Columns of an A operand in tensor memory: K is 32 bytes for every dense kind of MMA."""

SCALES_PER_COLUMN = 32
"""Rows of A, or columns of B, whose scale factors share a column: one in each of 32 lanes.

Source: PTX ISA, *Scale Factor A ID*, *Scale Factor B ID*.
"""

LEAST_COLUMNS = 1
"""Columns that sparsity metadata and scale factors have at least."""

MATRIX_ROW = 16
LANE_SHIFT = 16
LANES_PER_QUARTER = 32
LANES_PER_SLAB = 16
ALL_LANES = 128

HALF_OF_LANES = 1 << 20
"""Added to a number of columns: of the first or the second 16 lanes of each quarter, as the address says.

Source: PTX ISA, *Data Path Layout Organization* (layout F: a product of 64 rows, but for `.ws`).
"""

WHOLE_QUARTER = "32x32b"
"""The shape of loads and stores that reach all lanes of a warp's quarter; the others reach 16 of them.

Source: PTX ISA, *Data Movement Shape*; CUTLASS names them by their 32 and 16 data paths.
"""


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
                addresses = {_in_quarter_of(warp, address) for address in addresses}
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
        found.setdefault(strand.threads[position] // LANES_PER_QUARTER, []).append(position)
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
        extent = _described_columns(access.role, instruction)
        return lambda strand: extent(_first(strand.registers[descriptor]))
    per_repeat = {"16x64b": 1, "32x32b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
    unit = next((per_repeat[m] for m in instruction.modifiers if m in per_repeat), 1)
    repeat = next((int(m[1:]) for m in instruction.modifiers if re.fullmatch(r"x\d+", m)), 1)
    return lambda strand: unit * repeat


def _described_columns(role: str, instruction: Instruction) -> Callable[[int], int]:
    """The columns of an operand of an MMA by the instruction descriptor.

    That of block scaling has M / 128 in bits 27 and 28. Source: PTX ISA, *Instruction descriptor*.
    """
    is_paired = "cta_group::2" in instruction.modifiers
    match role:
        case "scale_a":
            return lambda descriptor: (
                ((descriptor >> 27 & 3) * ALL_LANES >> is_paired) // SCALES_PER_COLUMN or LEAST_COLUMNS
            )
        case "scale_b":
            return lambda descriptor: _scale_columns((descriptor >> 17 & 0x3F) * 8)
        case "sparsity":
            return lambda descriptor: LEAST_COLUMNS
    is_plain = not is_paired and "ws" not in instruction.modifiers
    if role == "a":
        return lambda descriptor: OPERAND_COLUMNS | _half(descriptor, is_plain=is_plain)
    rows = ALL_LANES if "ws" in instruction.modifiers else 2 * ALL_LANES if is_paired else 0
    return lambda descriptor: _result_columns(descriptor, rows) | _half(descriptor, is_plain=is_plain)


def _half(descriptor: int, *, is_plain: bool) -> int:
    """The mark of half of the lanes for a product of 64 rows; is_plain: of one CTA, and without `.ws`."""
    return HALF_OF_LANES if is_plain and _rows(descriptor) == ALL_LANES // 2 else 0


def _rows(descriptor: int) -> int:
    """M of a product. Source: PTX ISA, *Instruction descriptor* (M / 16 in bits 24 to 28)."""
    return (descriptor >> 24 & 0x1F) * 16


def _scale_columns(extent: int) -> int:
    """Columns of the scale factors of so many rows of A, or columns of B."""
    return -(-extent // SCALES_PER_COLUMN) or LEAST_COLUMNS


def _result_columns(descriptor: int, full_rows: int) -> int:
    """Columns of D: N, or the part of it that is left where fewer rows than `full_rows` are spread over all lanes.

    These are the MMAs of a pair of CTAs with 128 rows and those of `.ws` with 64 and 32 rows; `full_rows` 0: all
    others, which leave lanes empty. Source: PTX ISA, *Data Path Layout Organization* (layouts B, E and G).
    """
    columns, rows = (descriptor >> 17 & 0x3F) * 8, _rows(descriptor)
    return columns * rows // full_rows if rows and rows < full_rows else columns


def _locator(
    instruction: Instruction, access: Access, *, is_tensor: bool
) -> Callable[[int, int, int], Iterator[Interval]]:
    """From an address operand's value to intervals: (value, extent, rank of the CTA)."""
    if is_tensor:
        if instruction.modifiers[:1] in (("mma",), ("dealloc",)):
            return _whole_columns
        is_by_slab = instruction.modifiers[:1] in (("ld",), ("st",)) and WHOLE_QUARTER not in instruction.modifiers
        return _own_slab if is_by_slab else _own_columns
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


def _in_quarter_of(warp: int, address: int) -> int:
    """A tensor memory address in the quarter of the lanes that a warp reaches, whichever quarter the address names.

    Source: PTX ISA, *Access restrictions*; DeepGEMM leaves the lane out of the address.
    """
    return (
        address & 0xFFFF
        | address & LANES_PER_SLAB << LANE_SHIFT
        | ((warp % WARPS_PER_GROUP) * LANES_PER_QUARTER << LANE_SHIFT)
    )


def _slab(slab: int, address: int, columns: int, rank: int) -> Interval:
    """Columns of 16 lanes."""
    start = rank << RANK_SHIFT | slab << LANE_SHIFT | address & 0xFFFF
    return start, start + columns


def _own_slab(address: int, columns: int, rank: int) -> Iterator[Interval]:
    """Columns of the 16 lanes that the address names."""
    yield _slab((address >> LANE_SHIFT) // LANES_PER_SLAB, address, columns, rank)


def _own_columns(address: int, columns: int, rank: int) -> Iterator[Interval]:
    """Columns of the quarter of lanes that the address names."""
    first = 2 * ((address >> LANE_SHIFT) // LANES_PER_QUARTER)
    yield from (_slab(slab, address, columns, rank) for slab in (first, first + 1))


def _whole_columns(address: int, columns: int, rank: int) -> Iterator[Interval]:
    """Columns of all lanes, or of half of them."""
    slabs = range(ALL_LANES // LANES_PER_SLAB)
    if columns & HALF_OF_LANES:
        slabs = slabs[(address >> LANE_SHIFT) // LANES_PER_SLAB % 2 :: 2]
    yield from (_slab(slab, address, columns & ~HALF_OF_LANES, rank) for slab in slabs)


def address_roles(instruction: Instruction) -> Sequence[str]:
    """The roles of the address operands that accesses use."""
    roles = isa.roles(instruction)
    return [access.role for access in _touched(instruction) if isinstance(roles[access.role], Address)]
