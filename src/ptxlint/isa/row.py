"""What a row of the instruction table says, and how its operand specification is read."""

from __future__ import annotations

from enum import Enum, StrEnum

from ptxlint.classes import dataclass


class Proxy(StrEnum):
    """The way by which an access reaches memory. Source: PTX ISA, *Proxies*."""

    GENERIC = "generic"
    ASYNC = "async"
    TENSORMAP = "tensormap"
    ALIAS = "alias"
    FABRIC = "fabric"
    TEXTURE = "texture"
    TENSOR_MEMORY = "tensor memory"


class Mode(StrEnum):
    """What an access does to the bytes it names. An object access touches an mbarrier as an object, not as bytes."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    OBJECT = "object"


class Tracking(StrEnum):
    """How the completion of an asynchronous operation is observed. Source: PTX ISA, *Completion Mechanisms*."""

    CP_ASYNC = "cp.async group"
    BULK = "bulk group"
    WGMMA = "wgmma group"
    MBARRIER = "mbarrier transaction"
    TCGEN05_COMMIT = "tcgen05.commit"
    TCGEN05_LD = "tcgen05.wait::ld"
    TCGEN05_ST = "tcgen05.wait::st"
    GRID = "end of the grid"


class Flow(Enum):
    """Where control goes after an instruction that runs."""

    NEXT = "next"
    BRANCH = "branch"
    TABLE = "table"
    CALL = "call"
    RETURN = "return"
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class Access:
    """One memory access of an instruction: the operand role that addresses it, what it does, by which proxy.

    space: the state space when the row fixes it; None means that the modifiers say it (see `isa.space`).
    is_descriptor: the operand is a 64-bit matrix descriptor of shared memory, not an address.
    is_mapped: the operand names a tensor map, and the bytes are those of the tensor that the map describes.
    is_bare: the operand is the address itself, not in brackets.
    is_of_matrices: each address is that of one row of a matrix, and only the first lanes' count (`isa.naming_lanes`).
    bytes: how many bytes, when the row fixes it. size: the operand role that says how many (see `isa.access_bytes`).
    """

    role: str
    mode: Mode
    proxy: Proxy = Proxy.GENERIC
    space: str | None = None
    is_descriptor: bool = False
    is_mapped: bool = False
    is_bare: bool = False
    is_of_matrices: bool = False
    bytes: int | None = None
    size: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """All that ptxlint knows of one form of an instruction.

    name: the opcode and the leading modifiers that select the row (`mbarrier.try_wait`, `cp.async.bulk`).
    requires: further modifiers, anywhere, that select this row among rows of the same name; an item `a|b` is satisfied
        by either.
    operands: the roles of the operands in order, blank-separated. A prefix `=` marks a role that is written, `+` one
        that is read and written; registers inside an address are always read. `role?` may be absent; `role?modifier`
        is there exactly when the modifier is. A suffix `:kind` says what the operand must be (see `operands.KINDS`),
        which decides between readings of the same length. Of several optional roles the earlier are filled first;
        ` / ` separates alternatives where that would be wrong.
    section: title of the PTX ISA section. since: PTX ISA version. sm: least compute capability times ten.
    is_arch_specific: needs a target with suffix `a` or `f`.
    opens: how the completion of the asynchronous operation started here is observed.
    commits: the tracking whose pending operations this instruction gathers into a group (or an mbarrier arrival).
    waits: the tracking that this instruction waits for.
    semantics, scope: the memory ordering that holds when no modifier says it (see `isa.semantics`, `isa.scope`).
    is_collective: executed by all lanes of the warp together (`.sync`/`.aligned`).
    is_asynchronous_machinery: whether a kernel that has it needs more than a scan.
    is_aligned: whole warps run it together even where no `.aligned` says so. aborts: it ends the kernel with an error.
    """

    name: str
    operands: str
    section: str
    since: tuple[int, int] = (1, 0)
    sm: int = 0
    requires: tuple[str, ...] = ()
    accesses: tuple[Access, ...] = ()
    flow: Flow = Flow.NEXT
    opens: Tracking | None = None
    commits: Tracking | None = None
    waits: Tracking | None = None
    is_collective: bool = False
    is_asynchronous_machinery: bool = False
    is_arch_specific: bool = False
    is_aligned: bool = False
    aborts: bool = False
    semantics: str = ""
    scope: str | None = None
