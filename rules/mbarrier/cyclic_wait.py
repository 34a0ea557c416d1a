"""Waits that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class CyclicWait(Rule):
    """Threads wait for mbarriers (or CTA barriers) that only other waiting threads would signal.

    Why: each waits before it does what the other waits for; no schedule gets any of them further.
    Fix: let one side go first: begin with the parity that lets it pass, or signal before waiting.
    Not reported: one wait that nobody would ever signal (`wait-without-arrival`).
    """

    code = "PTX116"
    severity = Severity.ERROR
    isa = IsaRef(
        "Parallel Synchronization and Communication Instructions: mbarrier.test_wait/mbarrier.try_wait", since="7.0"
    )

    good = (
        """
.shared .align 8 .b64 left;
.shared .align 8 .b64 right;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
setp.lt.u32 %p4, %r1, 32;
@%p1 bra READY;
mbarrier.init.shared.b64 [left], 32;
mbarrier.init.shared.b64 [right], 32;
READY:
bar.sync 0;
setp.ge.u32 %p5, %r1, 64;
@%p5 bra DONE;
@%p4 bra OTHER;
mbarrier.arrive.shared.b64 _, [right];
FIRST:
mbarrier.try_wait.parity.shared.b64 %p2, [left], 0;
@!%p2 bra FIRST;
bra DONE;
OTHER:
mbarrier.try_wait.parity.shared.b64 %p3, [right], 0;
@!%p3 bra OTHER;
mbarrier.arrive.shared.b64 _, [left];
DONE:
""",
    )
    bad = (
        """
.shared .align 8 .b64 left;
.shared .align 8 .b64 right;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
setp.lt.u32 %p4, %r1, 32;
@%p1 bra READY;
mbarrier.init.shared.b64 [left], 32;
mbarrier.init.shared.b64 [right], 32;
READY:
bar.sync 0;
setp.ge.u32 %p5, %r1, 64;
@%p5 bra DONE;
@%p4 bra OTHER;
FIRST:
mbarrier.try_wait.parity.shared.b64 %p2, [left], 0;
@!%p2 bra FIRST;
mbarrier.arrive.shared.b64 _, [right];
bra DONE;
OTHER:
mbarrier.try_wait.parity.shared.b64 %p3, [right], 0;  // expect: cyclic-wait
@!%p3 bra OTHER;
mbarrier.arrive.shared.b64 _, [left];
DONE:
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the first of the waits that block each other; the others are related places."""
        for story in facts.stories(Fault.CYCLE):
            yield story.finding(
                f"{story.subject('wait')} for phase {story.number('phase')} of {story.barrier}, which only threads "
                "that wait themselves would complete",
                "let one side go first",
            )
