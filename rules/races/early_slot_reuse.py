"""Slots of a ring that are filled again before their readers are through."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Clash, Facts, Mistake, Return
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class EarlySlotReuse(Rule):
    """A slot of shared memory is filled again while those who read its last contents may not be through.

    Why: the writer does wait, but for something else: for the slot of another trip (a phase too early, fewer slots than
        barriers), for one of several readers, or for an arrival that readers make before they read. Most of the time
        the readers are fast enough.
    Fix: before each refill wait until every reader of this very slot has released it.
    Not reported: barriers of the CTA that come before the read (shared-slot-race); operands of wgmma released before
        their wait.
    """

    code = "PTX904"
    severity = Severity.ERROR
    isa = IsaRef("Memory Consistency Model: Data-Races", since="6.0")

    good = (
        """
.shared .align 16 .b8 tile[1024];
.shared .align 8 .b8 full[16];
.shared .align 8 .b8 empty[16];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [full+8], 1;
mbarrier.init.shared.b64 [empty], 32;
mbarrier.init.shared.b64 [empty+8], 32;
READY:
bar.sync 0;
mov.u32 %r2, 0;
TRIP:
and.b32 %r3, %r2, 1;
shr.u32 %r4, %r2, 1;
and.b32 %r4, %r4, 1;
mul.lo.u32 %r5, %r3, 8;
mov.u32 %r6, full;
add.u32 %r6, %r6, %r5;
mov.u32 %r7, empty;
add.u32 %r7, %r7, %r5;
mul.lo.u32 %r8, %r3, 512;
mov.u32 %r9, tile;
add.u32 %r9, %r9, %r8;
setp.ge.u32 %p2, %r1, 32;
@%p2 bra READER;
@%p1 bra NEXT;
xor.b32 %r10, %r4, 1;
WRITER:
mbarrier.try_wait.parity.shared.b64 %p3, [%r7], %r10;
@!%p3 bra WRITER;
mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd1], 512, [%r6];
bra NEXT;
READER:
mbarrier.try_wait.parity.shared.b64 %p3, [%r6], %r4;
@!%p3 bra READER;
ld.shared.u32 %r11, [%r9];
mbarrier.arrive.shared.b64 _, [%r7];
NEXT:
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 8;
@%p4 bra TRIP;
""",
    )
    bad = (
        """
.shared .align 16 .b8 tile[1024];
.shared .align 8 .b8 full[16];
.shared .align 8 .b8 empty[16];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [full+8], 1;
mbarrier.init.shared.b64 [empty], 32;
mbarrier.init.shared.b64 [empty+8], 32;
READY:
bar.sync 0;
mov.u32 %r2, 0;
TRIP:
and.b32 %r3, %r2, 1;
shr.u32 %r4, %r2, 1;
and.b32 %r4, %r4, 1;
mul.lo.u32 %r5, %r3, 8;
mov.u32 %r6, full;
add.u32 %r6, %r6, %r5;
mov.u32 %r7, empty;
add.u32 %r7, %r7, %r5;
mov.u32 %r9, tile;
setp.ge.u32 %p2, %r1, 32;
@%p2 bra READER;
@%p1 bra NEXT;
xor.b32 %r10, %r4, 1;
WRITER:
mbarrier.try_wait.parity.shared.b64 %p3, [%r7], %r10;
@!%p3 bra WRITER;
mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd1], 512, [%r6];  // expect: early-slot-reuse
bra NEXT;
READER:
mbarrier.try_wait.parity.shared.b64 %p3, [%r6], %r4;
@!%p3 bra READER;
ld.shared.u32 %r11, [%r9];
mbarrier.arrive.shared.b64 _, [%r7];
NEXT:
add.u32 %r2, %r2, 1;
setp.lt.u32 %p4, %r2, 8;
@%p4 bra TRIP;
""",  # noqa: E501
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the write that comes too early, with what the writer waits for instead."""
        for clash in facts.clashes(Mistake.REUSED_EARLY):
            reason, fix = _explained(clash)
            unheard = clash.reuse.unheard if clash.reuse else None
            unfinished = f"the read by {unheard} (`{clash.text(clash.first)}`)" if unheard else clash.unfinished
            yield clash.finding(f"{clash.early} before {unfinished} is over: {reason}", fix, at=_premature(clash))


def _premature(clash: Clash) -> int | None:
    """The arrival that hands the slot back before it has been read, where that is the mistake."""
    reuse = clash.reuse
    return reuse.release.point if reuse and reuse.release and reuse.why is Return.BEFORE_READ else None


def _explained(clash: Clash) -> tuple[str, str]:
    """Why the slot comes back too early, and what to do."""
    reuse = clash.reuse
    why = reuse.why if reuse else Return.NOTHING
    slots, heard = (reuse.slots, reuse.heard) if reuse else (0, 0)
    ring = f"the slot comes round after {_fillings(slots)}" if slots else "the slot is filled again"
    if why is Return.BEFORE_READ:
        return "the slot is handed back before it is read", "let the arrival come when the read is over"
    if reuse is not None and why is Return.OTHER_READER:
        return (
            f"the writer waits for the read by {reuse.awaited} alone",
            "let every reader arrive after its read, at a barrier that counts all of them",
        )
    if why is Return.MORE_BARRIERS:
        return (
            f"{ring}, its barriers only after {heard}, so that the writer waits for another slot",
            f"have as many slots as barriers: {heard}",
        )
    if why is Return.OTHER_FILLING and heard > slots:
        return (
            f"{ring}, and the writer waits for the reads of {_fillings(heard)} before",
            "wait until the slot that is filled now has been read, not one before it"
            if clash.handed
            else "fill the slot behind the barrier that follows its last reads",
        )
    if why is Return.OTHER_FILLING:
        return (
            f"{ring}, and this time the writer does not wait until it has been read",
            "wait before each refill, from the first slot that comes round",
        )
    return f"{ring}, and nothing that the writer waits for says that it has been read", _returning(clash)


def _fillings(number: int) -> str:
    return f"{number} filling{'' if number == 1 else 's'}"


def _returning(clash: Clash) -> str:
    if clash.returned:
        return f"before each refill wait on {clash.returned}, at which the readers arrive after their read"
    return "let the readers arrive at a barrier of the slot after their read, and wait there before each refill"
