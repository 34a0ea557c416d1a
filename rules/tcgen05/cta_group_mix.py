"""Both CTA groups in one kernel."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts
from ptxlint.ir import Instruction
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity


class CtaGroupMix(Rule):
    """A kernel uses tcgen05 instructions of both `.cta_group::1` and `.cta_group::2`.

    Why: all tcgen05 instructions of a kernel must have the same CTA group. ptxas refuses a mix within one function,
        not one between a kernel and a function that it calls.
    Fix: use one group throughout.
    Not reported: the `.cta_group` of tensor copies, which is another matter.
    """

    code = "PTX611"
    severity = Severity.ERROR
    isa = IsaRef("TensorCore 5th Generation Instructions: Issue Granularity", since="8.6")

    good = (
        """
.shared .align 4 .b32 slot;
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
READY:
bar.sync 0;
ld.shared.u32 %r3, [slot];
bar.sync 0;
@%p1 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
DONE:
""",
    )
    bad = (
        """
.version 8.6
.target sm_100a
.address_size 64
.func commit(.param .b32 barrier)
{
.reg .b32 %r<2>;
ld.param.b32 %r1, [barrier];
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r1];  // expect: cta-group-mix
ret;
}
.visible .entry kernel() .reqntid 32
{
.reg .b32 %r<3>;
.shared .align 8 .b64 done;
.shared .align 4 .b32 slot;
mov.u32 %r1, done;
mbarrier.init.shared.b64 [%r1], 1;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
ld.shared.b32 %r2, [slot];
{
.param .b32 argument;
st.param.b32 [argument], %r1;
call commit, (argument);
}
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;
ret;
}
""",
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the first instruction of another group."""
        body = facts.execution.body
        groups = [(index, group) for index, i in enumerate(body) if (group := _group(i)) is not None]
        first = next(iter(groups), None)
        other = next((pair for pair in groups if first is not None and pair[1] != first[1]), None)
        if first is not None and other is not None:
            yield Finding(
                body[other[0]].span,
                f"tcgen05 instruction of {other[1]} in a kernel that uses {first[1]}",
                "use one CTA group throughout the kernel",
                (Related(body[first[0]].span, f"{first[1]} here"),),
            )


def _group(instruction: Instruction) -> str | None:
    if instruction.opcode != "tcgen05":
        return None
    return next((modifier for modifier in instruction.modifiers if modifier.startswith("cta_group")), None)
