"""Flags raised when a store has been read, not written."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class ReadWaitBeforePublish(Rule):
    """A flag is released to the GPU after a wait that knows only that a bulk store has read its source.

    Why: `wait_group.read` returns when the source may be reused. Global memory may not hold the result yet, so whoever
        sees the flag may read the old bytes.
    Fix: use `wait_group` without `.read` before the release.
    Not reported: relaxed and volatile flags, a flag raised by another thread, and stores that nothing waits for.
    """

    code = "PTX406"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk.wait_group", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
st.release.gpu.global.u32 [%rd2], %r1;
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;  // expect: read-wait-before-publish
st.release.gpu.global.u32 [%rd2], %r1;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each such wait once."""
        hazards = {hazard.wait: hazard for hazard in reversed(facts.hazards) if hazard.cause is Cause.READ_WAIT}
        for wait, hazard in sorted((wait, hazard) for wait, hazard in hazards.items() if wait is not None):
            yield Finding(
                facts.span(wait),
                f"`{facts.text(wait)}` says only that {facts.object_name(hazard.copy, 'source')} has been read; the "
                "release after it may come before the store has written",
                "wait without .read before the release",
                (
                    Related(facts.span(hazard.copy), "the store"),
                    Related(facts.span(hazard.at), "the release that announces it"),
                ),
            )
