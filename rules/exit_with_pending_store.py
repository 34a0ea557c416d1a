"""Threads that exit while their stores still read shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Consequence, Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class ExitWithPendingStore(Rule):
    """A thread exits while a bulk store that it committed may still be reading shared memory.

    Why: the shared memory of a CTA that has exited may be given to another one. Whether an exit alone keeps it alive is
        not said by the ISA; the CUDA guide waits with `wait_group.read` before the end, and so do the libraries.
    Fix: run `cp.async.bulk.wait_group.read 0` in the issuing thread before it exits.
    Not reported: stores whose thread cannot be told from others that wait for them.
    """

    code = "PTX407"
    severity = Severity.WARNING
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk.wait_group", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;  // expect: exit-with-pending-store
cp.async.bulk.commit_group;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each store once."""
        pending = [h for h in facts.hazards if h.consequence is Consequence.EXIT and h.cause is not Cause.UNCOMMITTED]
        for copy, hazard in sorted({hazard.copy: hazard for hazard in reversed(pending)}.items()):
            related = [Related(facts.span(hazard.at), "the thread may exit here")]
            if hazard.wait is not None:
                related.append(Related(facts.span(hazard.wait), "the last wait allows its group to be pending"))
            yield Finding(
                facts.span(copy),
                f"the thread that stores {facts.object_name(copy, 'source')} may exit before the store has read it",
                "run cp.async.bulk.wait_group.read 0 in that thread before it exits",
                tuple(related),
                assumptions=("shared memory of a CTA may be reused once the CTA has exited; the ISA does not say",),
            )
