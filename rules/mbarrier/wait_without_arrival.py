"""Waits for arrivals that never come."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class WaitWithoutArrival(Rule):
    """A wait blocks for ever because the arrivals that its phase lacks never come.

    Why: nothing in the kernel completes the phase, under any of the schedules tried: no thread arrives, no copy and no
        commit signals the barrier (or not this often, or not the barrier of this CTA).
    Fix: arrive where the data are ready, or wait for the barrier that is signalled.
    Not reported: waits that block each other in a cycle (`cyclic-wait`), and phases that get some arrivals but fewer
        than the barrier was initialized for (`arrival-count-mismatch`).
    """

    code = "PTX107"
    severity = Severity.ERROR
    isa = IsaRef(
        "Parallel Synchronization and Communication Instructions: mbarrier.test_wait/mbarrier.try_wait", since="7.0"
    )

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
.shared .align 8 .b64 full;
.shared .align 8 .b64 go;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [go], 1;
READY:
bar.sync 0;
@%p1 bra WAIT;
mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [go], 0;  // expect: wait-without-arrival
@!%p2 bra WAIT;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report waits that block although no other wait is to blame."""
        for story in facts.stories(Fault.NO_ARRIVAL):
            yield story.finding(
                f"{story.subject('wait')} for phase {story.number('phase')} of {story.barrier}, which expects "
                f"{story.counted('expected', 'arrival')}: none ever comes",
                "arrive at this barrier, or wait for the one that is signalled",
            )
        for story in facts.stories(Fault.STUCK):
            missing = [story.counted("pending", "arrival")] if story.number("pending") > 0 else []
            missing += [f"{story.number('tx')} bytes"] if story.number("tx") else []
            yield story.finding(
                f"{story.subject('wait')} for phase {story.number('phase')} of {story.barrier}, which lacks "
                f"{' and '.join(missing) or 'nothing, and has the other parity'}: no one is left to run who could "
                "change that",
                "let as many phases be completed as are waited for",
            )
