"""Mbarriers that are not where an mbarrier can be."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.facts import Facts, Fault
from ptxlint.isa import Mode
from ptxlint.rule import Finding, IsaRef, Rule, Severity

ALIGNMENT = 8
"""Bytes. Source: PTX ISA, *Size and alignment of mbarrier object*."""


class MisalignedMbarrier(Rule):
    """An mbarrier lies at an address that is not a multiple of 8.

    Why: the hardware traps with a misaligned address at the first operation on it; ptxas does not check.
    Fix: place the barrier on a multiple of 8 bytes, and barriers of an array 8 bytes apart.
    Not reported: addresses whose remainder is unknown, such as a dynamic base of smaller alignment.
    """

    code = "PTX201"
    severity = Severity.ERROR
    isa = IsaRef("Size and alignment of mbarrier object", since="7.0")

    good = (
        """
.shared .align 8 .b8 barriers[16];
mbarrier.init.shared::cta.b64 [barriers+8], 1;
""",
    )
    bad = (
        """
.shared .align 8 .b8 barriers[16];
mov.u32 %r1, barriers;
mad.lo.s32 %r2, %r3, 8, %r1;
mbarrier.init.shared::cta.b64 [%r2+4], 1;  // expect: misaligned-mbarrier
mbarrier.arrive.shared::cta.b64 _, [%r2+4];
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report misaligned inits; the other uses only where no init is misaligned. Then what only the run shows."""
        found = [(index, off) for index in _uses(facts) if (off := facts.misalignment(index, "mbarrier", ALIGNMENT))]
        inits = [(index, off) for index, off in found if _is_init(facts, index)]
        for index, off in inits or found[:1]:
            yield Finding(
                facts.span(index),
                f"the mbarrier at {facts.object_name(index, 'mbarrier')} is {off} bytes past a multiple of {ALIGNMENT}",
                f"place it on a multiple of {ALIGNMENT} bytes",
            )
        known = {facts.span(index) for index, _ in inits or found[:1]}
        for story in facts.stories(Fault.MISALIGNED):
            if not story.number("alignment") and story.span not in known:
                yield story.finding(
                    f"the mbarrier at {story.barrier} is {story.number('remainder')} bytes past a multiple of "
                    f"{ALIGNMENT}",
                    f"place it on a multiple of {ALIGNMENT} bytes",
                )


def _uses(facts: Facts) -> Iterator[int]:
    """The instructions that use an mbarrier as one."""
    for index, instruction in enumerate(facts.cfg.body):
        if any(access.role == "mbarrier" and access.mode is Mode.OBJECT for access in isa.accesses(instruction)):
            yield index


def _is_init(facts: Facts, index: int) -> bool:
    row = isa.row(facts.cfg.body[index])
    return row is not None and row.name == "mbarrier.init"
