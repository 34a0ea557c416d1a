"""Dependent kernels launched while this one still writes."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.analyses.dependence import LAUNCH, writes_after
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class DependentLaunchBeforeStores(Rule):
    """`griddepcontrol.launch_dependents` comes before writes to global memory.

    Why: dependent kernels may begin once every CTA has run it, and it publishes nothing. Right whenever the dependent
        kernel runs `griddepcontrol.wait` before it reads, which this kernel does not show; hence off by default.
    Fix: trigger after the last write and a fence, or make sure that the dependent kernel waits.
    Not reported: writes of other threads that are not yet done at the trigger.
    """

    code = "PTX805"
    severity = Severity.INFO
    isa = IsaRef("Parallel Synchronization and Communication Instructions: griddepcontrol", since="7.8")
    default = False

    good = (
        """
ld.param.u64 %rd1, [result];
st.global.u32 [%rd1], %r1;
griddepcontrol.launch_dependents;
""",
    )
    bad = (
        """
ld.param.u64 %rd1, [result];
griddepcontrol.launch_dependents;  // expect: dependent-launch-before-stores
st.global.u32 [%rd1], %r1;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for writes behind each trigger."""
        for index, instruction in enumerate(facts.cfg.body):
            row = isa.row(instruction)
            if row is None or row.name != LAUNCH or facts.cfg.block_of[index] not in facts.cfg.reachable:
                continue
            write = writes_after(facts, index)
            if write is not None:
                yield Finding(
                    facts.span(index),
                    "dependent kernels may begin here, and global memory is written after it",
                    "trigger after the last write, or make sure that the dependent kernel waits",
                    (Related(facts.span(write), "written here"),),
                )
