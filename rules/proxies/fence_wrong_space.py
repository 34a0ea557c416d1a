"""Proxy fences for another state space."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class FenceWrongSpace(Rule):
    """The proxy fence between generic writes to shared memory and an async read of them covers another state space.

    Why: `fence.proxy.async.global` orders accesses to global memory alone.
    Fix: `fence.proxy.async.shared::cta`, or `fence.proxy.async`, which covers all spaces.
    Not reported: writes without any proxy fence on the way (`unfenced-async-read`).
    """

    code = "PTX303"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: membar/fence", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[4096];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
st.shared.u32 [%r3], %r1;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[4096];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
st.shared.u32 [%r3], %r1;
fence.proxy.async.global;
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;  // expect: fence-wrong-space
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the reads of each group of writes."""
        for clash in facts.clashes(Mistake.FENCED_ELSEWHERE):
            yield clash.finding(
                f"{clash.early} by the async proxy after {clash.unfinished}; the proxy fence between them covers "
                "another state space",
                "use fence.proxy.async.shared::cta, or fence.proxy.async for all spaces",
            )
