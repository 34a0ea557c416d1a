"""Proxy fences on the far side of the barrier."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class FenceAfterBarrier(Rule):
    """The proxy fence between generic writes and an async read is run by the reading thread alone, after the barrier.

    Why: contested. The memory model asks for a proxy fence along the path from write to read, and a sanitizer accepts
        this one. The ISA also says that the fence acts within its thread, and libraries let each writer fence before
        the barrier; two public fixes moved it there.
    Fix: `fence.proxy.async.shared::cta` in each writing thread, after its writes and before the barrier.
    Not reported: writes that both sides fence.
    """

    code = "PTX302"
    severity = Severity.WARNING
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
bar.sync 0;
fence.proxy.async.shared::cta;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;  // expect: fence-after-barrier
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the reads of each group of writes."""
        for clash in facts.clashes(Mistake.FENCED_LATE):
            yield clash.finding(
                f"{clash.early} by the async proxy after {clash.unfinished}; only the reading side has a proxy fence",
                "run the fence in the writing threads, before the barrier",
            )
