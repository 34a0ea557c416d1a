"""Phases begun before anyone saw the last one complete."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class PhaseOvertake(Rule):
    """A thread arrives for the next phase of an mbarrier before anyone has seen the last one complete.

    Why: between two phases some wait has to return true, else the phase passes unseen. Waiting threads that lag two
        phases behind take the parity of a later one for their own: they hang or go on with data that are not theirs.
        In a ring it means that one side does not wait for the other, or that one thread arrives for warps that have
        waited beside it and may not all have seen the phase yet. Where these touch nothing between their waits it is a
        warning: TileLang's warp-specialized kernels are built so and run, a Triton kernel built so hung (triton#10035).
    Fix: wait for the opposite barrier (`empty` before the producer's arrive, `full` before the consumer's) in each
        trip; let warps that wait together meet at a barrier before one thread arrives for all of them.
    Not reported: phases that no one needs to see because the barrier is not used again; kernels in which memory that
        the barrier guards is seen to be written too early (single-slot-no-acknowledgement, early-slot-reuse).
    """

    code = "PTX115"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: Phase of the mbarrier object", since="7.0")

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
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 96
{
.reg .pred %p<6>;
.reg .b32 %r<7>;
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
.shared .align 4 .b8 sums[256];
mov.u32 %r1, %tid.x;
mov.u32 %r5, sums;
shl.b32 %r6, %r1, 2;
add.u32 %r5, %r5, %r6;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [empty], 1;
READY:
bar.sync 0;
mov.u32 %r2, 0;
setp.ge.u32 %p2, %r1, 64;
@%p2 bra FILL;
TAKE:
and.b32 %r3, %r2, 1;
FULL:
mbarrier.try_wait.parity.shared.b64 %p3, [full], %r3;
@!%p3 bra FULL;
st.shared.u32 [%r5], %r2;
bar.sync 1, 64;
@!%p1 mbarrier.arrive.shared.b64 _, [empty];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra TAKE;
bra DONE;
FILL:
and.b32 %r3, %r2, 1;
xor.b32 %r4, %r3, 1;
EMPTY:
mbarrier.try_wait.parity.shared.b64 %p3, [empty], %r4;
@!%p3 bra EMPTY;
setp.eq.u32 %p5, %r1, 64;
@%p5 mbarrier.arrive.shared.b64 _, [full];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra FILL;
DONE:
ret;
}
""",
    )

    bad = (
        """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
@%p1 bra DONE;
mov.u32 %r2, 0;
LOOP:
mbarrier.arrive.shared.b64 _, [full];  // expect: phase-overtake
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
DONE:
""",
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 96
{
.reg .pred %p<6>;
.reg .b32 %r<7>;
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
.shared .align 4 .b8 sums[256];
mov.u32 %r1, %tid.x;
mov.u32 %r5, sums;
shl.b32 %r6, %r1, 2;
add.u32 %r5, %r5, %r6;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [empty], 1;
READY:
bar.sync 0;
mov.u32 %r2, 0;
setp.ge.u32 %p2, %r1, 64;
@%p2 bra FILL;
TAKE:
and.b32 %r3, %r2, 1;
FULL:
mbarrier.try_wait.parity.shared.b64 %p3, [full], %r3;
@!%p3 bra FULL;
st.shared.u32 [%r5], %r2;
@!%p1 mbarrier.arrive.shared.b64 _, [empty];  // expect: phase-overtake
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra TAKE;
bra DONE;
FILL:
and.b32 %r3, %r2, 1;
xor.b32 %r4, %r3, 1;
EMPTY:
mbarrier.try_wait.parity.shared.b64 %p3, [empty], %r4;
@!%p3 bra EMPTY;
setp.eq.u32 %p5, %r1, 64;
@%p5 mbarrier.arrive.shared.b64 _, [full];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra FILL;
DONE:
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report arrivals in a phase whose predecessor nobody has seen, or not all who wait for it."""
        if any(facts.clashes(Mistake.UNACKNOWLEDGED, Mistake.REUSED_EARLY)):
            return
        for clash in facts.clashes(Mistake.LAPPED, Mistake.IDLE_LAPPED):
            hasty = clash.hasty
            yield clash.finding(
                f"{hasty.agent if hasty else clash.later} arrives here for {clash.first.agent}, which may not all have "
                f"seen the phase of {clash.memory} that they wait for complete: the next one can pass them by",
                "let the waiting warps meet at a barrier before the arrival, or let each of them arrive",
                at=hasty.point if hasty else None,
                is_contested=clash.mistake is Mistake.IDLE_LAPPED,
            )
        for story in facts.stories(Fault.OVERTAKE):
            phase = story.number("phase")
            yield story.finding(
                f"{story.subject('arrive')} for phase {phase} of {story.barrier} ({story.visit} arrival here) before "
                f"anyone has seen phase {phase - 1} complete",
                "wait in every trip until the other side is through with the slot",
            )
