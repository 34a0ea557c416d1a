"""Waits that other threads do not hear of."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class WaitWithoutBarrier(Rule):
    """Bytes of a copy are used by other threads than the one that waited for it, with no barrier after the wait.

    Why: a wait_group makes the copies of the executing thread visible to that thread alone. A barrier before the wait
        does not help: the copies of the others may land after it.
    Fix: put the barrier between the wait and the first use by another thread.
    Not reported: uses whose address cannot be worked out; any barrier, arrive or fence after the wait counts.
    """

    code = "PTX408"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.wait_group, cp.async.wait_all", since="7.0")

    good = (
        """
.shared .align 16 .b8 tile[512];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
mad.lo.s32 %r3, %r1, 16, %r2;
cp.async.cg.shared.global [%r3], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
xor.b32 %r4, %r1, 1;
mad.lo.s32 %r5, %r4, 16, %r2;
ld.shared.u32 %r6, [%r5];
""",
        """
.shared .align 16 .b8 tile[512];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
mad.lo.s32 %r3, %r1, 16, %r2;
cp.async.cg.shared.global [%r3], [%rd1], 16;
cp.async.wait_all;
ld.shared.u32 %r6, [%r3];
""",
    )
    bad = (
        """
.shared .align 16 .b8 tile[512];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
mad.lo.s32 %r3, %r1, 16, %r2;
cp.async.cg.shared.global [%r3], [%rd1], 16;
cp.async.commit_group;
bar.sync 0;
cp.async.wait_group 0;  // expect: wait-without-barrier
xor.b32 %r4, %r1, 1;
mad.lo.s32 %r5, %r4, 16, %r2;
ld.shared.u32 %r6, [%r5];
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each such wait once."""
        hazards = {hazard.wait: hazard for hazard in reversed(facts.hazards) if hazard.cause is Cause.NO_BARRIER}
        for wait, hazard in sorted((wait, hazard) for wait, hazard in hazards.items() if wait is not None):
            is_load = facts.is_load(hazard.copy)
            what = facts.object_name(hazard.copy, "destination" if is_load else "source")
            yield Finding(
                facts.span(wait),
                f"`{facts.text(wait)}` tells only its own thread that the copy {'into' if is_load else 'from'} {what} "
                "is done, and other threads use those bytes with no barrier after it",
                "put the barrier between this wait and the use",
                (
                    Related(facts.span(hazard.copy), "the copy"),
                    Related(facts.span(hazard.at), f"here {hazard.consequence}"),
                ),
            )
