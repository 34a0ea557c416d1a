"""CTA, warp and cluster barriers, warp-wide exchange, dependent launch, launch control and register budgets."""

from __future__ import annotations

from ptxlint.isa.row import Access, Mode, Proxy, Row, Tracking

_PARALLEL = "Parallel Synchronization and Communication Instructions: "
_MOVEMENT = "Data Movement and Conversion Instructions: "
_MISCELLANEOUS = "Miscellaneous Instructions: "
_BAR = _PARALLEL + "bar, barrier"
_CLUSTER = _PARALLEL + "barrier.cluster"
_CANCEL = _PARALLEL + "clusterlaunchcontrol.try_cancel"
_QUERY = _PARALLEL + "clusterlaunchcontrol.query_cancel"


def _bar(opcode: str, since: tuple[int, int], sm: int, *, is_aligned: bool = False) -> tuple[Row, ...]:
    """The rows of `bar` or `barrier`: `.sync`, `.arrive`, `.red`, each also after `.cta`."""
    sync = Row(
        opcode,
        "barrier count?",
        _BAR,
        since,
        sm,
        requires=("sync",),
        semantics="acq_rel",
        scope="cta",
        is_asynchronous_machinery=True,
        is_aligned=is_aligned,
    )
    arrive = Row(
        opcode,
        "barrier count",
        _BAR,
        max(since, (2, 0)),
        max(sm, 20),
        requires=("arrive",),
        semantics="release",
        scope="cta",
        is_asynchronous_machinery=True,
        is_aligned=is_aligned,
    )
    red = Row(
        opcode,
        "=result barrier count? predicate:pred",
        _BAR,
        max(since, (2, 0)),
        max(sm, 20),
        requires=("red",),
        semantics="acq_rel",
        scope="cta",
        is_asynchronous_machinery=True,
        is_aligned=is_aligned,
    )
    return sync, arrive, red


ROWS: tuple[Row, ...] = (
    *_bar("bar", (1, 0), 0, is_aligned=True),
    *_bar("barrier", (6, 0), 30),
    Row(
        "bar.warp.sync",
        "mask",
        _PARALLEL + "bar.warp.sync",
        (6, 0),
        30,
        is_collective=True,
        semantics="acq_rel",
    ),
    Row(
        "barrier.cluster.arrive",
        "",
        _CLUSTER,
        (7, 8),
        90,
        semantics="release",
        scope="cluster",
        is_asynchronous_machinery=True,
    ),
    Row(
        "barrier.cluster.wait",
        "",
        _CLUSTER,
        (7, 8),
        90,
        semantics="acquire",
        scope="cluster",
        is_asynchronous_machinery=True,
    ),
    Row("elect.sync", "=leader mask", _PARALLEL + "elect.sync", (8, 0), 90, is_collective=True),
    Row("shfl", "=destination value lane clamp", _MOVEMENT + "shfl (deprecated)", (3, 0), 30, is_collective=True),
    Row("shfl.sync", "=destination value lane clamp mask", _MOVEMENT + "shfl.sync", (6, 0), 30, is_collective=True),
    Row("vote", "=destination value", _PARALLEL + "vote (deprecated)", (1, 2), 12, is_collective=True),
    Row("vote.sync", "=destination value mask", _PARALLEL + "vote.sync", (6, 0), 30, is_collective=True),
    Row("match", "=destination value mask", _PARALLEL + "match.sync", (6, 0), 70, is_collective=True),
    Row("redux", "=destination value mask", _PARALLEL + "redux.sync", (7, 0), 80, is_collective=True),
    Row("activemask", "=destination", _PARALLEL + "activemask", (6, 2), 30),
    Row(
        "griddepcontrol.launch_dependents",
        "",
        _PARALLEL + "griddepcontrol",
        (7, 8),
        90,
        is_asynchronous_machinery=True,
    ),
    Row(
        "griddepcontrol.wait",
        "",
        _PARALLEL + "griddepcontrol",
        (7, 8),
        90,
        is_asynchronous_machinery=True,
    ),
    Row(
        "setmaxnreg",
        "registers",
        _MISCELLANEOUS + "setmaxnreg",
        (8, 0),
        90,
        is_collective=True,
        is_arch_specific=True,
        is_asynchronous_machinery=True,
    ),
    Row("nanosleep", "a", _MISCELLANEOUS + "nanosleep", (6, 3), 70),
    Row(
        "clusterlaunchcontrol.try_cancel",
        "destination:address mbarrier:address",
        _CANCEL,
        (8, 6),
        100,
        accesses=(
            Access("destination", Mode.WRITE, Proxy.ASYNC, bytes=16),
            Access("mbarrier", Mode.OBJECT, bytes=8),
        ),
        opens=Tracking.MBARRIER,
        is_asynchronous_machinery=True,
    ),
    Row(
        "clusterlaunchcontrol.query_cancel",
        "=destination response",
        _QUERY,
        (8, 6),
        100,
        is_asynchronous_machinery=True,
    ),
)
