"""Waits whose result nobody looks at."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, TypeAlias

from ptxlint import isa
from ptxlint.analyses.value import LeafKind, Sum, Value, leaves
from ptxlint.facts import Facts
from ptxlint.ir import Instruction, Register
from ptxlint.isa import Flow, Mode
from ptxlint.rule import Finding, IsaRef, Rule, Severity

if TYPE_CHECKING:
    from ptxlint.cfg import Cfg


Ring: TypeAlias = tuple[int, frozenset[tuple[Value, int]], int]
"""The constant and the fixed terms of an mbarrier's address, and the step of its slots in bytes."""


class IgnoredWaitResult(Rule):
    """Nothing depends on the result of `mbarrier.test_wait` or `mbarrier.try_wait`.

    Why: both may return false before the phase completes: `test_wait` at once, `try_wait` after a time limit of the
        system. What comes next then runs before the data are there, and false orders no memory accesses either.
    Fix: loop until the result is true.
    Not reported: results that a branch, a guard or a stored value depends on; looks that a proper wait for the same
        barrier and parity follows on every path, or after which a proper wait in the same ring of barriers may come; a
        copy of a source line whose other copies are used, such as the look ahead of a loop's last trip.
    """

    code = "PTX106"
    severity = Severity.ERROR
    isa = IsaRef(
        "Parallel Synchronization and Communication Instructions: mbarrier.test_wait/mbarrier.try_wait", since="7.0"
    )

    good = (
        """
.shared .align 8 .b64 full;
.shared .align 4 .b32 data;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r1, [data];
""",
        """
.shared .align 8 .b64 full[4];
.shared .align 4 .b32 data;
mov.u32 %r1, full;
mov.u32 %r2, 0;
NEXT:
shl.b32 %r3, %r2, 3;
add.u32 %r4, %r1, %r3;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [%r4], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r5, [data];
add.u32 %r2, %r2, 1;
setp.eq.u32 %p2, %r2, 4;
@%p2 bra DONE;
shl.b32 %r6, %r2, 3;
add.u32 %r7, %r1, %r6;
mbarrier.try_wait.parity.shared.b64 %p3, [%r7], 0;
bra NEXT;
DONE:
""",
    )
    bad = (
        """
.shared .align 8 .b64 full;
.shared .align 4 .b32 data;
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;  // expect: ignored-wait-result
selp.u32 %r2, 1, 0, %p1;
ld.shared.u32 %r1, [data];
""",
        """
.shared .align 8 .b64 full;
.shared .align 4 .b32 data;
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;  // expect: ignored-wait-result
@!%p1 bra NEXT;
NEXT:
ld.shared.u32 %r1, [data];
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Follow each result through the registers that are computed from it."""
        cfg = facts.cfg
        results = {
            point: done
            for point, instruction in enumerate(cfg.body)
            if cfg.block_of[point] in cfg.reachable and isinstance(done := isa.roles(instruction).get("done"), Register)
        }
        used = {point for point, done in results.items() if _matters(cfg, done)}
        looks = {cfg.body[point].loc for point in used} - {None}
        for point in results.keys() - used:
            is_look = any(_repeats(cfg, point, other) for other in used) or _is_ahead(facts, point, used)
            if cfg.body[point].loc not in looks and not is_look:
                yield Finding(
                    facts.span(point),
                    f"`{facts.text(point)}` may return false before the phase completes, and nothing depends on "
                    f"{results[point]}",
                    "loop until the result is true",
                )


def _is_ahead(facts: Facts, look: int, waits: Collection[int]) -> bool:
    """Whether a wait in the same ring of mbarriers may come after a look; where none does for the data that are read
    next, their accesses show it."""
    cfg, own = facts.cfg, _ring(facts, look)
    block = cfg.block_of[look]
    beyond = {block}
    stack = [edge.target for edge in cfg.blocks[block].successors]
    while stack:
        following = stack.pop()
        if following not in beyond:
            beyond.add(following)
            stack += [edge.target for edge in cfg.blocks[following].successors]
    rings = (_ring(facts, wait) for wait in waits if cfg.block_of[wait] in beyond)
    return own is not None and any(_is_same(own, ring) for ring in rings)


def _ring(facts: Facts, point: int) -> Ring | None:
    """What stays of a mbarrier's address from slot to slot, and the bytes from one to the next."""
    value = facts.values.role(point, "mbarrier")
    if not isinstance(value, Sum):
        return None
    fixed = {term for term in value.terms if all(leaf.kind is not LeafKind.MERGE for leaf in leaves(term[0]))}
    return value.constant, frozenset(fixed), max((abs(f) for _, f in set(value.terms) - fixed), default=0)


def _is_same(first: Ring, second: Ring | None) -> bool:
    """Whether two places in a ring are the same or next to each other, as far as their slots are known."""
    return second is not None and first[1] == second[1] and abs(first[0] - second[0]) in (0, max(first[2], second[2]))


def _matters(cfg: Cfg, result: Register) -> bool:
    """Whether anything but registers depends on the result."""
    tainted = {result}
    waiting = [result]
    while waiting:
        register = waiting.pop()
        for point, instruction in enumerate(cfg.body):
            if register not in isa.reads(instruction):
                continue
            if _acts(cfg, point, instruction):
                return True
            new = set(isa.writes(instruction)) - tainted
            tainted |= new
            waiting += new
    return False


def _acts(cfg: Cfg, point: int, instruction: Instruction) -> bool:
    """Whether an instruction does more than to compute registers. A branch does if its ways differ."""
    row = isa.row(instruction)
    if row is not None and row.flow is Flow.BRANCH:
        block = cfg.blocks[cfg.block_of[point]]
        return len({edge.target for edge in block.successors}) > 1
    return (
        row is None
        or row.flow is not Flow.NEXT
        or not isa.writes(instruction)
        or any(access.mode is not Mode.READ for access in row.accesses)
    )


def _repeats(cfg: Cfg, look: int, wait: int) -> bool:
    """Whether a wait asks again what the look before it asked, on every path that leads on from there."""
    asked, again = isa.roles(cfg.body[look]), isa.roles(cfg.body[wait])
    same = all(asked.get(role) == again.get(role) for role in ("mbarrier", "parity", "token"))
    first, second = cfg.block_of[look], cfg.block_of[wait]
    return same and (look < wait if first == second else cfg.post_dominates(second, first))
