"""Bulk copies of sizes that the bulk engine cannot copy."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.facts import Facts
from ptxlint.isa import Proxy
from ptxlint.rule import Finding, IsaRef, Rule, Severity

GRANULARITY = 16
"""Bytes. Source: PTX ISA, *cp.async.bulk*."""


class BulkSizeGranularity(Rule):
    """A bulk copy's size is not a multiple of 16 bytes.

    Why: the behaviour is undefined. ptxas checks sizes that are written as numbers, not those in registers.
    Fix: round the size up to a multiple of 16, with room for it at both ends.
    Not reported: sizes whose remainder is unknown.
    """

    code = "PTX203"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[1024];
mov.u32 %r1, 1008;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], %r1;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[1024];
mov.u32 %r1, 1000;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], %r1;  // expect: bulk-size-granularity
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
""",
        """
.shared .align 128 .b8 tile[1024];
mad.lo.s32 %r1, %r2, 32, 8;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], %r1;  // expect: bulk-size-granularity
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Check the size of each bulk copy."""
        for index, instruction in enumerate(facts.cfg.body):
            is_sized = any(a.size == "size" and a.proxy is Proxy.ASYNC for a in isa.accesses(instruction))
            off = facts.misalignment(index, "size", GRANULARITY) if is_sized else None
            if off is None:
                continue
            size = facts.number(index, "size")
            what = f"{size} bytes are" if size is not None else f"its size is {off} bytes"
            tail = "no multiple" if size is not None else "past a multiple"
            yield Finding(
                facts.span(index),
                f"the bulk copy's size must be a multiple of {GRANULARITY}: {what} {tail} of {GRANULARITY}",
                f"copy a multiple of {GRANULARITY} bytes",
            )
