"""Reads of global memory before the kernels that write it are complete."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.analyses.dependence import early_reads, waits
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class DependentReadBeforeWait(Rule):
    """Global memory is read before `griddepcontrol.wait`, or by threads that do not wait.

    Why: a kernel launched with programmatic stream serialization may begin while the kernels before it still run.
        Only behind the wait are they complete and their writes visible, and only for the threads that wait.
    Fix: `griddepcontrol.wait` in every thread, before the first read of what an earlier kernel writes.
    Not reported: reads before the wait of addresses that are not read behind it, where others are (weights);
        `ld.global.nc`; copies. What is read may in truth be older: a warning.
    """

    code = "PTX804"
    severity = Severity.WARNING
    isa = IsaRef("Parallel Synchronization and Communication Instructions: griddepcontrol", since="7.8")

    good = (
        """
ld.param.u64 %rd1, [weights];
ld.param.u64 %rd2, [input];
ld.global.u32 %r1, [%rd1];
griddepcontrol.wait;
ld.global.u32 %r2, [%rd2];
""",
    )
    bad = (
        """
ld.param.u64 %rd2, [input];
ld.global.u32 %r2, [%rd2];  // expect: dependent-read-before-wait
griddepcontrol.wait;
""",
        """
ld.param.u64 %rd2, [input];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
griddepcontrol.wait;
READ:
ld.global.u32 %r2, [%rd2];  // expect: dependent-read-before-wait
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the first such read."""
        places = waits(facts)
        first = next(early_reads(facts), None) if places else None
        if first is not None:
            yield Finding(
                facts.span(first),
                f"`{facts.text(first)}` may run before the kernels before this one are complete",
                "let every thread run griddepcontrol.wait before it reads what they write",
                (Related(facts.span(places[0]), "the wait"),),
                assumptions=("an earlier kernel of the stream writes what is read",),
            )
