"""A program: the slice of a function as segments of Python closures over numbered slots.

A segment is a run of closures that cannot block, with one closure at its end that says which segment follows. Every
register, immediate, symbol and special register has a slot; constants are filled in when a run begins.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.execution.layout import (
    LOCAL_WINDOW,
    RANK_SHIFT,
    Layout,
)
from ptxlint.execution.slice import Slice
from ptxlint.execution.strand import Strand
from ptxlint.execution.values import uniform
from ptxlint.ir import (
    Element,
    Immediate,
    Instruction,
    Label,
    Negated,
    Not,
    Operand,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
)
from ptxlint.launch import Dimensions

Step = Callable[[Strand], None]
End = Callable[[Strand], int]

CLOCKS = frozenset({"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"})


class Inputs(Protocol):
    """Assumed values of what a kernel reads from outside. `size` is the integer that most of them are."""

    @property
    def size(self) -> int: ...

    def parameter(self, name: str, offset: int, width: int) -> int:
        """`width` bytes of a parameter."""
        ...

    def load(self, address: int, width: int) -> int:
        """`width` bytes of global or constant memory that the kernel has not written."""
        ...


@dataclass(frozen=True, slots=True)
class Binding:
    """The launch of one run: extents, dynamic shared memory in bytes, inputs, and which cluster of the grid runs.

    cut: the steps after which a run of that kind has shown enough; 0 where it runs to its end. enough: the completed
    phases of each mbarrier with which it has, too.
    """

    block: Dimensions
    cluster: Dimensions
    grid: Dimensions
    dynamic_shared: int
    inputs: Inputs
    position: Dimensions = (0, 0, 0)
    cut: int = 0
    enough: Mapping[int, int] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]


@dataclass(slots=True)
class Segment:
    """Closures to run, and the one that says where to go on. `point` is the first instruction."""

    steps: tuple[Step, ...]
    end: End
    point: int
    weight: int


@dataclass(frozen=True, slots=True)
class Slot:
    """What a constant slot holds: one of a register (no constant), an immediate, a symbol, a special register, a
    parameter."""

    kind: str
    name: str
    offset: int = 0
    width: int = 0


class Slots:
    """The numbering of everything that an instruction can read or write."""

    def __init__(self) -> None:
        self.index: dict[Slot, int] = {}
        self.points: set[int] = set()

    def of(self, slot: Slot) -> int:
        """The number of a slot, a new one when it is new."""
        return self.index.setdefault(slot, len(self.index))

    def register(self, name: str) -> int:
        """The slot of a register."""
        return self.of(Slot("register", name))

    def constant(self, value: int) -> int:
        """The slot of a constant."""
        return self.of(Slot("immediate", str(value)))

    def operand(self, operand: Operand, bits: int = 64) -> int:
        """The slot of an operand that is read. Raises TypeError when it is none that has a value of its own."""
        match operand:
            case Register(name=name):
                return self.register(name)
            case Immediate(value=value) if isinstance(value, int):
                return self.constant(value & (1 << bits) - 1)
            case Immediate():
                return self.constant(0)
            case Symbol(name=name, offset=offset):
                return self.of(Slot("symbol", name, offset))
            case SpecialRegister(name=name):
                return self.of(Slot("special", name))
            case Negated(operand=inner) | Not(operand=inner) | Element(register=inner):
                return self.register(inner.name if isinstance(inner, Register) else str(inner))
            case Sink() | Label():
                return self.of(Slot("register", "_"))
        raise TypeError(f"{operand} has no value of its own")


@dataclass(slots=True)
class Program:
    """Segments and slots of one function, for any launch. Segment 0 is the entry."""

    layout: Layout
    segments: list[Segment]
    slots: Slots
    varying: tuple[int, ...]
    initializers: frozenset[int] = frozenset()
    unknown: list[int] = field(default_factory=list)
    events: frozenset[int] = frozenset()
    parameters: tuple[str, ...] = ()
    definitions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    plan: tuple[tuple[int, Slot], ...] = ()
    extents: Mapping[int, int] = field(default_factory=dict)
    maps: Mapping[int, Hashable] = field(default_factory=dict)

    def registers(self, binding: Binding, rank: int) -> list[Any]:
        """The slots at the entry of the CTA of this rank: constants filled in, registers zero."""
        values: list[Any] = [0] * len(self.slots.index)
        for index, slot in self.plan:
            match slot.kind:
                case "immediate":
                    values[index] = int(slot.name)
                case "symbol":
                    values[index] = self.address(slot.name, rank) + slot.offset
                case "special":
                    values[index] = special(slot.name, binding, rank, self.layout)
                case "parameter":
                    values[index] = binding.inputs.parameter(slot.name, slot.offset, slot.width)
        return values

    def address(self, name: str, rank: int) -> int:
        """The address of a variable as the CTA of this rank sees it."""
        offset = self.layout.shared.get(name)
        if offset is not None:
            return rank << RANK_SHIFT | offset
        return self.layout.elsewhere.get(name, LOCAL_WINDOW)

    def seal(self) -> None:
        """Fix the list of constants, once every segment is there."""
        self.plan = tuple((i, slot) for slot, i in self.slots.index.items() if slot.kind != "register")


def special(name: str, binding: Binding, rank: int, layout: Layout) -> Any:
    """The value of a special register for the threads of a CTA. Source: PTX ISA, *Special Registers*.

    Each CTA of a cluster is taken to run on an SM of its own.
    """
    head, _, component = name.partition(".")
    axis = "xyz".find(component) if component else 0
    block, cluster, grid = binding.block, binding.cluster, binding.grid
    in_cluster = _unflatten(rank, cluster)
    threads = range(binding.threads)
    match head:
        case "%tid":
            return uniform([_unflatten(thread, block)[axis] for thread in threads])
        case "%laneid":
            return uniform([thread % 32 for thread in threads])
        case "%warpid":
            return uniform([thread // 32 for thread in threads])
        case "%ntid":
            return block[axis]
        case "%ctaid":
            return binding.position[axis] * cluster[axis] + in_cluster[axis]
        case "%nctaid":
            return max(grid[axis], cluster[axis])
        case "%cluster_ctaid":
            return in_cluster[axis]
        case "%cluster_nctaid":
            return cluster[axis]
        case "%cluster_ctarank" | "%smid":
            return rank
        case "%cluster_nctarank":
            return binding.cluster_size
        case "%clusterid":
            return binding.position[axis]
        case "%nclusterid":
            return max(1, grid[axis] // cluster[axis])
        case "%is_explicit_cluster":
            return int(binding.cluster_size > 1)
        case "%nwarpid":
            return 64
        case "%nsmid":
            return 132
        case "%dynamic_smem_size":
            return binding.dynamic_shared
        case "%total_smem_size":
            return binding.dynamic_shared + layout.shared_end
        case "%WARP_SZ" | "WARP_SZ":
            return 32
    lane_masks = {
        "%lanemask_eq": lambda lane: 1 << lane,
        "%lanemask_lt": lambda lane: (1 << lane) - 1,
        "%lanemask_le": lambda lane: (2 << lane) - 1,
        "%lanemask_ge": lambda lane: 0xFFFFFFFF & ~((1 << lane) - 1),
        "%lanemask_gt": lambda lane: 0xFFFFFFFF & ~((2 << lane) - 1),
    }
    if head in lane_masks:
        return uniform([lane_masks[head](thread % 32) for thread in threads])
    return 0


def _unflatten(index: int, extents: Dimensions) -> Dimensions:
    return (
        index % extents[0],
        index // extents[0] % extents[1],
        index // (extents[0] * extents[1]),
    )


class Lowering(Protocol):
    """What the closures of one family need to know while they are made."""

    cfg: Cfg
    slots: Slots
    layout: Layout


def is_volatile(instruction: Instruction) -> bool:
    """Whether a register copy reads a clock."""
    return any(isinstance(operand, SpecialRegister) and operand.name in CLOCKS for operand in instruction.operands)


def block_starts(cfg: Cfg, slice_: Slice) -> Mapping[int, Sequence[int]]:
    """The points of the slice in each reachable block."""
    return {
        block.index: [point for point in block.points if point in slice_.points]
        for block in cfg.blocks
        if block.index in cfg.reachable
    }


def roles(instruction: Instruction) -> dict[str, Operand]:
    """The operands of an instruction by role."""
    return dict(isa.roles(instruction))
