"""setmaxnreg without a register count to begin with."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.facts import Facts
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class SetmaxnregIgnored(Rule):
    """A kernel uses `setmaxnreg`, and nothing says how many registers a thread has at its entry.

    Why: the ISA asks for a bound at compile time, else the instruction may have no effect. Without `.maxnreg`, or
        `.minnctapersm` with `.maxntid` or `.reqntid`, ptxas 13.0 drops it with a note (C7508) where the code needs
        fewer registers than the block leaves to each thread; then warps that were to get more spill. It kept it in 5
        of 16 such kernels of flashinfer, whose code takes them all.
    Fix: `__launch_bounds__(threads, 1)`, which writes `.maxntid` and `.minnctapersm`, or `__maxnreg__`.
    Not reported: bounds given to ptxas on its command line (`-maxrregcount`), which the PTX does not show.
    """

    code = "PTX803"
    severity = Severity.WARNING
    isa = IsaRef("Miscellaneous Instructions: setmaxnreg", since="8.0")

    good = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .maxntid 128 .minnctapersm 1
{
setmaxnreg.dec.sync.aligned.u32 40;
ret;
}
""",
    )
    bad = (
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel() .maxntid 128
{
setmaxnreg.dec.sync.aligned.u32 40;  // expect: setmaxnreg-ignored
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the first setmaxnreg of a kernel without a bound."""
        function = facts.function
        is_counted = function.directive("minnctapersm") and (
            function.directive("maxntid") or function.directive("reqntid")
        )
        if is_counted or function.directive("maxnreg"):
            return
        for index, instruction in enumerate(facts.cfg.body):
            row = isa.row(instruction)
            if row is not None and row.name == "setmaxnreg":
                yield Finding(
                    facts.span(index),
                    "nothing says how many registers a thread has at entry, so setmaxnreg may have no effect",
                    "give the kernel .minnctapersm with .maxntid or .reqntid (__launch_bounds__(threads, 1))",
                )
                return
