"""Asynchronous copies and reductions, their groups, tensor maps, and the fences of the memory model's proxies."""

from __future__ import annotations

from ptxlint.isa.row import Access, Mode, Proxy, Row, Tracking

_MOVEMENT = "Data Movement and Conversion Instructions: "
_PARALLEL = "Parallel Synchronization and Communication Instructions: "
_FENCE = _PARALLEL + "membar/fence"
_MBARRIER = Access("mbarrier", Mode.OBJECT, bytes=8)
_POLICY = "policy?L2::cache_hint"
_MULTICAST = "mask?multicast::cluster"
_MULTIMEM = (
    _MOVEMENT + "multimem.cp.async.bulk",
    _MOVEMENT + "multimem.cp.reduce.async.bulk",
)


def _tensor_map(role: str) -> Access:
    return Access(role, Mode.READ, Proxy.TENSORMAP, space="generic", bytes=128)


def _tensor(role: str, mode: Mode) -> Access:
    return Access(role, mode, Proxy.ASYNC, space="global", is_mapped=True)


_CP_ASYNC: tuple[Row, ...] = (
    Row(
        "cp.async",
        f"destination:address source:address size ignore?:pred source_size?:integer {_POLICY}",
        _MOVEMENT + "cp.async",
        (7, 0),
        80,
        accesses=(
            Access("destination", Mode.WRITE, size="size"),
            Access("source", Mode.READ, size="size"),
        ),
        opens=Tracking.CP_ASYNC,
        semantics="weak",
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.commit_group",
        "",
        _MOVEMENT + "cp.async.commit_group",
        (7, 0),
        80,
        commits=Tracking.CP_ASYNC,
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.wait_group",
        "count",
        _MOVEMENT + "cp.async.wait_group, cp.async.wait_all",
        (7, 0),
        80,
        waits=Tracking.CP_ASYNC,
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.wait_all",
        "",
        _MOVEMENT + "cp.async.wait_group, cp.async.wait_all",
        (7, 0),
        80,
        commits=Tracking.CP_ASYNC,
        waits=Tracking.CP_ASYNC,
        is_asynchronous_machinery=True,
    ),
)

_BULK: tuple[Row, ...] = (
    Row(
        "cp.async.bulk",
        f"destination:address source:address size mbarrier:address {_MULTICAST} {_POLICY}",
        _MOVEMENT + "cp.async.bulk",
        (8, 0),
        90,
        requires=("mbarrier::complete_tx::bytes",),
        accesses=(
            Access("destination", Mode.WRITE, Proxy.ASYNC, size="size"),
            Access("source", Mode.READ, Proxy.ASYNC, size="size"),
            _MBARRIER,
        ),
        opens=Tracking.MBARRIER,
        semantics="weak",
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.bulk",
        f"destination:address source:address size {_POLICY} mask?cp_mask",
        _MOVEMENT + "cp.async.bulk",
        (8, 0),
        90,
        requires=("bulk_group",),
        accesses=(
            Access("destination", Mode.WRITE, Proxy.ASYNC, size="size"),
            Access("source", Mode.READ, Proxy.ASYNC, size="size"),
        ),
        opens=Tracking.BULK,
        semantics="weak",
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.bulk.prefetch",
        f"source:address size {_POLICY}",
        _MOVEMENT + "cp.async.bulk.prefetch",
        (8, 0),
        90,
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.reduce.async.bulk",
        "destination:address source:address size mbarrier:address",
        _MOVEMENT + "cp.reduce.async.bulk",
        (8, 0),
        90,
        requires=("mbarrier::complete_tx::bytes",),
        accesses=(
            Access("destination", Mode.UPDATE, Proxy.ASYNC, size="size"),
            Access("source", Mode.READ, Proxy.ASYNC, size="size"),
            _MBARRIER,
        ),
        opens=Tracking.MBARRIER,
        semantics="relaxed",
        scope="gpu",
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.reduce.async.bulk",
        f"destination:address source:address size {_POLICY}",
        _MOVEMENT + "cp.reduce.async.bulk",
        (8, 0),
        90,
        requires=("bulk_group",),
        accesses=(
            Access("destination", Mode.UPDATE, Proxy.ASYNC, size="size"),
            Access("source", Mode.READ, Proxy.ASYNC, size="size"),
        ),
        opens=Tracking.BULK,
        semantics="relaxed",
        scope="gpu",
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.bulk.commit_group",
        "",
        _MOVEMENT + "cp.async.bulk.commit_group",
        (8, 0),
        90,
        commits=Tracking.BULK,
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.bulk.wait_group",
        "count",
        _MOVEMENT + "cp.async.bulk.wait_group",
        (8, 0),
        90,
        waits=Tracking.BULK,
        is_asynchronous_machinery=True,
    ),
    Row(
        "multimem.cp.async.bulk",
        f"destination:address source:address size {_POLICY} mask?cp_mask",
        _MULTIMEM[0],
        (9, 1),
        90,
        accesses=(
            Access("destination", Mode.WRITE, Proxy.ASYNC, size="size"),
            Access("source", Mode.READ, Proxy.ASYNC, size="size"),
        ),
        opens=Tracking.BULK,
        is_asynchronous_machinery=True,
    ),
    Row(
        "multimem.cp.reduce.async.bulk",
        f"destination:address source:address size {_POLICY}",
        _MULTIMEM[1],
        (9, 1),
        90,
        accesses=(
            Access("destination", Mode.UPDATE, Proxy.ASYNC, size="size"),
            Access("source", Mode.READ, Proxy.ASYNC, size="size"),
        ),
        opens=Tracking.BULK,
        is_asynchronous_machinery=True,
    ),
)

