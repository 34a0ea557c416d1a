"""Bulk copies from or to addresses that the bulk engine cannot take."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.facts import Facts, Fault
from ptxlint.isa import Access, Mode, Proxy
from ptxlint.rule import Finding, IsaRef, Rule, Severity
from ptxlint.source import Span

BULK = 16
"""Bytes. Source: PTX ISA, *cp.async.bulk*."""
TENSOR = 128
"""Bytes, the shared memory side. Source: CUDA C++ Programming Guide, *Tensor Memory Access*, alignment table."""


class MisalignedBulkAddress(Rule):
    """A bulk copy's source or destination is not a multiple of 16 bytes; for tensor copies, of 128 in shared memory.

    Why: the behaviour is undefined; in practice the copy traps with a misaligned address.
    Fix: align the object, and keep offsets multiples of 16 (128).
    Not reported: addresses whose remainder is unknown; larger alignments that a swizzle mode asks for, since the mode
        is in the tensor map. Pointer parameters are taken to be aligned themselves, which makes it a warning.
    """

    code = "PTX202"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b8 full[8];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+16], [%rd1], 512, [full];
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b8 full[8];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+8], [%rd1], 512, [full];  // expect: misaligned-bulk-address
""",  # noqa: E501
        """
.shared .align 128 .b8 tile[1024];
ld.param.u64 %rd1, [output];
add.s64 %rd2, %rd1, 4;
cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;  // expect: misaligned-bulk-address
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Check both sides of each bulk copy, then the destinations that only the run shows."""
        known: set[Span] = set()
        for index, instruction in enumerate(facts.cfg.body):
            accesses = [access for access in isa.accesses(instruction) if _is_side(access)]
            alignment = TENSOR if any(access.is_mapped for access in accesses) else BULK
            for access in accesses:
                if not access.is_mapped:
                    for finding in _misaligned(facts, index, access.role, alignment):
                        known.add(finding.span)
                        yield finding
        for story in facts.stories(Fault.MISALIGNED):
            alignment = story.number("alignment")
            if alignment and story.span not in known:
                yield story.finding(
                    f"the destination of the bulk copy, {story.memory}, is {story.number('remainder')} bytes past a "
                    f"multiple of {alignment}",
                    f"make the destination a multiple of {alignment} bytes",
                )


def _is_side(access: Access) -> bool:
    is_side = access.role in ("destination", "source") and access.mode is not Mode.OBJECT
    return is_side and access.proxy is Proxy.ASYNC and not access.is_descriptor


def _misaligned(facts: Facts, index: int, role: str, alignment: int) -> Iterator[Finding]:
    certain = facts.misalignment(index, role, alignment)
    off = certain or facts.misalignment(index, role, alignment, trusted_pointers=True)
    if off is None:
        return
    yield Finding(
        facts.span(index),
        f"the {role} of the bulk copy, {facts.object_name(index, role)}, is {off} bytes past a multiple of {alignment}",
        f"make the {role} a multiple of {alignment} bytes",
        assumptions=() if certain else (f"pointer parameters are multiples of {alignment} bytes",),
        severity=None if certain else Severity.WARNING,
    )
