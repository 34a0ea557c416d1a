"""wgmma whose registers have been changed without a fence."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.analyses.wgmma import Unfenced, held
from ptxlint.facts import Facts
from ptxlint.isa import Tracking
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class MissingWgmmaFence(Rule):
    """Registers that a `wgmma.mma_async` uses were changed since the last `wgmma.fence`, or there was none.

    Why: wgmma is not ordered after earlier instructions of its own thread. Without the fence it may find the
        registers as they were before. ptxas inserts a fence where it sees this, which serializes the products.
    Fix: `wgmma.fence` after the last change and before the first wgmma that uses the registers.
    Not reported: accumulators that only wgmma has changed, moves between registers, and constants, which compilers
        set where they like.
    """

    code = "PTX504"
    severity = Severity.ERROR
    isa = IsaRef("Asynchronous Multiply-and-Accumulate Instruction: wgmma.fence", since="8.0")

    good = (
        """
mov.f32 %f1, 0f00000000;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
""",
    )
    bad = (
        """
wgmma.fence.sync.aligned;
add.f32 %f1, %f1, %f1;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;  // expect: missing-wgmma-fence
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
""",  # noqa: E501
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the first wgmma of each run of them that has changed registers."""
        for index, instruction, state in facts.solve(Unfenced).steps():
            row = isa.row(instruction)
            if not state or row is None or row.opens is not Tracking.WGMMA:
                continue
            changed = [str(register) for register in held(instruction) if register in state]
            if changed:
                named = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
                yield Finding(
                    facts.span(index),
                    f"no wgmma.fence on some path between a change of {named} and this wgmma, which uses them",
                    "run wgmma.fence after the last change and before the first wgmma",
                )
