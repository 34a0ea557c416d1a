"""Waits run by threads that have nothing to wait for."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class WaitByOtherThread(Rule):
    """A wait_group is run by threads that did not issue the copies it should wait for.

    Why: groups belong to the thread that commits them. For any other thread the wait returns at once; it learns of the
        copies of others only by a barrier after their own wait.
    Fix: let the issuing thread wait, then synchronize with the threads that use the bytes.
    Not reported: threads told apart by values other than their number, lane, warp or elect.sync.
    """

    code = "PTX404"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk.wait_group", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[512];
mov.u32 %r1, %tid.x;
setp.ne.s32 %p1, %r1, 0;
@%p1 bra SKIP;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
SKIP:
bar.sync 0;
mov.u32 %r2, tile;
mad.lo.s32 %r3, %r1, 4, %r2;
st.shared.u32 [%r3], %r1;
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[512];
mov.u32 %r1, %tid.x;
setp.ne.s32 %p1, %r1, 0;
@%p1 bra SKIP;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
SKIP:
cp.async.bulk.wait_group.read 0;  // expect: wait-by-other-thread
mov.u32 %r2, tile;
mad.lo.s32 %r3, %r1, 4, %r2;
st.shared.u32 [%r3], %r1;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each such wait once."""
        hazards = {hazard.wait: hazard for hazard in reversed(facts.hazards) if hazard.cause is Cause.FOREIGN_WAIT}
        for wait, hazard in sorted((wait, hazard) for wait, hazard in hazards.items() if wait is not None):
            is_load = facts.is_load(hazard.copy)
            what = facts.object_name(hazard.copy, "destination" if is_load else "source")
            yield Finding(
                facts.span(wait),
                f"`{facts.text(wait)}` is run by threads that did not issue the copy {'into' if is_load else 'from'} "
                f"{what}; for them it returns at once",
                "let the threads that issued the copy wait, and put a barrier between that and the use",
                (
                    Related(facts.span(hazard.copy), "the copy"),
                    Related(facts.span(hazard.at), f"here {hazard.consequence}"),
                ),
            )
