"""Asynchronous matrix instructions: wgmma and tcgen05.

A matrix operand `a` is a descriptor of shared memory, a vector of registers (wgmma) or an address in tensor memory
(tcgen05); the accesses of a row list both readings, `isa.accesses` keeps the one that the operand is.
"""

from __future__ import annotations

from ptxlint.isa.row import Access, Mode, Proxy, Row, Tracking

_WGMMA = "Asynchronous Multiply-and-Accumulate Instruction: "
_TCGEN05 = "TensorCore 5th Generation Instructions: "
_ALLOC = _TCGEN05 + "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit"


def _descriptor(role: str) -> Access:
    return Access(role, Mode.READ, Proxy.ASYNC, space="shared::cta", is_descriptor=True)


def _tensor_memory(role: str, mode: Mode) -> Access:
    return Access(role, mode, Proxy.TENSOR_MEMORY, space="tensor")


_MMA_ASYNC = (
    "+accumulator a b {sparse}scale_d"
    " / +accumulator a b {sparse}scale_d scale_a scale_b"
    " / +accumulator a:vector b {sparse}scale_d scale_a scale_b transpose_b"
    " / +accumulator a b {sparse}scale_d scale_a scale_b transpose_a transpose_b"
)

_WGMMA_ROWS: tuple[Row, ...] = (
    Row(
        "wgmma.fence",
        "",
        _WGMMA + "wgmma.fence",
        (8, 0),
        90,
        is_collective=True,
        is_arch_specific=True,
        is_asynchronous_machinery=True,
    ),
    Row(
        "wgmma.mma_async",
        _MMA_ASYNC.format(sparse=""),
        _WGMMA + "wgmma.mma_async",
        (8, 0),
        90,
        accesses=(_descriptor("a"), _descriptor("b")),
        opens=Tracking.WGMMA,
        is_collective=True,
        is_arch_specific=True,
        is_asynchronous_machinery=True,
    ),
    Row(
        "wgmma.mma_async.sp",
        _MMA_ASYNC.format(sparse="metadata selector "),
        _WGMMA + "wgmma.mma_async.sp",
        (8, 2),
        90,
        accesses=(_descriptor("a"), _descriptor("b")),
        opens=Tracking.WGMMA,
        is_collective=True,
        is_arch_specific=True,
        is_asynchronous_machinery=True,
    ),
    Row(
        "wgmma.commit_group",
        "",
        _WGMMA + "wgmma.commit_group",
        (8, 0),
        90,
        commits=Tracking.WGMMA,
        is_collective=True,
        is_arch_specific=True,
        is_asynchronous_machinery=True,
    ),
    Row(
        "wgmma.wait_group",
        "count",
        _WGMMA + "wgmma.wait_group",
        (8, 0),
        90,
        waits=Tracking.WGMMA,
        is_collective=True,
        is_arch_specific=True,
        is_asynchronous_machinery=True,
    ),
)


def _tcgen05(
    name: str,
    operands: str,
    section: str | None = None,
    *,
    since: tuple[int, int] = (8, 6),
    sm: int = 100,
    requires: tuple[str, ...] = (),
    accesses: tuple[Access, ...] = (),
    opens: Tracking | None = None,
    commits: Tracking | None = None,
    waits: Tracking | None = None,
    is_collective: bool = False,
) -> Row:
    return Row(
        name,
        operands,
        section or _TCGEN05 + name,
        since,
        sm,
        requires=requires,
        accesses=accesses,
        opens=opens,
        commits=commits,
        waits=waits,
        is_collective=is_collective,
        is_arch_specific=True,
        is_asynchronous_machinery=True,
    )


_SCALE_ADDRESSES = "scale_a?block_scale:address scale_b?block_scale:address"
_MMA = (
    _tensor_memory("taddr", Mode.UPDATE),
    _descriptor("a"),
    _tensor_memory("a", Mode.READ),
    _descriptor("b"),
)
_SPARSITY = _tensor_memory("sparsity", Mode.READ)
_SCALES = (_tensor_memory("scale_a", Mode.READ), _tensor_memory("scale_b", Mode.READ))

