"""mbarriers never initialized."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class BarrierBeforeInit(Rule):
    """An mbarrier is used, and nothing has initialized it.

    Why: the memory holds anything; every operation on it but `mbarrier.init` is undefined.
    Fix: initialize it, or use the barrier that is initialized.
    Not reported: initializations that come late under some schedule (`unpublished-barrier-init`).
    """

    code = "PTX113"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.init", since="7.0")

    good = (
        """
.shared .align 8 .b64 full;
.shared .align 16 .b8 tile[512];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
LOOP:
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r3;
@!%p2 bra WAIT;
xor.b32 %r3, %r3, 1;
bar.sync 0;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
""",
    )
    bad = (
        """
.shared .align 8 .b64 full[2];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
@%p1 bra DONE;
mbarrier.arrive.shared.b64 _, [full+8];  // expect: barrier-before-init
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report uses of memory that no thread initializes."""
        for story in facts.stories(Fault.BEFORE_INIT):
            yield story.finding(
                f"{story.subject('use')} {story.barrier}, which is never initialized",
                "initialize it before the first use",
            )
