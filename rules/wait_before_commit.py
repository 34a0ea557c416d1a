"""Waits in front of the commit that they count on."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class WaitBeforeCommit(Rule):
    """A wait_group stands before the commit_group of the newest copies, and counts as if it stood after it.

    Why: at the wait one group less is committed than its count assumes, so it lets an older group be pending, or finds
        no group at all and returns at once.
    Fix: commit first, or lower the count by one.
    Not reported: a wait before the commit whose count is right for that place.
    """

    code = "PTX403"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.wait_group, cp.async.wait_all", since="7.0")

    good = (
        """
.shared .align 16 .b8 tile[512];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
ld.shared.u32 %r2, [tile];
""",
        """
.shared .align 16 .b8 tile[1024];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.commit_group;
cp.async.cg.shared.global [tile+512], [%rd1], 16;
cp.async.wait_group 0;
cp.async.commit_group;
bar.sync 0;
ld.shared.u32 %r2, [tile];
cp.async.wait_all;
""",
    )
    bad = (
        """
.shared .align 16 .b8 tile[512];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.wait_group 0;  // expect: wait-before-commit
cp.async.commit_group;
bar.sync 0;
ld.shared.u32 %r2, [tile];
""",
        """
.shared .align 16 .b8 tile[1024];
cp.async.cg.shared.global [tile], [%rd1], 16;
cp.async.commit_group;
cp.async.cg.shared.global [tile+512], [%rd1], 16;
cp.async.wait_group 1;  // expect: wait-before-commit
cp.async.commit_group;
bar.sync 0;
ld.shared.u32 %r2, [tile];
cp.async.wait_all;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each such wait once."""
        hazards = {hazard.wait: hazard for hazard in reversed(facts.hazards) if hazard.cause is Cause.EARLY_WAIT}
        for wait, hazard in sorted((wait, hazard) for wait, hazard in hazards.items() if wait is not None):
            is_load = facts.is_load(hazard.copy)
            what = facts.object_name(hazard.copy, "destination" if is_load else "source")
            related = [Related(facts.span(hazard.copy), "the copy")]
            if hazard.commit is not None:
                related.append(Related(facts.span(hazard.commit), "the commit that comes too late"))
            if hazard.at != wait:
                related.append(Related(facts.span(hazard.at), f"here {hazard.consequence}"))
            yield Finding(
                facts.span(wait),
                f"`{facts.text(wait)}` runs before the newest copies are committed, so it does not wait for the copy "
                f"{'into' if is_load else 'from'} {what}",
                "move the commit_group before the wait, or lower the wait's count by one",
                tuple(related),
            )
