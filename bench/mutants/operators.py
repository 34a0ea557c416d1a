"""The ways in which a synchronization instruction is dropped or weakened."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.mutants.statement import Statement

Mutation = Callable[[Statement], str | None]

_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?$")
_OFFSET = re.compile(r"\[\s*(?P<base>[%\w$.]+)\s*(?:\+\s*(?P<offset>-?\w+))?\s*(?P<rest>,.*)?\]$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Operator:
    """A name, and what it makes of a statement: other text, or None where it does not apply."""

    name: str
    mutate: Mutation
    needs_parity: bool = False
    """It applies only to instructions that compute a parity."""


def _drops(*prefixes: str, unless: tuple[str, ...] = ()) -> Mutation:
    def mutate(statement: Statement) -> str | None:
        is_meant = any(f"{statement.opcode}.".startswith((f"{prefix}.", f"{prefix}::")) for prefix in prefixes)
        return "" if is_meant and not any(statement.has(word) for word in unless) else None

    return mutate


def _drop_expect(statement: Statement) -> str | None:
    if statement.opcode.startswith("mbarrier.expect_tx"):
        return ""
    if statement.has("mbarrier", "arrive", "expect_tx") or statement.has("mbarrier", "arrive_drop", "expect_tx"):
        return str(statement.without("expect_tx", statement.operands[:-1]))
    return None


def _expect_more(statement: Statement) -> str | None:
    if not statement.has("mbarrier", "expect_tx"):
        return None
    return _added(statement, len(statement.operands) - 1, 16)


def _init_count(change: int) -> Mutation:
    def mutate(statement: Statement) -> str | None:
        return _added(statement, 1, change) if statement.opcode.startswith("mbarrier.init.") else None

    return mutate


def _satisfy_wait(statement: Statement) -> str | None:
    if not _is_wait(statement):
        return None
    return f"{statement.guard}setp.eq.u32 {statement.operands[0]}, 0, 0;"


def _flip_parity(statement: Statement) -> str | None:
    return _computed(statement, 2, "xor.b32", 1) if _is_wait(statement) and statement.has("parity") else None


def _drop_toggle(statement: Statement) -> str | None:
    match statement.opcode.split("."), statement.operands:
        case ["xor", "b32"], (destination, kept, "1" | "-1"):
            return f"{statement.guard}mov.b32 {destination}, {kept};"
        case ["xor", "b32"], (destination, kept, _) if not _NUMBER.match(kept):
            return f"{statement.guard}mov.b32 {destination}, {kept};"
        case ["and", "b32"], (destination, _, "1"):
            return f"{statement.guard}mov.b32 {destination}, 0;"
        case ["not", "b32"], (destination, kept):
            return f"{statement.guard}mov.b32 {destination}, {kept};"
    return None


def _next_slot(statement: Statement) -> str | None:
    is_arrive = statement.has("mbarrier", "arrive") or statement.opcode.startswith("tcgen05.commit")
    return _moved(statement, 8) if is_arrive else None


def _misplace(statement: Statement) -> str | None:
    return _moved(statement, 4) if statement.has("mbarrier") and not statement.has("cp") else None


def _weaker_count(statement: Statement) -> str | None:
    if not statement.has("wait_group") or not statement.operands:
        return None
    return _added(statement, 0, 1)


def _wait_for_reads(statement: Statement) -> str | None:
    if not statement.has("bulk", "wait_group") or statement.has("read"):
        return None
    return str(replace(statement, opcode=f"{statement.opcode}.read"))


def _elect_all(statement: Statement) -> str | None:
    if not statement.opcode.startswith("elect.sync"):
        return None
    lane, _, predicate = statement.operands[0].partition("|")
    leader = f"mov.b32 {lane.strip()}, 0; " if lane.strip() != "_" else ""
    return f"{leader}setp.eq.u32 {predicate.strip()}, 0, 0;"


def _is_wait(statement: Statement) -> bool:
    return statement.has("mbarrier", "try_wait") or statement.has("mbarrier", "test_wait")


def _added(statement: Statement, index: int, change: int) -> str | None:
    """The statement with a number added to an operand, which must be 0 or more."""
    if not _NUMBER.match(statement.operands[index]):
        return _computed(statement, index, "add.s32", change)
    changed = int(statement.operands[index].rstrip("U"), 0) + change
    return str(statement.with_operand(index, str(changed))) if changed >= 0 else None


def _computed(statement: Statement, index: int, opcode: str, amount: int) -> str:
    """The statement with an operand replaced by what an instruction before it makes of it."""
    before = f"{opcode} mutated, {statement.operands[index]}, {amount};"
    return f"{{ .reg .b32 mutated; {before} {statement.with_operand(index, 'mutated')} }}"


def _moved(statement: Statement, distance: int) -> str | None:
    index = statement.address()
    found = _OFFSET.match(statement.operands[index]) if index >= 0 else None
    if found is None or found["rest"]:
        return None
    offset = int(found["offset"] or "0", 0) + distance
    return str(statement.with_operand(index, f"[{found['base']}+{offset}]"))


OPERATORS: tuple[Operator, ...] = (
    Operator("drop-init", _drops("mbarrier.init")),
    Operator("init-count-more", _init_count(1)),
    Operator("init-count-less", _init_count(-1)),
    Operator("drop-arrive", _drops("mbarrier.arrive", "mbarrier.arrive_drop", "cp.async.mbarrier.arrive")),
    Operator("arrive-next-slot", _next_slot),
    Operator("drop-expect-tx", _drop_expect),
    Operator("expect-tx-more", _expect_more),
    Operator("drop-wait", _satisfy_wait),
    Operator("flip-parity", _flip_parity),
    Operator("drop-toggle", _drop_toggle, needs_parity=True),
    Operator("misplace-barrier", _misplace),
    Operator("drop-cta-barrier", _drops("bar.sync", "barrier.sync", "bar.cta.sync", "barrier.cta.sync", "bar.red")),
    Operator("drop-bar-arrive", _drops("bar.arrive", "barrier.arrive", "bar.cta.arrive", "barrier.cta.arrive")),
    Operator("drop-warp-barrier", _drops("bar.warp.sync")),
    Operator("drop-cluster-arrive", _drops("barrier.cluster.arrive")),
    Operator("drop-cluster-wait", _drops("barrier.cluster.wait")),
    Operator("drop-proxy-fence", _drops("fence.proxy")),
    Operator("drop-init-fence", _drops("fence.mbarrier_init")),
    Operator("drop-fence", _drops("fence", "membar", unless=("proxy", "mbarrier_init"))),
    Operator("drop-group-wait", _drops("cp.async.wait_group", "cp.async.wait_all", "cp.async.bulk.wait_group")),
    Operator("weaken-group-wait", _weaker_count),
    Operator("wait-for-reads-only", _wait_for_reads),
    Operator("drop-group-commit", _drops("cp.async.commit_group", "cp.async.bulk.commit_group")),
    Operator("drop-wgmma-fence", _drops("wgmma.fence")),
    Operator("drop-wgmma-commit", _drops("wgmma.commit_group")),
    Operator("drop-wgmma-wait", _drops("wgmma.wait_group")),
    Operator("drop-tcgen05-commit", _drops("tcgen05.commit")),
    Operator("drop-tcgen05-wait", _drops("tcgen05.wait")),
    Operator("drop-tcgen05-fence", _drops("tcgen05.fence")),
    Operator("drop-tcgen05-dealloc", _drops("tcgen05.dealloc")),
    Operator("elect-all", _elect_all),
    Operator("drop-dependency-wait", _drops("griddepcontrol.wait")),
)
