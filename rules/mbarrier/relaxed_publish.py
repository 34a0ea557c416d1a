"""Data handed over by arrives and waits that order nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class RelaxedPublish(Rule):
    """Data are handed to other threads by a relaxed arrive at an mbarrier, or taken over by a relaxed wait.

    Why: `.relaxed` counts the arrival and orders no memory access. The waiting thread may find the data as they were
        before. On sm_90 and sm_100 the relaxed forms of CTA scope compile to the same code, so no test shows it.
    Fix: leave out `.relaxed`: the default is release for an arrive and acquire for a wait.
    Not reported: relaxed arrives that only count, and data that a bulk copy brings.
    """

    code = "PTX118"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.arrive", since="8.0")

    good = (
        """
.shared .align 8 .b64 ready;
.shared .align 4 .b8 message[128];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
setp.ge.u32 %p2, %r1, 32;
@%p1 bra READY;
mbarrier.init.shared.b64 [ready], 32;
READY:
bar.sync 0;
shl.b32 %r2, %r1, 2;
and.b32 %r2, %r2, 127;
mov.u32 %r3, message;
add.u32 %r3, %r3, %r2;
@%p2 bra WAIT;
st.shared.u32 [%r3], %r1;
mbarrier.arrive.shared.b64 _, [ready];
bra DONE;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [ready], 0;
@!%p3 bra WAIT;
ld.shared.u32 %r4, [%r3];
DONE:
""",
    )
    bad = (
        """
.shared .align 8 .b64 ready;
.shared .align 4 .b8 message[128];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
setp.ge.u32 %p2, %r1, 32;
@%p1 bra READY;
mbarrier.init.shared.b64 [ready], 32;
READY:
bar.sync 0;
shl.b32 %r2, %r1, 2;
and.b32 %r2, %r2, 127;
mov.u32 %r3, message;
add.u32 %r3, %r3, %r2;
@%p2 bra WAIT;
st.shared.u32 [%r3], %r1;
mbarrier.arrive.relaxed.cta.shared.b64 _, [ready];  // expect: relaxed-publish
bra DONE;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [ready], 0;
@!%p3 bra WAIT;
ld.shared.u32 %r4, [%r3];
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the relaxed instruction between the two accesses."""
        for clash in facts.clashes(Mistake.RELAXED):
            yield clash.finding(
                f"{clash.early} after {clash.unfinished}; what hands it over is relaxed and orders nothing",
                "leave out .relaxed",
                at=clash.weak,
            )
