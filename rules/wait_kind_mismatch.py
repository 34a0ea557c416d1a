"""Waits for groups of a kind that nobody commits."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class WaitKindMismatch(Rule):
    """A wait is for groups of one kind (cp.async or bulk), while only copies of the other kind are pending.

    Why: cp.async groups and bulk groups are counted apart. `cp.async.wait_group` says nothing of bulk copies, and
        `cp.async.bulk.wait_group` nothing of cp.async.
    Fix: use the wait of the same family as the copy.
    Not reported: waits that some copy of their own kind precedes on a path.
    """

    code = "PTX410"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk.wait_group", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.wait_group 0;  // expect: wait-kind-mismatch
st.shared.u32 [tile], %r1;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each such wait once."""
        hazards = {hazard.wait: hazard for hazard in reversed(facts.hazards) if hazard.cause is Cause.WRONG_KIND}
        for wait, hazard in sorted((wait, hazard) for wait, hazard in hazards.items() if wait is not None):
            kind = "cp.async" if facts.is_load(hazard.copy) else "bulk"
            yield Finding(
                facts.span(wait),
                f"`{facts.text(wait)}` waits for groups that no copy before it belongs to; the pending copies are "
                f"{kind} copies",
                f"wait with {'cp.async.wait_group' if kind == 'cp.async' else 'cp.async.bulk.wait_group'}",
                (Related(facts.span(hazard.copy), "a pending copy"),),
            )
