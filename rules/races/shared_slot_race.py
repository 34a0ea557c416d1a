"""Accesses to shared memory that nothing orders."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts, Mistake
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class SharedSlotRace(Rule):
    """Two accesses to the same bytes of shared memory, at least one a write, are not ordered by any barrier.

    Why: threads of different warps, and copies of the hardware, run in any order. Without a release by the one and an
        acquire by the other after it, the reader may find old or half-written bytes, or the writer may destroy what
        is still being read.
    Fix: a barrier between the two, or an mbarrier that the first arrives at and the second waits for; where a buffer
        is used again, also from the last reader back to the next writer.
    Not reported: conflicts that only some of the tried schedules show, atomic accesses among each other, and writes
        of all warps by one instruction.
    """

    code = "PTX901"
    severity = Severity.ERROR
    isa = IsaRef("Memory Consistency Model: Data-Races", since="6.0")

    good = (
        """
.shared .align 16 .b8 tile[4096];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
st.shared.u32 [%r3], %r1;
bar.sync 0;
xor.b32 %r4, %r2, 256;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
ld.shared.u32 %r6, [%r5];
bar.sync 0;
add.u32 %r6, %r6, %r1;
st.shared.u32 [%r3], %r6;
bar.sync 0;
""",
    )
    bad = (
        """
.shared .align 16 .b8 tile[4096];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
st.shared.u32 [%r3], %r1;
bar.sync 0;
xor.b32 %r4, %r2, 256;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
ld.shared.u32 %r6, [%r5];
add.u32 %r6, %r6, %r1;
st.shared.u32 [%r3], %r6;  // expect: shared-slot-race
bar.sync 0;
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the access that comes second, and the arrive of a lane that comes too early for its warp."""
        kinds = (Mistake.SHARED_RACE,) if facts.hazards else (Mistake.SHARED_RACE, Mistake.GROUP)
        for clash in facts.clashes(*kinds):
            premature = clash.premature
            if premature is None:
                yield clash.finding(f"{clash.early}, and nothing orders that after {clash.unfinished}", clash.remedy)
            else:
                yield clash.finding(
                    f"{clash.early}, and nothing orders that after {clash.unfinished}; it is handed over before",
                    "let the arrival come when the write is over",
                    at=premature.point,
                )
        for clash in facts.clashes(Mistake.SLICES):
            if clash.reuse is not None and clash.is_shared:
                yield clash.finding(
                    f"{clash.early} while {clash.unfinished} may not be over: the slots are {clash.reuse.extent} bytes "
                    f"long and lie {clash.reuse.stride} apart",
                    f"let the slots lie {clash.reuse.extent} bytes apart",
                )
        for clash in facts.clashes(Mistake.LANES):
            release = clash.release
            yield clash.finding(
                f"{clash.early} after {clash.unfinished}; one lane releases for the warp, and the others may not "
                "have come that far",
                "bring the warp together with bar.warp.sync (__syncwarp) before that lane arrives",
                at=release.point if release is not None else None,
            )
