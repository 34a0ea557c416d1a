"""Mailboxes that are written again with no word from those who read them."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Clash, Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class SingleSlotNoAcknowledgement(Rule):
    """A slot of shared memory is handed over with a `ready` barrier, and written again with no `free` that comes back.

    Why: `ready` holds the readers back until the slot is written. Nothing holds the writer back: its next write may
        come while the slot is still being read, or before anyone has begun to.
    Fix: a second barrier, at which every reader arrives after its last read and on which the writer waits before it
        writes again (its first wait passes with parity 1).
    Not reported: slots that are written once; rings of several slots (early-slot-reuse).
    """

    code = "PTX903"
    severity = Severity.ERROR
    isa = IsaRef("Memory Consistency Model: Data-Races", since="6.0")

    good = (
        """
.shared .align 4 .b32 box;
.shared .align 8 .b64 ready;
.shared .align 8 .b64 free;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [ready], 1;
mbarrier.init.shared.b64 [free], 96;
READY:
bar.sync 0;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
mov.u32 %r4, 1;
setp.ge.u32 %p2, %r1, 32;
@%p2 bra READER;
@%p1 bra DONE;
WRITER:
mbarrier.try_wait.parity.shared.b64 %p3, [free], %r4;
@!%p3 bra WRITER;
xor.b32 %r4, %r4, 1;
st.shared.u32 [box], %r2;
mbarrier.arrive.shared.b64 _, [ready];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra WRITER;
bra DONE;
READER:
mbarrier.try_wait.parity.shared.b64 %p3, [ready], %r3;
@!%p3 bra READER;
xor.b32 %r3, %r3, 1;
ld.shared.u32 %r5, [box];
mbarrier.arrive.shared.b64 _, [free];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra READER;
DONE:
""",
    )
    bad = (
        """
.shared .align 4 .b32 box;
.shared .align 8 .b64 ready;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [ready], 1;
READY:
bar.sync 0;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
setp.ge.u32 %p2, %r1, 32;
@%p2 bra READER;
@%p1 bra DONE;
WRITER:
st.shared.u32 [box], %r2;  // expect: single-slot-no-acknowledgement
mbarrier.arrive.shared.b64 _, [ready];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra WRITER;
bra DONE;
READER:
mbarrier.try_wait.parity.shared.b64 %p3, [ready], %r3;
@!%p3 bra READER;
xor.b32 %r3, %r3, 1;
ld.shared.u32 %r5, [box];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra READER;
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the write that comes again."""
        for clash in facts.clashes(Mistake.UNACKNOWLEDGED):
            yield clash.finding(
                f"{clash.early} again, and nothing tells it that {clash.unfinished} is over: "
                f"{clash.handed or 'a barrier'} says that the slot is ready, and no barrier says that it is free",
                _fix(clash),
            )


def _fix(clash: Clash) -> str:
    """What the readers arrive at already serves, if there is such a barrier; else the one to add."""
    if clash.returned:
        return f"before writing again wait on {clash.returned}, at which the readers arrive after their read"
    beside = f" beside {clash.handed}" if clash.handed else ""
    return (
        f"add an mbarrier{beside} that counts the readers: {clash.first.agent} arrive there after the read, and "
        f"{clash.later} waits there before writing again"
    )
