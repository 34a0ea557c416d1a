"""More registers asked for than there are."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.analyses.registers import WARPS_OF_GROUP, Claim, Claims, at_entry
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class SetmaxnregBudget(Rule):
    """The warpgroups together ask for more registers than the CTA has, or `inc` and `dec` go the wrong way.

    Why: `setmaxnreg.inc` blocks until the CTA's pool has what it asks for. The pool is what the CTA got at its entry:
        registers of a thread times its threads. `inc` to fewer, and `dec` to more than a warp has, is undefined.
    Fix: choose counts whose sum over the warpgroups is at most warpgroups times registers at entry.
    Not reported: kernels whose register count at entry the PTX does not say; registers of warps that have exited.
    """

    code = "PTX801"
    severity = Severity.ERROR
    isa = IsaRef("Miscellaneous Instructions: setmaxnreg", since="8.0")

    good = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .reqntid 384 .minnctapersm 1
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
setmaxnreg.inc.sync.aligned.u32 232;
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
.visible .entry kernel() .reqntid 384 .minnctapersm 1
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
setmaxnreg.inc.sync.aligned.u32 240;  // expect: setmaxnreg-budget
DONE:
bar.sync 0;
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Follow the pool through the run."""
        claims = Claims.of(facts.execution)
        entry = at_entry(facts.function, claims.warps * 32)
        if entry is None or not all(claims.are_equal(warps) for _, warps in claims.warpgroups()):
            return
        wrong = _wrong_way(claims, entry)
        if wrong is not None:
            claim, held = wrong
            word = "inc to fewer" if claim.is_raise else "dec to more"
            yield Finding(
                claims.span(claim),
                f"setmaxnreg.{word} registers than the warp has: {claim.registers}, and it has {held}",
                "use inc to get more and dec to give back",
            )
            return
        excess = _excess(claims, entry)
        if excess is not None:
            claim, total = excess
            yield Finding(
                claims.span(claim),
                f"the warpgroups together ask for {total // WARPS_OF_GROUP} registers per thread, and have "
                f"{entry * claims.warps // WARPS_OF_GROUP} ({claims.warps // WARPS_OF_GROUP} x {entry} at entry): this "
                "setmaxnreg waits for registers that do not come free",
                "lower the counts so that their sum fits",
            )


def _wrong_way(claims: Claims, entry: int) -> tuple[Claim, int] | None:
    """The first claim that goes the wrong way, with the registers that the warp had."""
    held: dict[int, int] = {}
    for claim in claims.made:
        before = held.get(claim.warp, entry)
        if claim.registers < before if claim.is_raise else claim.registers > before:
            return claim, before
        held[claim.warp] = claim.registers
    return None


def _excess(claims: Claims, entry: int) -> tuple[Claim, int] | None:
    """The first claim with which the warps that have not exited hold more than the pool, whatever is given back."""
    for claim in claims.made:
        if claim.is_raise:
            alive = (warp for warp in range(claims.warps) if claims.ends.get(warp, claim.order) >= claim.order)
            total = sum(_held(claims, warp, claim, entry) for warp in alive)
            if total > entry * claims.warps:
                return claim, total
    return None


def _held(claims: Claims, warp: int, now: Claim, entry: int) -> int:
    """What a warp holds at a claim: less if the next thing that it does with its registers is to give some back."""
    made = claims.of_warp(warp)
    held = [claim.registers for claim in made if claim.order <= now.order]
    later = next((claim for claim in made if claim.order > now.order), None)
    if later is not None and not later.is_raise:
        return later.registers
    return held[-1] if held else entry