_TENSOR: tuple[Row, ...] = (
    Row(
        "cp.async.bulk.tensor",
        f"destination:address source:address mbarrier:address offsets?:vector {_MULTICAST} {_POLICY}",
        _MOVEMENT + "cp.async.bulk.tensor",
        (8, 0),
        90,
        requires=("mbarrier::complete_tx::bytes",),
        accesses=(
            Access("destination", Mode.WRITE, Proxy.ASYNC),
            _tensor("source", Mode.READ),
            _tensor_map("source"),
            _MBARRIER,
        ),
        opens=Tracking.MBARRIER,
        semantics="weak",
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.bulk.tensor",
        f"destination:address source:address offsets?:vector {_POLICY}",
        _MOVEMENT + "cp.async.bulk.tensor",
        (8, 0),
        90,
        requires=("bulk_group",),
        accesses=(
            _tensor("destination", Mode.WRITE),
            _tensor_map("destination"),
            Access("source", Mode.READ, Proxy.ASYNC),
        ),
        opens=Tracking.BULK,
        semantics="weak",
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.reduce.async.bulk.tensor",
        f"destination:address source:address offsets?:vector {_POLICY}",
        _MOVEMENT + "cp.reduce.async.bulk.tensor",
        (8, 0),
        90,
        accesses=(
            _tensor("destination", Mode.UPDATE),
            _tensor_map("destination"),
            Access("source", Mode.READ, Proxy.ASYNC),
        ),
        opens=Tracking.BULK,
        semantics="relaxed",
        scope="gpu",
        is_asynchronous_machinery=True,
    ),
    Row(
        "cp.async.bulk.prefetch.tensor",
        f"source:address offsets?:vector {_POLICY}",
        _MOVEMENT + "cp.async.bulk.prefetch.tensor",
        (8, 0),
        90,
        accesses=(_tensor_map("source"),),
        is_asynchronous_machinery=True,
    ),
    Row(
        "tensormap.replace",
        "address:address ordinal? value",
        _MOVEMENT + "tensormap.replace",
        (8, 3),
        90,
        accesses=(Access("address", Mode.UPDATE, bytes=128),),
        semantics="weak",
        is_arch_specific=True,
        is_asynchronous_machinery=True,
    ),
    Row("tensormap.query", "=destination a", _MOVEMENT + "tensormap.query", (9, 4), 90, is_arch_specific=True),
    Row(
        "tensormap.cp_fenceproxy",
        "destination:address source:address size",
        _PARALLEL + "tensormap.cp_fenceproxy",
        (8, 3),
        90,
        accesses=(
            Access("destination", Mode.WRITE, size="size"),
            Access("source", Mode.READ, size="size"),
        ),
        is_collective=True,
        is_asynchronous_machinery=True,
    ),
)

