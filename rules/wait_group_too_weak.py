"""Waits that allow the very group to be pending that is needed next."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Consequence, Facts, Hazard
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class WaitGroupTooWeak(Rule):
    """A wait_group N still allows the group to be pending whose bytes are used after it, or no wait covers it at all.

    Why: wait_group N returns when at most the N newest groups are pending. With S slots that are refilled one ahead the
        slot that is read next may be among S - 1 of them; a trip that commits no group shifts the count.
    Fix: lower N, or commit a group in every trip, also an empty one.
    Not reported: slots whose address cannot be worked out for the laps of the loop, such as an index from memory.
    """

    code = "PTX402"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.wait_group, cp.async.wait_all", since="7.0")

    good = (
        """
.shared .align 16 .b8 tile[1024];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.commit_group;
cp.async.cg.shared.global [tile+512], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group 1;
bar.sync 0;
ld.shared.u32 %r2, [tile];
cp.async.wait_all;
""",
    )
    bad = (
        """
.shared .align 16 .b8 tile[1024];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.commit_group;
cp.async.cg.shared.global [tile+512], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group 2;  // expect: wait-group-too-weak
bar.sync 0;
ld.shared.u32 %r2, [tile];
cp.async.wait_all;
""",
        """
.shared .align 16 .b8 tile[1024];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.commit_group;
bar.sync 0;
ld.shared.u32 %r2, [tile];  // expect: wait-group-too-weak
cp.async.wait_all;
""",
        """
.shared .align 128 .b8 tile[1024];
mov.u32 %r1, 0;
LOOP:
cp.async.bulk.wait_group.read 2;  // expect: wait-group-too-weak
and.b32 %r2, %r1, 1;
shl.b32 %r3, %r2, 9;
mov.u32 %r4, tile;
add.s32 %r5, %r4, %r3;
st.shared.u32 [%r5], %r1;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 512;
cp.async.bulk.commit_group;
add.s32 %r1, %r1, 1;
setp.lt.s32 %p1, %r1, 9;
@%p1 bra LOOP;
cp.async.bulk.wait_group 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each wait once, at the wait; a use without any wait at the use."""
        places = {_place(hazard): hazard for hazard in reversed(facts.hazards) if _is_weak(hazard)}
        for place, hazard in sorted(places.items()):
            is_load = facts.is_load(hazard.copy)
            what = facts.object_name(hazard.copy, "destination" if is_load else "source")
            copy = f"the copy {'into' if is_load else 'from'} {what}{_age(hazard)}"
            if hazard.wait is None:
                message = f"{copy} is in a group that nothing waits for before {hazard.consequence} here"
                fix = "add a wait_group (and a barrier) before this"
            else:
                message = f"`{facts.text(hazard.wait)}` lets {copy} be pending when {hazard.consequence}"
                fix = "let fewer groups be pending, or commit a group on every path that comes here"
            related = [Related(facts.span(hazard.copy), "the copy")]
            if hazard.wait is not None:
                related.append(Related(facts.span(hazard.at), f"here {hazard.consequence}"))
            yield Finding(facts.span(place), message, fix, tuple(related))


def _is_weak(hazard: Hazard) -> bool:
    if hazard.cause is Cause.NO_WAIT:
        return hazard.consequence is Consequence.READ
    return hazard.cause is Cause.WEAK_WAIT and hazard.consequence in (Consequence.READ, Consequence.REFILLED)


def _place(hazard: Hazard) -> int:
    return hazard.at if hazard.wait is None else hazard.wait


def _age(hazard: Hazard) -> str:
    return f", issued {hazard.laps} laps earlier," if hazard.laps > 1 else " of the lap before" if hazard.laps else ""
