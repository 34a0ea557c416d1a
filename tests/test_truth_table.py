"""Generic writes read by the async proxy: every writer, reader, fence, barrier and shape of loop, and the verdict.

What is expected follows from the ISA, *Async Proxy* and *membar/fence*: each write needs a proxy fence that covers
shared memory, run by the writing thread after the write, on every path to the read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import pytest

from ptxlint import registry
from ptxlint.testing import compared, found, marked

WRITERS = {
    "st": "st.shared.v4.u32 [%r10], {%r1, %r1, %r1, %r1};",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r10], {%r1, %r1, %r1, %r1};",
    "red": "red.shared.add.u32 [%r10], %r1;",
    "cp.async": "cp.async.cg.shared.global [%r10], [%rd1], 16;\ncp.async.wait_all;",
}
"""Generic writes of a thread to its own 16 bytes."""

BULK_DONE = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;"
COMMITTED = """\
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
DONE_WAIT:
mbarrier.try_wait.parity.shared.b64 %p6, [done], %r7;
@!%p6 bra DONE_WAIT;"""

READERS = {
    "bulk": ("cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 2048;", BULK_DONE),
    "reduce": ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [tile], 2048;", BULK_DONE),
    "tensor": ("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd3, {%r9}], [tile];", BULK_DONE),
    "wgmma": (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd4, %rd4, 1, 1, 1, 0, 0;",
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;",
    ),
    "mma": ("tcgen05.mma.cta_group::1.kind::f16 [%r8], %rd4, %rd4, %r6, 1;", COMMITTED),
    "cp": ("tcgen05.cp.cta_group::1.128x256b [%r8], %rd4;", COMMITTED),
}
"""Asynchronous reads of the tile, and what waits for them."""

FENCE = "fence.proxy.async.shared::cta;"
FENCES = {
    "none": (),
    "global": ("fence.proxy.async.global;",),
    "before the writes": (),
    "of the reader": (),
    "right": (FENCE,),
    "of all spaces": ("fence.proxy.async;",),
}
"""The fence between the writes and the release of the writing thread."""

SYNCHRONIZATIONS = ("same thread", "bar.sync", "named barrier", "mbarrier")
SHAPES = ("straight", "loop", "zero trips")


@dataclass(frozen=True)
class Case:
    """One kernel of the table."""

    writer: str
    reader: str
    fence: str
    synchronization: str
    shape: str

    @property
    def verdict(self) -> str:
        """The rule that finds something at the read; empty where all is well."""
        if self.fence == "global":
            return "fence-wrong-space"
        if self.fence in ("none", "before the writes") or self.shape == "zero trips":
            return "unfenced-async-read"
        return "fence-after-barrier" if self.fence == "of the reader" else ""

    @property
    def is_told_at_arrival(self) -> bool:
        """Whether the finding is at the writers' arrival, which lacks the fence before it, and not at the read."""
        return self.verdict == "unfenced-async-read" and self.synchronization == "mbarrier"

    @property
    def is_possible(self) -> bool:
        """Whether the fence stands where its name says: one thread has no far side, and a tensor core more than one."""
        if self.synchronization == "same thread":
            return self.fence != "of the reader" and self.reader in ("bulk", "reduce", "tensor")
        return not (self.shape == "zero trips" and self.fence in ("before the writes", "of the reader"))

    def __str__(self) -> str:
        return ", ".join((self.writer, self.reader, f"fence {self.fence}", self.synchronization, self.shape))


def _cases() -> Iterator[Case]:
    rows = [
        *product(WRITERS, ("bulk",), FENCES, SYNCHRONIZATIONS, SHAPES),
        *product(("st",), tuple(READERS)[1:], FENCES, SYNCHRONIZATIONS, SHAPES),
        *product(("cp.async", "stmatrix"), ("wgmma", "mma"), FENCES, SYNCHRONIZATIONS[1:], ("straight",)),
    ]
    return filter(lambda case: case.is_possible, (Case(*row) for row in rows))


CASES = tuple(dict.fromkeys(_cases()))


@cache
def _rules() -> tuple[type, ...]:
    return tuple(registry.select())


def kernel(case: Case) -> str:
    """The kernel of a case, with its verdict as a marker."""
    target = "sm_90a" if case.reader not in ("mma", "cp") else "sm_100a"
    return "\n".join((_head(target, _threads(case)), *_setup(case), *_body(case), *_teardown(case), "ret;", "}", ""))


def _threads(case: Case) -> int:
    return {"same thread": 32, "bar.sync": 128}.get(case.synchronization, 256)


def _head(target: str, threads: int) -> str:
    return f"""\
.version 8.6
.target {target}
.address_size 64
.visible .entry kernel(.param .u64 source, .param .u64 result, .param .align 64 .b8 map[128], .param .u32 trips)
.reqntid {threads}
{{
.reg .pred %p<10>;
.reg .b32 %r<24>;
.reg .f32 %f<5>;
.reg .b64 %rd<8>;
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
.shared .align 8 .b64 done;
.shared .align 4 .b32 slot;"""


