"""Copies that belong to no group."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Consequence, Facts, Hazard
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class UncommittedCopy(Rule):
    """An asynchronous copy is never committed to a group, or only after the wait that should cover it.

    Why: wait_group counts committed groups. A copy that is in none is not waited for, whatever the count.
    Fix: put a commit_group between the copies and the wait, also after the copies of a prologue.
    A copy that reaches the exit and has met no wait is a warning: the ISA does not say whether the exit ends it.
    Not reported: copies under a predicate whose relation to that of the commit is unknown, cp.async that an mbarrier
        tracks, and copies whose address or lap of the loop is unknown, unless they are still uncommitted at the exit.
    """

    code = "PTX401"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.commit_group", since="7.0")

    good = (
        """
.shared .align 16 .b8 tile[512];
mov.u32 %r1, tile;
cp.async.cg.shared.global [%r1], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
ld.shared.u32 %r2, [%r1];
""",
        """
.shared .align 16 .b8 tile[512];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.wait_all;
bar.sync 0;
ld.shared.u32 %r2, [tile];
""",
    )
    bad = (
        """
.shared .align 16 .b8 tile[512];
mov.u32 %r1, tile;
cp.async.cg.shared.global [%r1], [%rd1], 16;  // expect: uncommitted-copy
cp.async.wait_group 0;
bar.sync 0;
ld.shared.u32 %r2, [%r1];
""",
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;  // expect: uncommitted-copy
cp.async.bulk.wait_group 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each copy that meets its reader, its writer or the exit without a group."""
        hazards = {hazard.copy: hazard for hazard in reversed(facts.hazards) if hazard.cause is Cause.UNCOMMITTED}
        for copy, hazard in sorted(hazards.items()):
            role = "destination" if facts.is_load(copy) else "source"
            related = [Related(facts.span(hazard.at), f"here {hazard.consequence}")]
            if hazard.wait is not None:
                related.append(Related(facts.span(hazard.wait), "this wait does not cover it"))
            if hazard.commit is not None:
                related.append(Related(facts.span(hazard.commit), "the commit that takes it in comes after that wait"))
            when = "before the wait" if hazard.commit is not None else "to any group"
            yield Finding(
                facts.span(copy),
                f"the copy {'into' if role == 'destination' else 'from'} {facts.object_name(copy, role)} is not "
                f"committed {when}, so no wait_group waits for it",
                "add a commit_group after the copy and before the wait",
                tuple(related),
                severity=Severity.WARNING if _is_never_missed(hazard) else None,
            )


def _is_never_missed(hazard: Hazard) -> bool:
    """Whether nothing waits for the copy and nothing is known to touch its bytes before the exit."""
    return hazard.wait is None and hazard.consequence is Consequence.EXIT
