"""Copies that land in memory which is used for something else by then."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Consequence, Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class UndrainedAlias(Rule):
    """Shared memory is written while a cp.async copy into it may still be in flight.

    Why: the last groups of a pipeline are often left pending, being of no more use. When the tile is then used for the
        epilogue, the late copies overwrite it.
    Fix: `cp.async.wait_all` and a barrier after the loop.
    Not reported: writes whose address cannot be worked out.
    """

    code = "PTX409"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async", since="7.0")

    good = (
        """
.shared .align 16 .b8 tile[512];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_all;
bar.sync 0;
st.shared.u32 [tile], %r1;
""",
        """
.shared .align 16 .b8 ring[2048];
and.b32 %r2, %r1, 3;
setp.eq.s32 %p1, %r2, 0;
@%p1 bra DONE;
neg.s32 %r3, %r2;
mov.u32 %r4, ring;
NEXT:
st.shared.u32 [ring+1536], %r1;
bar.sync 0;
cp.async.cg.shared.global [%r4], [%rd1], 16;
cp.async.commit_group;
add.s32 %r4, %r4, 512;
add.s32 %r3, %r3, 1;
setp.ne.s32 %p2, %r3, 0;
@%p2 bra NEXT;
DONE:
cp.async.wait_all;
""",
    )
    bad = (
        """
.shared .align 16 .b8 tile[512];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.commit_group;
bar.sync 0;
st.shared.u32 [tile], %r1;  // expect: undrained-alias
""",
        """
.shared .align 16 .b8 ring[2048];
and.b32 %r2, %r1, 7;
setp.eq.s32 %p1, %r2, 0;
@%p1 bra DONE;
neg.s32 %r3, %r2;
mov.u32 %r4, ring;
NEXT:
st.shared.u32 [ring+1536], %r1;  // expect: undrained-alias
bar.sync 0;
cp.async.cg.shared.global [%r4], [%rd1], 16;
cp.async.commit_group;
add.s32 %r4, %r4, 512;
add.s32 %r3, %r3, 1;
setp.ne.s32 %p2, %r3, 0;
@%p2 bra NEXT;
DONE:
cp.async.wait_all;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each such write once; what the run shows only where the flow of the groups shows nothing."""
        causes = (Cause.NO_WAIT, Cause.WEAK_WAIT)
        hazards = [h for h in facts.hazards if h.consequence is Consequence.OVERWRITTEN and h.cause in causes]
        for at, hazard in sorted({hazard.at: hazard for hazard in reversed(hazards)}.items()):
            yield Finding(
                facts.span(at),
                f"a copy into {facts.object_name(hazard.copy, 'destination')} may still be in flight when that is "
                "written here, and land on top of it",
                "wait for all copies, then a barrier, before the memory is used anew",
                (Related(facts.span(hazard.copy), "the copy"),),
            )
        for clash in () if facts.hazards else facts.clashes(Mistake.UNDRAINED):
            yield clash.finding(
                f"{clash.early} while {clash.unfinished} may still be in flight, and land on top of it",
                "wait for all copies, then a barrier, before the memory is used anew",
            )
