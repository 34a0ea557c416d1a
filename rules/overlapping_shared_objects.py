"""Objects carved out of shared memory that run into each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxlint import isa
from ptxlint.facts import Facts, Mistake
from ptxlint.isa import Mode, Proxy, Tracking
from ptxlint.rule import Finding, IsaRef, Related, Rule, Severity

BARRIER_BYTES = 8


class OverlappingSharedObjects(Rule):
    """A bulk copy into shared memory covers bytes of another object: an mbarrier, or a copy issued with it.

    Why: two copies in flight at once leave either's bytes in the common part; a barrier that is overwritten no longer
        counts.
    Fix: lay the objects out one behind the other, each with its whole size.
    Not reported: copies at addresses or of sizes that are not constant, or with a wait, barrier or branch between them;
        tensor copies over one another.
    """

    code = "PTX204"
    severity = Severity.ERROR
    isa = IsaRef("Data Movement and Conversion Instructions: cp.async.bulk", since="8.0")

    good = (
        """
.shared .align 128 .b8 memory[1040];
mbarrier.init.shared::cta.b64 [memory+1024], 1;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [memory], [%rd1], 512, [memory+1024];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [memory+512], [%rd1], 512, [memory+1024];
""",
    )
    bad = (
        """
.shared .align 128 .b8 memory[1040];
mbarrier.init.shared::cta.b64 [memory+1024], 1;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [memory], [%rd1], 512, [memory+1024];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [memory+496], [%rd1], 512, [memory+1024];  // expect: overlapping-shared-objects
""",  # noqa: E501
        """
.shared .align 128 .b8 memory[1024];
mbarrier.init.shared::cta.b64 [memory+1016], 1;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [memory], [%rd1], 1024, [memory+1016];  // expect: overlapping-shared-objects
""",  # noqa: E501
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare each copy with the barriers, and with the copies just before it."""
        barriers = [] if _invalidates(facts) else list(_barriers(facts))
        recent: list[_Extent] = []
        found: set[int] = set()
        for index, instruction in enumerate(facts.cfg.body):
            if _separates(facts, index):
                recent.clear()
            copy = _copied(facts, index)
            if copy is None:
                continue
            other = next((extent for extent in (*barriers, *recent) if copy.meets(extent)), None)
            if other is not None:
                found.add(index)
                what = "the mbarrier" if other.is_barrier else "the copy"
                yield Finding(
                    facts.span(index),
                    f"the {copy.size} bytes copied to {facts.object_name(index, 'destination')} overlap {what} at "
                    f"{facts.object_name(other.index, 'mbarrier' if other.is_barrier else 'destination')}",
                    "give each object its own bytes",
                    (Related(facts.span(other.index), what),),
                )
            if instruction.guard is None:
                recent.append(copy)
        for clash in facts.clashes(Mistake.OVERLAID):
            if clash.second.point not in found:
                yield clash.finding(
                    f"{clash.early} over an mbarrier in use, whose bytes are free only after mbarrier.inval",
                    "run mbarrier.inval when the last wait is over, or give each object its own bytes",
                )


@dataclass(frozen=True, slots=True)
class _Extent:
    """Bytes `start` to `start + size` of a symbol, and the instruction that uses them."""

    index: int
    symbol: str
    start: int
    size: int
    is_barrier: bool = False

    def meets(self, other: _Extent) -> bool:
        """Whether the two share bytes."""
        before, after = self.start < other.start + other.size, other.start < self.start + self.size
        return self.symbol == other.symbol and before and after


def _copied(facts: Facts, index: int) -> _Extent | None:
    """What a bulk copy fills, where place and size are constant."""
    for access in isa.accesses(facts.cfg.body[index]):
        is_filled = access.role == "destination" and access.proxy is Proxy.ASYNC and access.mode is Mode.WRITE
        if is_filled and isa.space(facts.cfg.body[index], access).startswith("shared"):
            place, size = facts.place(index, "destination"), facts.number(index, "size")
            if place is not None and size is not None:
                return _Extent(index, *place, size)
    return None


def _barriers(facts: Facts) -> Iterator[_Extent]:
    """The mbarriers that are initialized at constant places."""
    for index, instruction in enumerate(facts.cfg.body):
        row = isa.row(instruction)
        if row is not None and row.name == "mbarrier.init" and (place := facts.place(index, "mbarrier")) is not None:
            yield _Extent(index, *place, BARRIER_BYTES, is_barrier=True)


def _invalidates(facts: Facts) -> bool:
    rows = map(isa.row, facts.cfg.body)
    return any(row is not None and row.name == "mbarrier.inval" for row in rows)


def _separates(facts: Facts, index: int) -> bool:
    """Whether copies before an instruction may have landed when it is done, or may not come before it at all."""
    row = isa.row(facts.cfg.body[index])
    is_first = facts.cfg.blocks[facts.cfg.block_of[index]].start == index
    waits = row is not None and row.waits in (Tracking.MBARRIER, Tracking.BULK)
    is_sync = isa.semantics(facts.cfg.body[index]) in ("acq_rel", "acquire", "sc")
    return is_first or waits or is_sync
