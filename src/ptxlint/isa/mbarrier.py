"""mbarrier objects: initialize, arrive, count transactions, wait.

Source of every row: PTX ISA, *Parallel Synchronization and Communication Instructions: mbarrier* and its subsections.
"""

from __future__ import annotations

from ptxlint.isa.row import Access, Mode, Row, Tracking

_PARALLEL = "Parallel Synchronization and Communication Instructions: "
_OBJECT = (Access("mbarrier", Mode.OBJECT, bytes=8),)


def _row(
    name: str,
    operands: str,
    since: tuple[int, int],
    sm: int = 80,
    *,
    requires: tuple[str, ...] = (),
    section: str | None = None,
    semantics: str = "",
    scope: str | None = None,
    commits: Tracking | None = None,
    waits: Tracking | None = None,
) -> Row:
    return Row(
        name,
        operands,
        _PARALLEL + (section or name),
        since,
        sm,
        requires=requires,
        accesses=_OBJECT,
        semantics=semantics,
        scope=scope,
        commits=commits,
        waits=waits,
        is_asynchronous_machinery=True,
    )


_MASK = "mask?multicast::cluster::32b"

ROWS: tuple[Row, ...] = (
    _row("mbarrier.init", "mbarrier count", (7, 0)),
    _row("mbarrier.inval", "mbarrier", (7, 0)),
    _row("mbarrier.check_layout", "=destination mbarrier", (9, 3), 90),
    _row("mbarrier.expect_tx", f"mbarrier tx {_MASK}", (8, 0), 90, semantics="relaxed", scope="cta"),
    _row("mbarrier.complete_tx", f"mbarrier tx {_MASK}", (8, 0), 90, semantics="relaxed", scope="cta"),
    _row("mbarrier.arrive", f"=token mbarrier count? {_MASK}", (7, 0), semantics="release", scope="cta"),
    _row(
        "mbarrier.arrive",
        "=token mbarrier count",
        (7, 0),
        requires=("noComplete",),
        semantics="release",
        scope="cta",
    ),
    _row(
        "mbarrier.arrive",
        f"=token mbarrier tx {_MASK}",
        (8, 0),
        90,
        requires=("expect_tx",),
        semantics="release",
        scope="cta",
    ),
    _row(
        "mbarrier.arrive_drop",
        f"=token mbarrier count? {_MASK}",
        (7, 0),
        semantics="release",
        scope="cta",
    ),
    _row(
        "mbarrier.arrive_drop",
        "=token mbarrier count",
        (7, 0),
        requires=("noComplete",),
        semantics="release",
        scope="cta",
    ),
    _row(
        "mbarrier.arrive_drop",
        f"=token mbarrier tx {_MASK}",
        (8, 0),
        90,
        requires=("expect_tx",),
        semantics="release",
        scope="cta",
    ),
    _row("cp.async.mbarrier.arrive", "mbarrier", (7, 0), commits=Tracking.CP_ASYNC),
    _row(
        "mbarrier.test_wait",
        "=done =report? mbarrier:address token",
        (7, 0),
        section="mbarrier.test_wait/mbarrier.try_wait",
        semantics="acquire",
        scope="cta",
        waits=Tracking.MBARRIER,
    ),
    _row(
        "mbarrier.test_wait",
        "=done =report? mbarrier:address parity",
        (7, 1),
        requires=("parity",),
        section="mbarrier.test_wait/mbarrier.try_wait",
        semantics="acquire",
        scope="cta",
        waits=Tracking.MBARRIER,
    ),
    _row(
        "mbarrier.try_wait",
        "=done =report? mbarrier:address token hint?",
        (7, 8),
        90,
        section="mbarrier.test_wait/mbarrier.try_wait",
        semantics="acquire",
        scope="cta",
        waits=Tracking.MBARRIER,
    ),
    _row(
        "mbarrier.try_wait",
        "=done =report? mbarrier:address parity hint?",
        (7, 8),
        90,
        requires=("parity",),
        section="mbarrier.test_wait/mbarrier.try_wait",
        semantics="acquire",
        scope="cta",
        waits=Tracking.MBARRIER,
    ),
    Row(
        "mbarrier.pending_count",
        "=destination token",
        _PARALLEL + "mbarrier.pending_count",
        (7, 0),
        80,
        is_asynchronous_machinery=True,
    ),
)