_STORES: tuple[Row, ...] = (
    Row(
        "st.async",
        "address:address value mbarrier:address",
        _MOVEMENT + "st.async",
        (8, 1),
        90,
        accesses=(Access("address", Mode.WRITE), _MBARRIER),
        opens=Tracking.MBARRIER,
        semantics="weak",
        is_asynchronous_machinery=True,
    ),
    Row(
        "st.async",
        "address:address value",
        _MOVEMENT + "st.async",
        (8, 7),
        100,
        requires=("release|mmio",),
        accesses=(Access("address", Mode.WRITE),),
        opens=Tracking.GRID,
        is_asynchronous_machinery=True,
    ),
    Row(
        "red.async",
        "address:address value mbarrier:address",
        _PARALLEL + "red.async",
        (8, 1),
        90,
        accesses=(Access("address", Mode.UPDATE), _MBARRIER),
        opens=Tracking.MBARRIER,
        semantics="relaxed",
        scope="cluster",
        is_asynchronous_machinery=True,
    ),
    Row(
        "red.async",
        "address:address value",
        _PARALLEL + "red.async",
        (8, 7),
        100,
        requires=("release|mmio",),
        accesses=(Access("address", Mode.UPDATE),),
        opens=Tracking.GRID,
        is_asynchronous_machinery=True,
    ),
    Row(
        "multimem.st.async",
        "address:address value",
        _MOVEMENT + "multimem.st.async",
        (9, 3),
        100,
        accesses=(Access("address", Mode.WRITE),),
        opens=Tracking.GRID,
        is_asynchronous_machinery=True,
    ),
    Row(
        "multimem.red.async",
        "address:address value",
        _PARALLEL + "multimem.red.async",
        (9, 3),
        100,
        accesses=(Access("address", Mode.UPDATE),),
        opens=Tracking.GRID,
        is_asynchronous_machinery=True,
    ),
)

_FENCES: tuple[Row, ...] = (
    Row("fence", "", _FENCE, (6, 0), 70, semantics="acq_rel"),
    Row("fence.mbarrier_init", "", _FENCE, (8, 0), 90, is_asynchronous_machinery=True),
    Row("fence.proxy", "", _FENCE, (7, 5), 70, is_asynchronous_machinery=True),
    Row(
        "fence.proxy",
        "",
        _FENCE,
        (8, 0),
        90,
        requires=("async",),
        is_asynchronous_machinery=True,
    ),
    Row(
        "fence.proxy",
        "",
        _FENCE,
        (8, 6),
        90,
        requires=("async::generic",),
        is_asynchronous_machinery=True,
    ),
    Row(
        "fence.proxy",
        "",
        _FENCE,
        (8, 3),
        90,
        requires=("tensormap::generic", "release"),
        is_asynchronous_machinery=True,
    ),
    Row(
        "fence.proxy",
        "address:address size",
        _FENCE,
        (8, 3),
        90,
        requires=("tensormap::generic", "acquire"),
        is_asynchronous_machinery=True,
    ),
    Row("membar", "", _FENCE, (1, 4), 0, semantics="sc"),
    Row("membar.proxy", "", _FENCE, (7, 5), 70, is_asynchronous_machinery=True),
)

ROWS: tuple[Row, ...] = (*_CP_ASYNC, *_BULK, *_TENSOR, *_STORES, *_FENCES)
