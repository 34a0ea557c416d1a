"""Bytes expected that are not the bytes copied."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Fault
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class ExpectTxMismatch(Rule):
    """The bytes that an mbarrier is told to expect in a phase are not those that its copies bring.

    Why: a phase completes when all arrivals are there and the bytes expected equal the bytes copied. Too many expected
        bytes hang every wait; too few complete the phase before the data are there, or never.
    Fix: expect the sum of the sizes of all copies of the phase, including those that other CTAs multicast here.
        The box of a tensor copy is not in the PTX, but it ends before the next box in flight, and phases filled through
        the same tensor maps bring the same bytes.
    Not reported: bytes that tensor boxes may bring as far as the PTX says; `expect_tx` that stands after the copy.
    """

    code = "PTX110"
    severity = Severity.ERROR
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.expect_tx", since="8.0")

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
mbarrier.arrive.expect_tx.shared.b64 _, [full], 528;  // expect: expect-tx-mismatch
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
.shared .align 8 .b64 full;
.shared .align 128 .b8 tile[512];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
READY:
bar.sync 0;
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [full], 528;  // expect: expect-tx-mismatch
cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1, {%r2}], [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
@!%p2 bra WAIT;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report phases whose bytes never balance."""
        for story in facts.stories(Fault.BYTES):
            expected, copied = story.number("expected"), story.number("copied")
            yield story.finding(
                f"phase {story.number('phase')} of {story.barrier} expects {expected} bytes, and {copied} are copied",
                f"expect {copied} bytes",
            )
        for story in facts.stories(Fault.BOXES):
            expected, usual, room = (story.number(name) for name in ("expected", "usual", "room"))
            bound = (
                f"its tensor boxes have room for {room}" if room else f"the same tensor maps bring {usual} in others"
            )
            yield story.finding(
                f"phase {story.number('phase')} of {story.barrier} expects {expected} bytes, and {bound}",
                "expect the bytes of all boxes of the phase, no more and no less",
            )
        for story in facts.stories(Fault.UNEXPECTED_COPY):
            yield story.finding(
                f"this copy completes on {story.barrier}, and phase {story.number('phase')} expects no bytes: it may "
                "end before they have come",
                "expect the bytes of the copy, with the arrival or before it",
            )
