"""Tensor maps that a kernel changes: writes of them in global memory, fences of the tensormap proxy, and their uses.

A map is opaque, 128 bytes, and read by the tensormap proxy of a copy. Only kernels that have an instruction for tensor
maps are looked at, and of their stores only those to memory that a map may lie in: whose address comes from the same
parameter, variable or load as the address of a map.
Sources: PTX ISA, *tensormap.replace*, *tensormap.cp_fenceproxy*, *membar/fence*, *cp.async.bulk.tensor*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.execution.clock import BULK
from ptxlint.execution.conflict import Space
from ptxlint.execution.events import Positions, Reader, groups, shared_address
from ptxlint.execution.layout import GLOBAL_BASE, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from ptxlint.execution.order import Order
from ptxlint.execution.program import Slots, Step
from ptxlint.execution.slice import registers_of
from ptxlint.execution.strand import WARP, Strand
from ptxlint.execution.trace import Agent
from ptxlint.execution.values import spread
from ptxlint.ir import Address, Instruction, Operand, Register, Symbol
from ptxlint.isa import Access, Mode, Proxy

MAP_BYTES = 128

Root: TypeAlias = tuple[str, int] | int
"""Where an address comes from: a symbol with an offset, or the place of a load."""


def registers(cfg: Cfg, definitions: Mapping[str, Sequence[int]]) -> dict[int, tuple[Register, ...]]:
    """The instructions that touch tensor maps in global memory, each with the registers that say where."""
    reachable = [p for p in range(len(cfg.body)) if cfg.block_of[p] in cfg.reachable]
    if not any(_is_for_maps(cfg.body[point]) for point in reachable):
        return {}
    found: dict[int, tuple[Register, ...]] = {}
    roots: set[Root] = set()
    for point in reachable:
        operand = _map_operand(cfg.body[point])
        if operand is not None:
            found[point] = _needed(cfg.body[point], operand)
            roots |= _roots(cfg, definitions, operand)
    for point in reachable:
        operand = _stored(cfg.body[point])
        if operand is not None and not roots.isdisjoint(_roots(cfg, definitions, operand)):
            found[point] = tuple(registers_of(operand))
        elif _is_for_maps(cfg.body[point]):
            found.setdefault(point, ())
    return found


def _is_for_maps(instruction: Instruction) -> bool:
    """Whether an instruction changes tensor maps or fences their proxy."""
    coverage = isa.covers(instruction)
    return instruction.opcode == "tensormap" or (coverage is not None and coverage.after is Proxy.TENSORMAP)


def _needed(instruction: Instruction, operand: Operand) -> tuple[Register, ...]:
    mbarrier = isa.roles(instruction).get("mbarrier")
    return (*registers_of(operand), *(registers_of(mbarrier) if mbarrier is not None else ()))


def _map_operand(instruction: Instruction) -> Operand | None:
    """The operand that addresses a tensor map in global memory: of a copy, a change, or an acquire."""
    if _is_for_maps(instruction):
        if instruction.modifiers[:1] == ("replace",) and "shared::cta" in instruction.modifiers:
            return None
        roles = isa.roles(instruction)
        return roles.get("destination") if instruction.modifiers[:1] == ("cp_fenceproxy",) else roles.get("address")
    used = _use(instruction)
    return isa.roles(instruction)[used.role] if used is not None else None


def _use(instruction: Instruction) -> Access | None:
    """The access to the tensor map of a copy; a prefetch of the map is none, since it only warms a cache."""
    if instruction.opcode != "cp":
        return None
    return next((access for access in isa.accesses(instruction) if access.proxy is Proxy.TENSORMAP), None)


def _stored(instruction: Instruction) -> Operand | None:
    """The address operand of a generic store to global memory."""
    row = isa.row(instruction)
    if row is None or row.name != "st":
        return None
    access = next(access for access in row.accesses if access.mode is Mode.WRITE)
    named = isa.space(instruction, access)
    return isa.roles(instruction)[access.role] if named in ("global", "generic") else None


def _roots(cfg: Cfg, definitions: Mapping[str, Sequence[int]], operand: Operand) -> frozenset[Root]:
    """Where an address comes from, through whatever computes it."""
    found: set[Root] = set()
    pending: list[Operand] = [operand.base if isinstance(operand, Address) else operand]
    seen: set[str] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, Symbol):
            found.add((item.name, 0))
        elif isinstance(item, Register) and item.name not in seen:
            seen.add(item.name)
            for point in definitions.get(item.name, ()):
                instruction = cfg.body[point]
                if instruction.opcode in ("ld", "ldu", "atom"):
                    found.add(_loaded(instruction, point))
                else:
                    pending.extend(register for register in isa.reads(instruction) if register.type.endswith("64"))
                    pending.extend(o for o in instruction.operands[1:] if isinstance(o, Symbol))
    return frozenset(found)


def _loaded(instruction: Instruction, point: int) -> Root:
    """A parameter word by its name, so that two loads of it are one root; any other load by its place."""
    address = instruction.operands[1]
    if isinstance(address, Address) and isinstance(address.base, Symbol):
        return address.base.name, address.base.offset + address.offset
    return point


Part: TypeAlias = Callable[[Strand, Order, Positions], None]


def build(instruction: Instruction, point: int, slots: Slots) -> Step:
    """The closure that reports what an instruction does to tensor maps to the order of the run."""
    reader = Reader(slots, instruction)
    parts = tuple(_parts(instruction, point, reader))
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


def _parts(instruction: Instruction, point: int, reader: Reader) -> Iterator[Part]:
    used = _use(instruction)
    if used is not None:
        yield _reading(used.role, point, reader)
    elif instruction.modifiers[:1] == ("cp_fenceproxy",):
        yield _writing("destination", MAP_BYTES, point, reader)
    elif instruction.opcode == "tensormap" and "shared::cta" not in instruction.modifiers:
        yield _writing("address", MAP_BYTES, point, reader)
    elif instruction.opcode == "st":
        size = isa.access_bytes(instruction, isa.accesses(instruction)[0]) or 1
        yield _writing("address", size, point, reader)
    coverage = isa.covers(instruction)
    if coverage is not None and coverage.after is Proxy.TENSORMAP:
        yield _releasing if coverage.direction == "release" else _acquiring(reader)


def _is_global(address: int) -> bool:
    return address >= GLOBAL_BASE and not PARAMETER_WINDOW <= address < SHARED_WINDOW + WINDOW_SIZE


def _writing(role: str, size: int, point: int, reader: Reader) -> Part:
    base, offset = reader.address(role)

    def run(strand: Strand, order: Order, positions: Positions) -> None:
        for (held,), who, _ in groups(strand, positions, (base,)):
            start = held + offset
            if _is_global(start):
                for warp in sorted({thread // WARP for thread in who.threads}):
                    order.access(who, warp, [(start, start + size)], point, is_write=True, space=Space.GLOBAL)

    return run


def _reading(role: str, point: int, reader: Reader) -> Part:
    """A copy reads its map until it is complete, or until a group that it belongs to has been read."""
    base, offset = reader.address(role)
    barrier = reader.address("mbarrier") if "mbarrier" in reader.roles else None
    slots = (base, *([barrier[0]] if barrier is not None else []))

    def run(strand: Strand, order: Order, positions: Positions) -> None:
        for held, who, _ in groups(strand, positions, slots):
            start = held[0] + offset
            if not _is_global(start):
                continue
            warp = who.threads[0] // WARP
            grouped = order.in_group(who, warp, BULK)
            tracked = None
            if barrier is not None:
                address = shared_address(held[1] + barrier[1])
                known = strand.machine.mbarriers.get(address)
                tracked = order.on_mbarrier(address, known.phase) if known is not None else None
            order.access(
                who,
                warp,
                [(start, start + MAP_BYTES)],
                point,
                is_write=False,
                proxy=Proxy.TENSORMAP,
                space=Space.GLOBAL,
                moment=tracked or grouped,
                otherwise=grouped if tracked is not None else None,
            )

    return run


def _releasing(strand: Strand, order: Order, positions: Positions) -> None:
    order.release_maps(_agent(strand, positions))


def _acquiring(reader: Reader) -> Part:
    base, offset = reader.address("address")

    def run(strand: Strand, order: Order, positions: Positions) -> None:
        for (held,), who, _ in groups(strand, positions, (base,)):
            order.acquire_map(who, held + offset)

    return run


def _agent(strand: Strand, positions: Positions) -> Agent:
    if positions is None:
        return strand.agent
    return Agent(strand.cta.rank, tuple(strand.threads[i] for i in positions))
