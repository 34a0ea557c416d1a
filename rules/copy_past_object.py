"""Copies that are longer than the object they fill or read."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint import isa
from ptxlint.facts import Facts
from ptxlint.isa import Mode
from ptxlint.rule import Finding, IsaRef, Rule, Severity


class CopyPastObject(Rule):
    """An asynchronous copy reaches past the shared object that it is addressed to.

    Why: it overwrites, or stores, whatever the compiler placed behind the object.
    Fix: make the object larger or the copy shorter.
    Not reported: dynamic shared memory (unless its size is given), tensor copies, and addresses or sizes that are not
        constant.
    """

    code = "PTX205"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk", since="8.0")

    good = (
        """
.shared .align 128 .b8 tile[512];
.shared .align 8 .b8 full[8];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [full];
""",
    )
    bad = (
        """
.shared .align 128 .b8 tile[512];
.shared .align 8 .b8 full[8];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 528, [full];  // expect: copy-past-object
""",  # noqa: E501
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare each end of each copy with its object."""
        for index, instruction in enumerate(facts.cfg.body):
            for access in isa.accesses(instruction):
                size = facts.number(index, "size") if access.size == "size" and access.mode is not Mode.OBJECT else None
                place = None if size is None else facts.place(index, access.role)
                if size is None or place is None or place[0] not in facts.variables:
                    continue
                room = _room(facts, place[0])
                if room is not None and (place[1] < 0 or place[1] + size > room):
                    yield Finding(
                        facts.span(index),
                        f"the copy's {access.role} is {size} bytes at {facts.object_name(index, access.role)}, "
                        f"which has {room} bytes",
                        "copy no more than the object holds",
                    )


def _room(facts: Facts, symbol: str) -> int | None:
    """The extent of a shared variable in bytes."""
    variable = facts.variables[symbol]
    if not variable.space.startswith("shared"):
        return None
    if variable.linkage == "extern" or not variable.size:
        return facts.launch.dynamic_shared
    return variable.size
