"""Transfers over the fabric between GPUs.

A fabric handle is an address with the offset in it: `[endpoint, offset]`. No fabric instruction is known to ptxas 13.0.
"""

from __future__ import annotations

from ptxlint.isa.row import Access, Mode, Proxy, Row, Tracking

_FABRIC = "Fabric Instructions: "
_MBARRIER = Access("mbarrier", Mode.OBJECT, bytes=8)
_SHARED_WRITE = Access("destination", Mode.WRITE, Proxy.FABRIC, space="shared::cta", size="size")
_SHARED_READ = Access("source", Mode.READ, Proxy.FABRIC, space="shared::cta", size="size")


def _transfer(
    name: str,
    operands: str,
    *accesses: Access,
    since: tuple[int, int] = (9, 3),
) -> Row:
    return Row(
        name,
        operands,
        _FABRIC + name.removesuffix(".async"),
        since,
        100,
        accesses=(*accesses, _MBARRIER),
        opens=Tracking.MBARRIER,
        semantics="relaxed",
        scope="sys",
        is_asynchronous_machinery=True,
    )


_GET = "destination:address source:address size mbarrier:address"
_PULL = f"{_GET} mask"
_PUT = f"{_GET} mask?cp_mask"
_TENSOR = "destination:address source:address mbarrier:address"

ROWS: tuple[Row, ...] = (
    _transfer("fabric.try_get.async", _GET, _SHARED_WRITE),
    _transfer("fabric.try_put.async", _PUT, _SHARED_READ),
    _transfer("fabric.try_red.async", _GET, _SHARED_READ),
    _transfer("fabric.try_pullred.async", _PULL, _SHARED_WRITE),
    _transfer("fabric.try_get.async.tensor", _TENSOR, since=(9, 4)),
    _transfer("fabric.try_put.async.tensor", _TENSOR, since=(9, 4)),
    _transfer("fabric.try_red.async.tensor", _TENSOR, since=(9, 4)),
    _transfer(
        "fabric.try_atom.async",
        "address:address destination:address value:address mbarrier:address",
        Access("destination", Mode.WRITE, Proxy.FABRIC, space="shared::cta"),
        Access("value", Mode.READ, Proxy.FABRIC, space="shared::cta"),
        since=(9, 4),
    ),
    Row("fabric.submit", "", _FABRIC + "fabric.submit", (9, 3), 100, is_asynchronous_machinery=True),
    Row("fabric.wait", "count?", _FABRIC + "fabric.wait", (9, 3), 100, is_asynchronous_machinery=True),
)
