"""tcgen05.mma whose end nobody is told."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class UncommittedMma(Rule):
    """The result of a `tcgen05.mma` is used by others, and no `tcgen05.commit` after it tells them that it is done.

    Why: the MMA is asynchronous; only a commit by the same thread after it, waited for at its mbarrier, orders others
        after it. A commit before the last MMA does not cover that one.
    Fix: `tcgen05.commit` after the last MMA, to the mbarrier that those who use the result wait on.
    Not reported: MMAs of one thread after each other, which are pipelined; those of two threads with a `tcgen05.fence`
        on either side of the synchronization between them, as the ISA has it up to version 9.2.
    """

    code = "PTX601"
    severity = Severity.ERROR
    isa = IsaRef("TensorCore 5th Generation Instructions: tcgen05.commit", since="8.6")

    good = (
        """
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b64 done;
.shared .align 8 .b64 drained;
.shared .align 4 .b32 slot;
mov.u32 %r5, tile;
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0x8100490;
mov.b64 %rd2, 0x4000004000080040;
setp.ge.u32 %p1, %r1, 32;
setp.ne.u32 %p2, %r1, 0;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
@%p2 bra READY;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [drained], 128;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
@%p2 bra WAIT;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];
tcgen05.wait::ld.sync.aligned;
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b64 done;
.shared .align 8 .b64 drained;
.shared .align 4 .b32 slot;
mov.u32 %r5, tile;
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0x8100490;
mov.b64 %rd2, 0x4000004000080040;
setp.ge.u32 %p1, %r1, 32;
setp.ne.u32 %p2, %r1, 0;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
@%p2 bra READY;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [drained], 128;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
@%p2 bra WAIT;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd2, %rd2, %r2, 0;  // expect: uncommitted-mma
mbarrier.arrive.shared.b64 _, [done];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];
tcgen05.wait::ld.sync.aligned;
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the MMA whose result or operand is touched."""
        for clash in facts.clashes(Mistake.MMA_UNCOMMITTED):
            yield clash.finding(
                f"{clash.early} while the MMA of {clash.first.agent} may be running: it waits for no commit after it",
                "commit after the last MMA, to the mbarrier that those who use its result wait on",
                at=clash.first.point,
            )
