"""Warps of one warpgroup that ask for different register counts."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.analyses.registers import Claims
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class SetmaxnregDivergent(Rule):
    """The warps of a warpgroup do not all execute the same `setmaxnreg`.

    Why: the instruction acts on the warpgroup. The ISA leaves undefined what happens when its four warps ask for
        different counts, or when some do not ask at all.
    Fix: move `setmaxnreg` to where all four warps of the warpgroup pass, before the roles of single warps part.
    Not reported: warpgroups of fewer than four warps. Where all four warps lower their counts, each to its own, it is a
        warning: an H200 runs that as it is meant, and flash-attention's backward kernels do it.
    """

    code = "PTX802"
    severity = Severity.ERROR
    isa = IsaRef("Miscellaneous Instructions: setmaxnreg", since="8.0")

    good = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 256 .minnctapersm 1
{
.reg .pred %p<2>;
.reg .b32 %r<2>;
.shared .align 4 .b32 flag;
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 128;
bar.sync 0;
@%p1 bra HIGH;
setmaxnreg.dec.sync.aligned.u32 40;
bra DONE;
HIGH:
setmaxnreg.dec.sync.aligned.u32 200;
DONE:
bar.sync 0;
ret;
}
""",
    )
    bad = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 256 .minnctapersm 1
{
.reg .pred %p<2>;
.reg .b32 %r<2>;
.shared .align 4 .b32 flag;
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 32;
bar.sync 0;
@%p1 bra DONE;
setmaxnreg.dec.sync.aligned.u32 40;  // expect: setmaxnreg-divergent
DONE:
bar.sync 0;
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare what the warps of each warpgroup asked for."""
        claims = Claims.of(facts.execution)
        for group, warps in claims.warpgroups():
            asked = [claims.of_warp(warp) for warp in warps]
            if claims.are_equal(warps):
                continue
            counts = [tuple(claim.registers for claim in made) for made in asked]
            first = next(claim for made in asked for claim in made)
            others = [claim for made in asked for claim in made if claim.point != first.point]
            described = ", ".join("nothing" if not count else str(count[0]) for count in counts)
            yield Finding(
                claims.span(first),
                f"the warps of warpgroup {group} ask for different register counts: {described}",
                "let all four warps execute the same setmaxnreg",
                tuple(Related(claims.span(claim), f"{claim.registers} here") for claim in others[:1]),
                severity=Severity.WARNING if all(made and not made[0].is_raise for made in asked) else None,
            )
