"""Waits whose parity and barrier belong to different slots."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ParitySlotMismatch(Rule):
    """A wait asks an mbarrier for a parity that belongs to another slot of the ring.

    Why: a barrier that completes a phase in every trip alternates in every trip; one of a ring of N alternates every N
        trips. Parity and address have to advance together, or the wait answers for another phase than the data's.
    Fix: compute both from one counter: slot `k % N` with parity `(k / N) & 1`; a single barrier with parity `k & 1`.
    Not reported: rings whose parity is right however it is computed.
    """

    code = "PTX102"
    severity = Severity.ERROR
    isa = IsaRef(
        "Parallel Synchronization and Communication Instructions: mbarrier.test_wait/mbarrier.try_wait", since="7.1"
    )

    good = (
        """
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 128;
@!%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [empty], 128;
READY:
bar.sync 0;
mov.u32 %r2, 0;
setp.gt.u32 %p2, %r1, 128;
@%p2 bra DONE;
@%p1 bra FILL;
TAKE:
and.b32 %r3, %r2, 1;
FULL:
mbarrier.try_wait.parity.shared.b64 %p3, [full], %r3;
@!%p3 bra FULL;
mbarrier.arrive.shared.b64 _, [empty];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 16;
@%p4 bra TAKE;
bra DONE;
FILL:
and.b32 %r3, %r2, 1;
xor.b32 %r3, %r3, 1;
EMPTY:
mbarrier.try_wait.parity.shared.b64 %p3, [empty], %r3;
@!%p3 bra EMPTY;
mbarrier.arrive.shared.b64 _, [full];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 16;
@%p4 bra FILL;
DONE:
""",
    )
    bad = (
        """
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 128;
@!%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [empty], 128;
READY:
bar.sync 0;
mov.u32 %r2, 0;
setp.gt.u32 %p2, %r1, 128;
@%p2 bra DONE;
@%p1 bra FILL;
TAKE:
shr.u32 %r3, %r2, 2;
and.b32 %r3, %r3, 1;
FULL:
mbarrier.try_wait.parity.shared.b64 %p3, [full], %r3;  // expect: parity-slot-mismatch
@!%p3 bra FULL;
mbarrier.arrive.shared.b64 _, [empty];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 16;
@%p4 bra TAKE;
bra DONE;
FILL:
and.b32 %r3, %r2, 1;
xor.b32 %r3, %r3, 1;
EMPTY:
mbarrier.try_wait.parity.shared.b64 %p3, [empty], %r3;
@!%p3 bra EMPTY;
mbarrier.arrive.shared.b64 _, [full];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 16;
@%p4 bra FILL;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report waits whose parities change at another pace than the barrier's phases."""
        for story in facts.stories(Fault.PARITY_OF_OTHER_SLOT):
            yield story.finding(
                f"wait of {story.agent} on {story.barrier} asks for parity {story.number('parity')} in its "
                f"{story.visit} visit, which is not that of the phase that is next there: parity and slot do not "
                "advance together",
                "derive slot and parity from one counter: k % stages and (k / stages) & 1",
            )
