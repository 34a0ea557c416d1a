"""Loads, stores, atomics, address arithmetic, cache control, multimem, textures and surfaces."""

from __future__ import annotations

from ptxlint.isa.row import Access, Mode, Proxy, Row, Tracking

_MOVEMENT = "Data Movement and Conversion Instructions: "
_PARALLEL = "Parallel Synchronization and Communication Instructions: "
_TEXTURE = "Texture Instructions: "
_SURFACE = "Surface Instructions: "
_STACK = "Stack Manipulation Instructions: "
_TEX = "=destination address:address lod?level dpdx?grad dpdy?grad"
_POLICY = "policy?L2::cache_hint"

_READ = (Access("address", Mode.READ),)
_WRITE = (Access("address", Mode.WRITE),)
_UPDATE = (Access("address", Mode.UPDATE),)
_READ_TEXTURE = (Access("address", Mode.READ, Proxy.TEXTURE, space="global"),)

_LOADS_AND_STORES: tuple[Row, ...] = (
    Row("ld", f"=destination address:address {_POLICY}", _MOVEMENT + "ld", accesses=_READ, semantics="weak"),
    Row(
        "ld",
        f"=destination address:address {_POLICY}",
        _MOVEMENT + "ld.global.nc",
        (3, 1),
        32,
        requires=("nc",),
        accesses=_READ_TEXTURE,
        semantics="weak",
    ),
    Row("ldu", "=destination address:address", _MOVEMENT + "ldu", (2, 0), 20, accesses=_READ, semantics="weak"),
    Row("st", f"address:address value {_POLICY}", _MOVEMENT + "st", accesses=_WRITE, semantics="weak"),
    Row(
        "st.bulk",
        "address:address size value",
        _MOVEMENT + "st.bulk",
        (8, 6),
        100,
        accesses=(Access("address", Mode.WRITE, size="size"),),
        semantics="weak",
    ),
    Row(
        "multimem.ld_reduce",
        "=destination address:address",
        _MOVEMENT + "multimem.ld_reduce, multimem.st, multimem.red",
        (8, 1),
        90,
        accesses=_READ,
        semantics="weak",
    ),
    Row(
        "multimem.st",
        "address:address value",
        _MOVEMENT + "multimem.ld_reduce, multimem.st, multimem.red",
        (8, 1),
        90,
        accesses=_WRITE,
        semantics="weak",
    ),
    Row(
        "multimem.red",
        "address:address value",
        _MOVEMENT + "multimem.ld_reduce, multimem.st, multimem.red",
        (8, 1),
        90,
        accesses=_UPDATE,
        semantics="relaxed",
        scope="gpu",
    ),
)

_ATOMICS: tuple[Row, ...] = (
    Row(
        "atom",
        f"=destination address:address value {_POLICY}",
        _PARALLEL + "atom",
        (1, 1),
        11,
        accesses=_UPDATE,
        semantics="relaxed",
        scope="gpu",
    ),
    Row(
        "atom",
        f"=destination address:address compare value {_POLICY}",
        _PARALLEL + "atom",
        (1, 1),
        11,
        requires=("cas",),
        accesses=_UPDATE,
        semantics="relaxed",
        scope="gpu",
    ),
    Row(
        "red",
        f"address:address value {_POLICY}",
        _PARALLEL + "red",
        (1, 2),
        11,
        accesses=_UPDATE,
        semantics="relaxed",
        scope="gpu",
    ),
)

_ADDRESSES: tuple[Row, ...] = (
    Row("mov", "=destination a", _MOVEMENT + "mov"),
    Row("cvta", "=destination a", _MOVEMENT + "cvta", (2, 0), 20),
    Row("isspacep", "=destination a", _MOVEMENT + "isspacep", (2, 0), 20),
    Row("mapa", "=destination address rank", _MOVEMENT + "mapa", (7, 8), 90, is_asynchronous_machinery=True),
    Row("getctarank", "=destination address", _MOVEMENT + "getctarank", (7, 8), 90),
    Row("alloca", "=destination size align?", _STACK + "alloca", (7, 3), 52),
    Row("stacksave", "=destination", _STACK + "stacksave", (7, 3), 52),
    Row("stackrestore", "a", _STACK + "stackrestore", (7, 3), 52),
)

_CACHE: tuple[Row, ...] = (
    Row("prefetch", "address:address", _MOVEMENT + "prefetch, prefetchu", (2, 0), 20),
    Row(
        "prefetch",
        "address:address",
        _MOVEMENT + "prefetch, prefetchu",
        (8, 0),
        90,
        requires=("tensormap",),
        accesses=(Access("address", Mode.READ, Proxy.TENSORMAP, bytes=128),),
    ),
    Row("prefetchu", "address:address", _MOVEMENT + "prefetch, prefetchu", (2, 0), 20),
    Row("applypriority", "address:address size", _MOVEMENT + "applypriority", (7, 4), 80),
    Row(
        "applypriority.async.bulk",
        "address:address size",
        _MOVEMENT + "applypriority.async.bulk",
        (9, 4),
        107,
        opens=Tracking.BULK,
        is_asynchronous_machinery=True,
    ),
    Row(
        "applypriority.async.bulk.tensor",
        "address:address",
        _MOVEMENT + "applypriority.async.bulk.tensor",
        (9, 4),
        107,
        accesses=(Access("address", Mode.READ, Proxy.TENSORMAP, space="generic", bytes=128),),
        opens=Tracking.BULK,
        is_asynchronous_machinery=True,
    ),
    Row("discard", "address:address size", _MOVEMENT + "discard", (7, 4), 80),
    Row("createpolicy.fractional", "=destination fraction?", _MOVEMENT + "createpolicy", (7, 4), 80),
    Row(
        "createpolicy.range",
        "=destination address:address primary_size total_size",
        _MOVEMENT + "createpolicy",
        (7, 4),
        80,
    ),
    Row("createpolicy.cvt", "=destination a", _MOVEMENT + "createpolicy", (7, 4), 80),
)

_TEXTURES: tuple[Row, ...] = (
    Row(
        "tex",
        f"{_TEX} offset?:vector depth? / {_TEX} offset depth",
        _TEXTURE + "tex",
        accesses=_READ_TEXTURE,
    ),
    Row(
        "tld4",
        "=destination address:address offset?:vector depth? / =destination address:address offset depth",
        _TEXTURE + "tld4",
        (2, 2),
        20,
        accesses=_READ_TEXTURE,
    ),
    Row("txq", "=destination address:address lod?level", _TEXTURE + "txq", (1, 5)),
    Row("istypep", "=destination a", _TEXTURE + "istypep", (4, 0), 30),
    Row("suld", "=destination address:address", _SURFACE + "suld", (1, 5), 20, accesses=_READ_TEXTURE),
    Row(
        "sust",
        "address:address value",
        _SURFACE + "sust",
        (1, 5),
        20,
        accesses=(Access("address", Mode.WRITE, Proxy.TEXTURE, space="global"),),
    ),
    Row(
        "sured",
        "address:address value",
        _SURFACE + "sured",
        (2, 0),
        20,
        accesses=(Access("address", Mode.UPDATE, Proxy.TEXTURE, space="global"),),
    ),
    Row("suq", "=destination address:address", _SURFACE + "suq", (1, 5)),
)

ROWS: tuple[Row, ...] = (*_LOADS_AND_STORES, *_ATOMICS, *_ADDRESSES, *_CACHE, *_TEXTURES)
