"""Waits whose result nobody looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.facts import Facts
from ptxlint.ir import Instruction, Register
from ptxlint.isa import Flow, Mode
from ptxlint.rule import Finding, IsaRef, Rule, Severity

if TYPE_CHECKING:
    from ptxlint.cfg import Cfg


class IgnoredWaitResult(Rule):
    """Nothing depends on the result of `mbarrier.test_wait` or `mbarrier.try_wait`.

    Why: both may return false before the phase completes: `test_wait` at once, `try_wait` after a time limit of the
        system. What comes next then runs before the data are there, and false orders no memory accesses either.
    Fix: loop until the result is true.
    Not reported: results that a branch, a guard or a stored value depends on, and looks that a proper wait for the same
        barrier and parity follows on every path; a copy of a source line whose other copies are used, such as the look
        ahead of a loop's last trip.
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
            if cfg.body[point].loc not in looks and not any(_repeats(cfg, point, other) for other in used):
                yield Finding(
                    facts.span(point),
                    f"`{facts.text(point)}` may return false before the phase completes, and nothing depends on "
                    f"{results[point]}",
                    "loop until the result is true",
                )


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
