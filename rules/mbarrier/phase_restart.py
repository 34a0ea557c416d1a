"""Parities that start anew while the barrier goes on."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class PhaseRestart(Rule):
    """The parity of a wait is set anew in each trip of an outer loop, while the barrier keeps its phase.

    Why: an mbarrier counts phases from its initialization on. After an outer trip with an odd number of phases the
        parity that starts anew is one behind.
    Fix: declare stage and parity before the outer loop, and let them run on.
    Not reported: inner loops that use an even number of phases in every trip.
    """

    code = "PTX104"
    severity = Severity.ERROR
    isa = IsaRef(
        "Parallel Synchronization and Communication Instructions: mbarrier.test_wait/mbarrier.try_wait", since="7.1"
    )

    good = (
        """
.shared .align 8 .b64 full;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
mov.u32 %r2, 0;
mov.u32 %r3, 0;
OUTER:
mov.u32 %r4, 0;
INNER:
@%p1 bra WAIT;
mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r3;
@!%p2 bra WAIT;
xor.b32 %r3, %r3, 1;
bar.sync 0;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p3, %r4, 3;
@%p3 bra INNER;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra OUTER;
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
mov.u32 %r2, 0;
OUTER:
mov.u32 %r3, 0;
mov.u32 %r4, 0;
INNER:
@%p1 bra WAIT;
mbarrier.arrive.shared.b64 _, [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r3;  // expect: phase-restart
@!%p2 bra WAIT;
xor.b32 %r3, %r3, 1;
bar.sync 0;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p3, %r4, 3;
@%p3 bra INNER;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 4;
@%p4 bra OUTER;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report waits that begin again with their first parity in a later trip of an outer loop."""
        for story in facts.stories(Fault.PARITY_RESTARTED):
            parity = story.number("parity")
            yield story.finding(
                f"wait of {story.agent} on {story.barrier} begins again with parity {parity} in its {story.visit} "
                f"visit, while the barrier has gone on and the next phase has parity {1 - parity}",
                "carry stage and parity over the trips of the outer loop: set them before it",
            )
