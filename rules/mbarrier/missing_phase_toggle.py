"""Waits that ask for the same parity again."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class MissingPhaseToggle(Rule):
    """A wait asks an mbarrier for the parity of the phase that it has already seen.

    Why: phases alternate between parity 0 and 1. Asked for the old parity, the wait returns at once and the data of the
        new phase are read before they are there; or it waits for a phase that comes only after its own arrival.
    Fix: flip the parity (`phase ^= 1`) each time the wait comes back to the same barrier: in a ring of stages when the
        stage wraps around to 0.
    Not reported: a barrier that is waited on once; repeated looks at one phase, such as a peek before the wait.
    """

    code = "PTX101"
    severity = Severity.ERROR
    isa = IsaRef(
        "Parallel Synchronization and Communication Instructions: mbarrier.test_wait/mbarrier.try_wait", since="7.1"
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
mbarrier.try_wait.parity.shared.b64 %p2, [full], %r3;  // expect: missing-phase-toggle
@!%p2 bra WAIT;
bar.sync 0;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report waits that are mended by asking for the phases in turn."""
        for story in facts.stories(Fault.PARITY_CONSTANT):
            parity = story.number("parity")
            if story.number("unflipped"):
                yield story.finding(
                    f"{story.agent} asks {story.barrier} for parity {parity} again after this wait; "
                    f"the phase that follows the one it has seen has parity {1 - parity}",
                    "flip the parity after this wait, as after the others on this barrier",
                )
                continue
            yield story.finding(
                f"wait of {story.agent} on {story.barrier} asks for parity {parity} again in its {story.visit} visit; "
                f"the phase that follows the one it has seen has parity {1 - parity}",
                "flip the parity each time the wait comes back to this barrier",
            )
