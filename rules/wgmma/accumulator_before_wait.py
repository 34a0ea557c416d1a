"""Registers of a wgmma touched while it is in flight."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.analyses.wgmma import Flight, InFlight, accumulator, moved
from ptxlint.facts import Facts
from ptxlint.ir import Instruction, Register
from ptxlint.isa import Tracking
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class AccumulatorBeforeWait(Rule):
    """The accumulator or A fragment of a `wgmma.mma_async` is touched before a wait covers its group.

    Why: the tensor core writes the accumulator, and reads the fragment, at any time until the wait; the ISA leaves
        other accesses undefined. ptxas inserts a wait where it sees this, which serializes the products.
    Fix: `wgmma.wait_group` with a count small enough for the group before the use; a second set of registers
        otherwise.
    Not reported: accumulators used by the next wgmma, fragments that are only read, and moves between registers.
    """

    code = "PTX503"
    severity = Severity.ERROR
    isa = IsaRef("Asynchronous Multiply-and-Accumulate Instruction: wgmma.wait_group", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[4096];
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.f32 %f5, %f1, %f2;
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[4096];
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 1;
add.f32 %f5, %f1, %f2;  // expect: accumulator-before-wait
""",
        """
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, %rd2, 0, 1, 1, 0;
wgmma.commit_group.sync.aligned;
add.u32 %r1, %r1, 1;  // expect: accumulator-before-wait
wgmma.wait_group.sync.aligned 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the first instruction that touches the registers of each wgmma."""
        reported: set[int] = set()
        for index, instruction, state in facts.solve(InFlight).steps():
            if not state or _is_wgmma(instruction) or moved(instruction) is not None:
                continue
            for register, flight, verb in _touched(facts, instruction, dict(state)):
                if flight.wgmma not in reported:
                    reported.add(flight.wgmma)
                    group = "it is in no group" if flight.age < 0 else "no wait has covered its group"
                    yield Finding(
                        facts.span(index),
                        f"{register} is {verb} while the wgmma that uses it may be in flight: {group}",
                        "let wgmma.wait_group cover the group before",
                        (Related(facts.span(flight.wgmma), "the wgmma"),),
                    )


def _touched(
    facts: Facts, instruction: Instruction, state: dict[Register, Flight]
) -> Iterator[tuple[Register, Flight, str]]:
    for register in isa.reads(instruction):
        flight = state.get(register)
        if flight is not None and register in accumulator(facts.cfg.body[flight.wgmma]):
            yield register, flight, "read"
    for register in isa.writes(instruction):
        if register in state:
            yield register, state[register], "written"


def _is_wgmma(instruction: Instruction) -> bool:
    row = isa.row(instruction)
    return row is not None and row.opens is Tracking.WGMMA