_TCGEN05_ROWS: tuple[Row, ...] = (
    _tcgen05(
        "tcgen05.alloc",
        "destination:address columns",
        _ALLOC,
        accesses=(Access("destination", Mode.WRITE, bytes=4),),
        is_collective=True,
    ),
    _tcgen05(
        "tcgen05.dealloc",
        "taddr columns",
        _ALLOC,
        accesses=(Access("taddr", Mode.WRITE, Proxy.TENSOR_MEMORY, space="tensor", is_bare=True, size="columns"),),
        is_collective=True,
    ),
    _tcgen05("tcgen05.relinquish_alloc_permit", "", _ALLOC, is_collective=True),
    _tcgen05(
        "tcgen05.mma",
        f"taddr:address a b idesc {_SCALE_ADDRESSES} lanes?:vector enable scale_d?",
        accesses=(*_MMA, *_SCALES),
        opens=Tracking.TCGEN05_COMMIT,
    ),
    _tcgen05(
        "tcgen05.mma.sp",
        f"taddr:address a b sparsity:address idesc {_SCALE_ADDRESSES} lanes?:vector enable scale_d?",
        accesses=(*_MMA, _SPARSITY, *_SCALES),
        opens=Tracking.TCGEN05_COMMIT,
    ),
    _tcgen05(
        "tcgen05.mma.ws",
        "taddr:address a b idesc enable zero_columns?",
        accesses=_MMA,
        opens=Tracking.TCGEN05_COMMIT,
    ),
    _tcgen05(
        "tcgen05.mma.ws.sp",
        "taddr:address a b sparsity:address idesc enable zero_columns?",
        accesses=(*_MMA, _SPARSITY),
        opens=Tracking.TCGEN05_COMMIT,
    ),
    _tcgen05(
        "tcgen05.cp",
        "taddr:address sdescriptor",
        accesses=(_tensor_memory("taddr", Mode.WRITE), _descriptor("sdescriptor")),
        opens=Tracking.TCGEN05_COMMIT,
    ),
    _tcgen05(
        "tcgen05.shift",
        "taddr:address",
        accesses=(_tensor_memory("taddr", Mode.UPDATE),),
        opens=Tracking.TCGEN05_COMMIT,
    ),
    _tcgen05(
        "tcgen05.commit",
        "mbarrier:address mask?multicast::cluster",
        accesses=(Access("mbarrier", Mode.OBJECT, bytes=8),),
        commits=Tracking.TCGEN05_COMMIT,
    ),
    _tcgen05(
        "tcgen05.ld",
        "=destination taddr:address offset?",
        accesses=(_tensor_memory("taddr", Mode.READ),),
        opens=Tracking.TCGEN05_LD,
        is_collective=True,
    ),
    _tcgen05(
        "tcgen05.ld.red",
        "=destination =reduction taddr:address offset?",
        _TCGEN05 + "tcgen05.ld",
        since=(8, 8),
        sm=103,
        accesses=(_tensor_memory("taddr", Mode.READ),),
        opens=Tracking.TCGEN05_LD,
        is_collective=True,
    ),
    _tcgen05(
        "tcgen05.ld.spcompress",
        "=metadata =destination taddr:address offset?",
        _TCGEN05 + "tcgen05.ld",
        since=(9, 4),
        sm=107,
        accesses=(_tensor_memory("taddr", Mode.READ),),
        opens=Tracking.TCGEN05_LD,
        is_collective=True,
    ),
    _tcgen05(
        "tcgen05.ld.red.spcompress",
        "=metadata =destination =reduction taddr:address offset?",
        _TCGEN05 + "tcgen05.ld",
        since=(9, 4),
        sm=107,
        accesses=(_tensor_memory("taddr", Mode.READ),),
        opens=Tracking.TCGEN05_LD,
        is_collective=True,
    ),
    _tcgen05(
        "tcgen05.st",
        "taddr:address offset? value",
        accesses=(_tensor_memory("taddr", Mode.WRITE),),
        opens=Tracking.TCGEN05_ST,
        is_collective=True,
    ),
    _tcgen05(
        "tcgen05.wait::ld",
        "",
        _TCGEN05 + "tcgen05.wait",
        waits=Tracking.TCGEN05_LD,
        is_collective=True,
    ),
    _tcgen05(
        "tcgen05.wait::st",
        "",
        _TCGEN05 + "tcgen05.wait",
        waits=Tracking.TCGEN05_ST,
        is_collective=True,
    ),
    _tcgen05("tcgen05.fence::before_thread_sync", "", _TCGEN05 + "tcgen05.fence"),
    _tcgen05("tcgen05.fence::after_thread_sync", "", _TCGEN05 + "tcgen05.fence"),
)

ROWS: tuple[Row, ...] = (*_WGMMA_ROWS, *_TCGEN05_ROWS)
