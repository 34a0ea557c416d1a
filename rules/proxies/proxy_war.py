"""Generic reads overwritten by the async proxy."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ProxyWar(Rule):
    """The async proxy writes shared memory that threads have read, with no proxy fence in between.

    Why: contested, hence off by default. For a fence: the ISA asks for one wherever two proxies access one location,
        its model preserves causality between proxies over no other way, and its example of
        `clusterlaunchcontrol.try_cancel` fences such a reuse. Against: what a thread has loaded into a register cannot
        be overwritten, an arrive that releases the slot comes after the load, and the rings of CUTLASS, Triton and
        FlashAttention refill their slots so. Rings without the fence were right in every launch on an H200, with a
        delay at each of their places.
    Fix: `fence.proxy.async.shared::cta` in the reading threads, after the reads and before the arrive or barrier that
        hands the bytes back.
    Not reported: reads that nothing orders before the write, which are races.
    """

    code = "PTX305"
    severity = Severity.INFO
    isa = IsaRef("Parallel Synchronization and Communication Instructions: membar/fence", since="8.0")
    default = False

    good = (
        """
.shared .align 128 .b8 tile[512];
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
mov.u32 %r4, 0;
mov.u32 %r5, 0;
LOOP:
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r4;
@!%p2 bra WAIT;
ld.shared.u32 %r6, [%r3];
fence.proxy.async.shared::cta;
bar.sync 0;
xor.b32 %r4, %r4, 1;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p3, %r5, 4;
@%p3 bra LOOP;
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[512];
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
mov.u32 %r4, 0;
mov.u32 %r5, 0;
LOOP:
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [full];  // expect: proxy-war
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r4;
@!%p2 bra WAIT;
ld.shared.u32 %r6, [%r3];
bar.sync 0;
xor.b32 %r4, %r4, 1;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p3, %r5, 4;
@%p3 bra LOOP;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the writes after each group of reads."""
        for clash in facts.clashes(Mistake.OVERWRITTEN):
            yield clash.finding(
                f"{clash.early} by the async proxy after {clash.unfinished}, without fence.proxy.async in between",
                "run fence.proxy.async.shared::cta in the reading threads, before they hand the bytes back",
            )
