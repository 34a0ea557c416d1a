"""Flags raised when a store has been read, not written."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.facts import Cause, Consequence, Facts, Hazard
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class ReadWaitBeforePublish(Rule):
    """A flag is released to the GPU when a bulk store may not have written yet: its wait has `.read`, or it has none.

    Why: `wait_group.read` returns when the source may be reused. Global memory may not hold the result yet, so whoever
        sees the flag may read the old bytes. A commit alone waits for nothing.
    Fix: use `wait_group` without `.read` before the release.
    Not reported: relaxed and volatile flags, a flag that is lowered (a store of 0, as split-K kernels do with the lock
        that they leave for the next launch), a flag that may be about generic writes to global memory on the way, and a
        flag raised by another thread. Without any wait, or when the release is a fence before some write, it is a
        warning: the flag may be about something else.
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
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
mov.u32 %r1, 0;
st.release.gpu.global.u32 [%rd2], %r1;
""",
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
red.relaxed.gpu.global.add.u32 [%rd3], %r2;
st.release.gpu.global.u32 [%rd2], %r1;
""",
        """
.shared .align 128 .b8 tile[512];
.shared .align 128 .b8 map[128];
cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd1, {%r1}], [tile];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [map], 128;
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
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
st.release.gpu.global.u32 [%rd2], %r1;  // expect: read-wait-before-publish
cp.async.bulk.wait_group 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each wait with `.read` once, and each release that no wait precedes."""
        hazards = [hazard for hazard in reversed(facts.hazards) if hazard.consequence is Consequence.PUBLISHED]
        for place, hazard in sorted({_place(hazard): hazard for hazard in hazards}.items()):
            source = facts.object_name(hazard.copy, "source")
            is_flag = bool(isa.accesses(facts.cfg.body[hazard.at]))
            if place == hazard.at:
                message = f"this release comes while the bulk store from {source} is pending; nothing waits for it"
            else:
                message = (
                    f"`{facts.text(place)}` says only that {source} has been read; the release after it may come "
                    "before the store has written"
                )
            is_sure = place != hazard.at and is_flag
            yield Finding(
                facts.span(place),
                message,
                "run cp.async.bulk.wait_group without .read before the release",
                (
                    Related(facts.span(hazard.copy), "the store"),
                    Related(facts.span(hazard.at), "the release that announces it"),
                ),
                assumptions=() if is_sure else ("what is released here announces the result of the store",),
                severity=None if is_sure else Severity.WARNING,
            )


def _place(hazard: Hazard) -> int:
    return hazard.wait if hazard.cause is Cause.READ_WAIT and hazard.wait is not None else hazard.at
