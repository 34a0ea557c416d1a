"""Arrives at barriers of other CTAs whose scope is their own CTA."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.analyses.remote import narrow_arrivals
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class RemoteArriveScope(Rule):
    """Threads hand memory to another CTA by an arrive whose scope is their own CTA.

    Why: `.cta`, also the default, orders accesses for threads of the same CTA alone; the other CTA sees the arrival
        counted, and may not see what was done before it. Contested for the hand-back of a slot that was only read:
        CUTLASS does that with the default scope.
    Fix: `mbarrier.arrive.release.cluster`, and a wait with `.acquire.cluster` on the other side.
    Not reported: arrives with the default scope, unless the kernel writes to the other CTA's shared memory, or reads
        it and writes its own beside the arrive; arrives after which only results of asynchronous operations are
        handed over.
    """

    code = "PTX117"
    severity = Severity.WARNING
    isa = IsaRef("Parallel Synchronization and Communication Instructions: mbarrier.arrive", since="8.0")

    good = (
        """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 32 .reqnctapercluster 2
{
.reg .pred %p<4>;
.reg .b32 %r<8>;
.shared .align 8 .b64 ready;
.shared .align 4 .b8 message[128];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [ready], 32;
fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
shl.b32 %r3, %r1, 2;
mov.u32 %r4, message;
add.u32 %r4, %r4, %r3;
xor.b32 %r5, %r2, 1;
mapa.shared::cluster.u32 %r4, %r4, %r5;
mov.u32 %r6, ready;
mapa.shared::cluster.u32 %r6, %r6, %r5;
st.shared::cluster.u32 [%r4], %r1;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [ready], 0;
@!%p2 bra WAIT;
mov.u32 %r4, message;
add.u32 %r4, %r4, %r3;
ld.shared.u32 %r7, [%r4];
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
}
""",
    )
    bad = (
        """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 32 .reqnctapercluster 2
{
.reg .pred %p<4>;
.reg .b32 %r<8>;
.shared .align 8 .b64 ready;
.shared .align 4 .b8 message[128];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [ready], 32;
fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
shl.b32 %r3, %r1, 2;
mov.u32 %r4, message;
add.u32 %r4, %r4, %r3;
xor.b32 %r5, %r2, 1;
mapa.shared::cluster.u32 %r4, %r4, %r5;
mov.u32 %r6, ready;
mapa.shared::cluster.u32 %r6, %r6, %r5;
st.shared::cluster.u32 [%r4], %r1;
mbarrier.arrive.shared::cluster.b64 _, [%r6];  // expect: remote-arrive-scope
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [ready], 0;
@!%p2 bra WAIT;
mov.u32 %r4, message;
add.u32 %r4, %r4, %r3;
ld.shared.u32 %r7, [%r4];
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
}
""",
        """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 32 .reqnctapercluster 2
{
.reg .pred %p<4>;
.reg .b32 %r<10>;
.shared .align 8 .b64 ready;
.shared .align 4 .b8 message[512];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [ready], 32;
fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
shl.b32 %r3, %r1, 2;
mov.u32 %r4, message;
add.u32 %r4, %r4, %r3;
xor.b32 %r5, %r2, 1;
mapa.shared::cluster.u32 %r8, %r4, %r5;
mov.u32 %r6, ready;
mapa.shared::cluster.u32 %r6, %r6, %r5;
mov.u32 %r9, 0;
LOOP:
st.shared.u32 [%r4], %r1;
mbarrier.arrive.shared::cluster.b64 _, [%r6];  // expect: remote-arrive-scope
and.b32 %r7, %r9, 1;
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [ready], %r7;
@!%p2 bra WAIT;
ld.shared::cluster.u32 %r7, [%r8];
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
add.u32 %r9, %r9, 1;
setp.lt.u32 %p3, %r9, 4;
@%p3 bra LOOP;
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the arrives that hand something over, as the run shows whom they reach."""
        for point in narrow_arrivals(facts.execution):
            instruction = facts.execution.body[point]
            yield Finding(
                instruction.span,
                "this arrive at an mbarrier of another CTA has the scope of its own CTA, so that one need not see what "
                "was done before it",
                "arrive with .release.cluster and wait with .acquire.cluster",
            )