def _setup(case: Case) -> Iterator[str]:
    """Registers and barriers: %p1 the issuing thread, %p2 a writing thread, %r10 its bytes, %rd4 the descriptor."""
    first = 128 if _threads(case) == 256 else 0
    issuer = 96 if case.synchronization == "bar.sync" else 0
    yield f"""\
ld.param.u64 %rd1, [source];
ld.param.u64 %rd2, [result];
ld.param.u32 %r2, [trips];
mov.b64 %rd3, map;
cvta.param.u64 %rd3, %rd3;
mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, {issuer};
setp.ge.u32 %p2, %r1, {first};
sub.u32 %r3, %r1, {first};
shl.b32 %r3, %r3, 4;
mov.u32 %r4, tile;
add.u32 %r10, %r4, %r3;
shr.u32 %r5, %r4, 4;
cvt.u64.u32 %rd4, %r5;
or.b64 %rd4, %rd4, 0x4000004000080000;
mov.u32 %r6, 0x8100490;
mov.u32 %r7, 0;
mov.u32 %r9, 0;
mov.u32 %r11, 0;
mov.f32 %f1, 0f00000000;
mov.f32 %f2, 0f00000000;
mov.f32 %f3, 0f00000000;
mov.f32 %f4, 0f00000000;"""
    if case.synchronization == "mbarrier" or case.reader in ("mma", "cp"):
        yield """\
@!%p1 bra INITIALIZED;
mbarrier.init.shared.b64 [full], 128;
mbarrier.init.shared.b64 [empty], 1;
mbarrier.init.shared.b64 [done], 1;
INITIALIZED:"""
    if case.reader in ("mma", "cp"):
        yield """\
setp.ge.u32 %p3, %r1, 32;
@%p3 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
tcgen05.fence::before_thread_sync;"""
    if case.synchronization == "mbarrier" or case.reader in ("mma", "cp"):
        yield "bar.sync 0;"
    if case.reader in ("mma", "cp"):
        yield "tcgen05.fence::after_thread_sync;\nld.shared.u32 %r8, [slot];"


def _teardown(case: Case) -> Iterator[str]:
    if case.reader in ("mma", "cp"):
        yield """\
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
@%p3 bra FREED;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 64;
FREED:"""


def _body(case: Case) -> Iterator[str]:
    """The writers' part, the readers' part, and around each the loop."""
    if case.synchronization in ("same thread", "bar.sync"):
        meeting = "bar.sync 0;" if case.synchronization == "bar.sync" else "bar.warp.sync -1;"
        yield from _looped(case, "ALL", [*_write(case), meeting, *_read(case, "ALL"), meeting])
        return
    yield "@!%p2 bra READERS;"
    yield from _looped(case, "WRITERS_LOOP", [*_write(case), *_handed_over(case)])
    yield "bra END;"
    yield "READERS:"
    yield from _looped(case, "READERS_LOOP", [*_taken_over(case), *_read(case, "READERS"), *_handed_back(case)])
    yield "END:"


def _looped(case: Case, label: str, body: list[str]) -> Iterator[str]:
    if case.shape != "loop":
        yield from body
        return
    yield "mov.u32 %r11, 0;"
    yield f"{label}_TOP:"
    yield from body
    yield f"xor.b32 %r7, %r7, 1;\nadd.u32 %r11, %r11, 1;\nsetp.lt.u32 %p4, %r11, 5;\n@%p4 bra {label}_TOP;"


def _write(case: Case) -> Iterator[str]:
    if case.fence == "before the writes":
        yield FENCE
    yield WRITERS[case.writer]
    fences = FENCES[case.fence]
    if case.shape == "zero trips" and fences:
        yield "setp.eq.u32 %p5, %r2, 0;\n@%p5 bra UNFENCED;\nmov.u32 %r12, 0;\nFENCE_LOOP:"
        yield from fences
        yield "add.u32 %r12, %r12, 1;\nsetp.lt.u32 %p5, %r12, %r2;\n@%p5 bra FENCE_LOOP;\nUNFENCED:"
    else:
        yield from fences


def _read(case: Case, label: str) -> Iterator[str]:
    if case.fence == "of the reader":
        yield FENCE
    read, wait = READERS[case.reader]
    marker = f"  // expect: {case.verdict}" if case.verdict and not case.is_told_at_arrival else ""
    if case.reader == "wgmma":
        yield f"wgmma.fence.sync.aligned;\n{read}{marker}\n{wait}"
    else:
        yield f"@!%p1 bra {label}_SKIP;\n{read}{marker}\n{wait}\n{label}_SKIP:"


def _handed_over(case: Case) -> Iterator[str]:
    """The writers' release, and their wait until the tile is free again."""
    if case.synchronization == "named barrier":
        yield "bar.arrive 1, 256;\nbar.sync 2, 256;"
    else:
        marker = f"  // expect: {case.verdict}" if case.is_told_at_arrival else ""
        yield f"mbarrier.arrive.shared.b64 _, [full];{marker}\nFREE_WAIT:"
        yield "mbarrier.try_wait.parity.shared.b64 %p7, [empty], %r7;\n@!%p7 bra FREE_WAIT;"


def _taken_over(case: Case) -> Iterator[str]:
    if case.synchronization == "named barrier":
        yield "bar.sync 1, 256;"
    else:
        yield "FULL_WAIT:\nmbarrier.try_wait.parity.shared.b64 %p7, [full], %r7;\n@!%p7 bra FULL_WAIT;"


def _handed_back(case: Case) -> Iterator[str]:
    """The readers' release, after all of them are through."""
    if case.synchronization == "named barrier":
        yield "bar.arrive 2, 256;"
    else:
        yield "bar.sync 3, 128;\n@%p1 mbarrier.arrive.shared.b64 _, [empty];"


def test_the_table_is_large() -> None:
    assert len(CASES) >= 200
    assert len({case.verdict for case in CASES}) == 4


@pytest.mark.parametrize("case", CASES, ids=str)
def test_verdict(case: Case) -> None:
    text = kernel(case)
    difference = compared(text, marked(text), found(text, _rules()))
    assert not difference, difference
