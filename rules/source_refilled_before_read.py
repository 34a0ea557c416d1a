"""Tiles that are overwritten while they are being stored."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Cause, Consequence, Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class SourceRefilledBeforeRead(Rule):
    """Shared memory is written again while a bulk store may still be reading it, and nothing waits in between.

    Why: a bulk store reads its source asynchronously. Until a wait_group (`.read` is enough) covers its group the
        bytes must stay, else the old tile's place in global memory gets a mixture.
    Fix: before the refill let the storing thread run `cp.async.bulk.wait_group.read N`, then a barrier for the others.
    Not reported: slots whose address cannot be worked out for the laps of the loop; tensor stores count with the first
        16 bytes of their tile, since the PTX does not say how large it is.
    """

    code = "PTX405"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
st.shared.u32 [tile+64], %r1;
""",
        """
.shared .align 128 .b8 tile[1024];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
st.shared.u32 [tile+512], %r1;
cp.async.bulk.wait_group 0;
""",
        """
.shared .align 128 .b8 rows[4096];
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 5;
and.b32 %r3, %r1, 31;
setp.ne.u32 %p1, %r3, 0;
ld.global.u32 %r4, [%rd1];
sub.s32 %r4, %r4, %r2;
shl.b32 %r5, %r2, 7;
mov.u32 %r6, rows;
add.u32 %r5, %r6, %r5;
shl.b32 %r6, %r3, 2;
add.u32 %r6, %r5, %r6;
mov.u32 %r7, 0;
NEXT:
st.shared.u32 [%r6], %r1;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@%p1 bra STORED;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 128;
cp.async.bulk.commit_group;
STORED:
setp.le.s32 %p2, %r4, %r7;
@%p2 bra LAST;
@%p1 bra LAST;
cp.async.bulk.wait_group.read 0;
LAST:
bar.warp.sync -1;
setp.ne.s32 %p3, %r7, %r4;
add.s32 %r7, %r7, 1;
@%p3 bra NEXT;
cp.async.bulk.wait_group 0;
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[512];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
st.shared.u32 [tile+64], %r1;  // expect: source-refilled-before-read
cp.async.bulk.wait_group 0;
""",
        """
.shared .align 128 .b8 rows[4096];
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 5;
and.b32 %r3, %r1, 31;
setp.ne.u32 %p1, %r3, 0;
ld.global.u32 %r4, [%rd1];
sub.s32 %r4, %r4, %r2;
shl.b32 %r5, %r2, 7;
mov.u32 %r6, rows;
add.u32 %r5, %r6, %r5;
shl.b32 %r6, %r3, 2;
add.u32 %r6, %r5, %r6;
mov.u32 %r7, 0;
NEXT:
st.shared.u32 [%r6], %r1;  // expect: source-refilled-before-read
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@%p1 bra STORED;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 128;
cp.async.bulk.commit_group;
STORED:
add.s32 %r8, %r7, 1;
setp.le.s32 %p2, %r4, %r8;
@%p2 bra LAST;
@%p1 bra LAST;
cp.async.bulk.wait_group.read 0;
LAST:
bar.warp.sync -1;
setp.ne.s32 %p3, %r7, %r4;
add.s32 %r7, %r7, 1;
@%p3 bra NEXT;
cp.async.bulk.wait_group 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the first write for each store."""
        hazards = [h for h in facts.hazards if h.consequence is Consequence.REFILLED and h.cause is Cause.NO_WAIT]
        for at, hazard in sorted({hazard.at: hazard for hazard in reversed(hazards)}.items()):
            what = facts.object_name(hazard.copy, "source")
            yield Finding(
                facts.span(at),
                f"{what} is written here while the bulk store from it may still be reading; nothing waits for its "
                "group",
                "let the storing thread run cp.async.bulk.wait_group.read, then a barrier, before the write",
                (Related(facts.span(hazard.copy), "the store that reads it"),),
            )
