"""Fences other than those before an async read: every kind of hand-over with and without each fence, and the verdict.

What is expected follows from the ISA: *tcgen05.fence* and *Canonical synchronization patterns* for tensor memory,
*membar/fence* (uni-directional proxy ordering) for tensor maps, *membar/fence* (`.op_restrict`) and *barrier.cluster*
for initializations, *Async Proxy* for async writes after generic reads, which is contested and off by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import ClassVar

import pytest

from ptxlint import registry
from ptxlint.lint import Options, lint_text
from ptxlint.rule import Severity
from ptxlint.testing import compared, found, marked

HEAD = """\
.version 8.6
.target {target}
.address_size 64
.visible .entry kernel(.param .u64 maps, .param .u64 source, .param .u64 result) .reqntid {threads}{cluster}
{{
.reg .pred %p<10>;
.reg .b16 %h<2>;
.reg .b32 %r<24>;
.reg .b64 %rd<8>;
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b64 full;
.shared .align 8 .b64 done;
.shared .align 8 .b64 meet;
.shared .align 4 .b32 slot;
ld.param.u64 %rd1, [maps];
ld.param.u64 %rd2, [source];
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
setp.eq.u32 %p1, %r1, 0;"""

EVERY = ("bar.sync", "named barrier", "mbarrier", "cluster barrier")


def handed_over(synchronization: str, half: int, marker: str = "") -> str:
    """What the first `half` threads run after their part; a marker on the release."""
    return {
        "bar.sync": f"bar.sync 0;{marker}",
        "named barrier": f"bar.arrive 1, {2 * half};{marker}",
        "mbarrier": f"mbarrier.arrive.shared.b64 _, [meet];{marker}",
        "cluster barrier": f"barrier.cluster.arrive;{marker}\nbarrier.cluster.wait;",
    }[synchronization]


def taken_over(synchronization: str, half: int) -> str:
    """What the other threads run before theirs."""
    return {
        "bar.sync": "bar.sync 0;",
        "named barrier": f"bar.sync 1, {2 * half};",
        "mbarrier": waited("meet", "MEET"),
        "cluster barrier": "barrier.cluster.arrive;\nbarrier.cluster.wait;",
    }[synchronization]


def waited(barrier: str, label: str) -> str:
    """A loop that waits for the first phase of an mbarrier."""
    return f"{label}:\nmbarrier.try_wait.parity.shared.b64 %p9, [{barrier}], 0;\n@!%p9 bra {label};"


def initialized(half: int) -> str:
    """The barriers, set up by thread 0 and published to the CTA."""
    return f"""\
@!%p1 bra INITIALIZED;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [meet], {half};
INITIALIZED:
bar.sync 0;"""


@dataclass(frozen=True)
class TensorMemory:
    """Columns that one half of the threads uses and then the other."""

    first: str
    second: str
    synchronization: str
    before: bool
    after: str

    ACCESSES: ClassVar[dict[str, str]] = {
        "ld": "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r9}}, [%r8];{}\ntcgen05.wait::ld.sync.aligned;",
        "st": "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {{%r9}};{}\ntcgen05.wait::st.sync.aligned;",
    }
    MMA = """\
@!{issuer} bra {label};
tcgen05.mma.cta_group::1.kind::f16 [%r7], %rd4, %rd4, %r6, 1;{marker}
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
{label}:"""
    BEGIN = """\
setp.eq.u32 %p2, %r1, 128;
setp.ge.u32 %p3, %r1, 128;
setp.lt.u32 %p4, %r1, 32;
mov.u32 %r5, tile;
mov.u32 %r6, 0x8100490;
mov.b64 %rd4, 0x4000004000080040;
@!%p4 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %r7, [slot];
shl.b32 %r8, %r1, 16;
and.b32 %r8, %r8, 0x600000;
add.u32 %r8, %r8, %r7;
@%p3 bra SECOND;"""
    END = """\
END:
tcgen05.fence::before_thread_sync;
bar.sync 2, 256;
@!%p4 bra FREED;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 64;
FREED:"""

    def kernel(self) -> str:
        """Its kernel, with the verdict as a marker."""
        before = "tcgen05.fence::before_thread_sync;" if self.before else ""
        after = "tcgen05.fence::after_thread_sync;"
        rule = "  // expect: missing-tcgen05-fence"
        is_committed = self.first == "mma"
        released = "" if self.before or is_committed else rule
        used = "" if released or self.after == "right" else rule
        if is_committed:
            first, meeting, coming = (
                self.MMA.format(issuer="%p1", label="ISSUED", marker=""),
                "",
                waited("done", "DONE"),
            )
        else:
            first, meeting = self.ACCESSES[self.first].format(""), handed_over(self.synchronization, 128, released)
            coming = taken_over(self.synchronization, 128)
        if self.second == "mma":
            second = self.MMA.format(issuer="%p2", label="ISSUED", marker=used) + "\n" + waited("done", "DONE")
        else:
            second = self.ACCESSES[self.second].format(used)
        parts = (initialized(128), self.BEGIN, first, before, meeting, "bra END;", "SECOND:")
        early = after if self.after == "before the acquire" else ""
        late = after if self.after == "right" else ""
        head = HEAD.format(target="sm_100a", threads=256, cluster="")
        return "\n".join((head, *parts, early, coming, late, second, self.END, "ret;", "}", ""))

    @classmethod
    def cases(cls) -> Iterator[TensorMemory]:
        """Accesses that are not pipelined, in two groups of warps."""
        afters = ("right", "none", "before the acquire")
        pairs = (("ld", "mma"), ("ld", "st"), ("st", "mma"), ("st", "ld"), ("st", "st"))
        for (first, second), how, before, after in product(pairs, EVERY, (True, False), afters):
            yield cls(first, second, how, before, after)
        for second, after in product(("ld", "st"), afters):
            yield cls("mma", second, "commit", before=False, after=after)


@dataclass(frozen=True)
class TensorMap:
    """A tensor map that thread 0 changes and a copy uses."""

    change: str
    use: str
    synchronization: str
    release: str
    acquire: str

    CHANGES: ClassVar[dict[str, str]] = {
        "replace": "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;",
        "st": "st.global.b64 [%rd1+8], %rd2;",
    }
    USES: ClassVar[dict[str, str]] = {
        "load": """\
mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1, {{%r2}}], [full];{}
"""
        + waited("full", "FULL"),
        "store": """\
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {{%r2}}], [tile];{}
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;""",
    }
    RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
    ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [{}], 128;"

    def kernel(self) -> str:
        """Its kernel, with the verdict as a marker."""
        is_right = self.release == "right" and self.acquire in ("right", "of the changing thread")
        marker = "" if is_right else "  // expect: unfenced-tensormap-update"
        acquire = self.ACQUIRE.format("%rd1")
        changing = (
            self.RELEASE if self.release == "before the change" else "",
            self.CHANGES[self.change],
            self.RELEASE if self.release == "right" else "",
            acquire if self.acquire == "of the changing thread" else "",
        )
        own = {"right": acquire, "of another map": self.ACQUIRE.format("%rd2")}.get(self.acquire, "")
        early = acquire if self.acquire == "before the change" else ""
        using = (own, self.USES[self.use].format(marker))
        head = HEAD.format(target="sm_90a", threads=64, cluster="")
        body: tuple[str, ...]
        if self.synchronization == "same thread":
            body = ("@!%p1 bra END;", early, *changing, *using)
        else:
            over, coming = handed_over(self.synchronization, 1), taken_over(self.synchronization, 1)
            over, coming = over.replace("1, 2;", "1, 64;"), coming.replace("1, 2;", "1, 64;")
            body = (
                "setp.ge.u32 %p2, %r1, 32;\n@%p2 bra USER;\n@!%p1 bra CHANGED;",
                *changing,
                *(
                    (over, "CHANGED:", "bra END;")
                    if self.synchronization == "mbarrier"
                    else ("CHANGED:", over, "bra END;")
                ),
                "USER:",
                "setp.eq.u32 %p3, %r1, 32;",
                early,
                coming,
                "@!%p3 bra END;",
                *using,
            )
        return "\n".join((head, initialized(1), *body, "END:", "ret;", "}", ""))

    @classmethod
    def cases(cls) -> Iterator[TensorMap]:
        """Each change and use, with each fence where it belongs, elsewhere, or nowhere."""
        acquires = ("right", "none", "of another map", "before the change", "of the changing thread")
        rows = product(
            ("replace", "st"),
            ("load", "store"),
            ("same thread", *EVERY),
            ("right", "none", "before the change"),
            acquires,
        )
        for case in (cls(*row) for row in rows):
            if case.change == "replace" or case.release != "none" or case.acquire != "none":
                yield case


@dataclass(frozen=True)
class Initialization:
    """An mbarrier that thread 0 of each CTA initializes, and others use after a cluster barrier."""

    user: str
    semantics: str
    fence: str
    local: bool

    FENCES: ClassVar[dict[str, str]] = {
        "fence.mbarrier_init": "fence.mbarrier_init.release.cluster;",
        "fence.acq_rel": "fence.acq_rel.cluster;",
        "fence.release": "fence.release.sync_restrict::shared::cta.cluster;",
        "fence.acquire": "fence.acquire.sync_restrict::shared::cluster.cluster;",
    }
    USERS: ClassVar[dict[str, str]] = {
        "own CTA": """\
@!%p2 bra END;
mbarrier.arrive.shared.b64 _, [full];
"""
        + waited("full", "FULL"),
        "another CTA": """\
@!%p2 bra END;
mapa.shared::cluster.u32 %r4, full, %r3;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];""",
        "multicast": """\
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], 64;
setp.ne.u32 %p3, %r3, 1;
not.pred %p4, %p2;
or.pred %p3, %p3, %p4;
mov.b16 %h1, 3;
@%p3 bra COPIED;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd2], 64, [full], %h1;
COPIED:
@!%p1 bra END;
"""
        + waited("full", "FULL"),
    }

    @property
    def is_published(self) -> bool:
        """By a releasing arrival, by a releasing fence of the initializing thread after it, or by the CTA's barrier."""
        if self.semantics != ".relaxed" or self.fence in ("fence.mbarrier_init", "fence.acq_rel", "fence.release"):
            return True
        return self.local and self.user == "own CTA"

    def kernel(self) -> str:
        """Its kernel, with the verdict as a marker."""
        marker = "" if self.is_published else "  // expect: unpublished-barrier-init"
        init = self.FENCES["fence.mbarrier_init"]
        parts = (
            "setp.eq.u32 %p2, %r1, 32;\nmov.u32 %r3, %cluster_ctarank;\nxor.b32 %r3, %r3, 1;\n@!%p1 bra INITIALIZED;",
            init if self.fence == "before the initialization" else "",
            f"mbarrier.init.shared.b64 [full], 1;{marker}",
            self.FENCES.get(self.fence, ""),
            "INITIALIZED:",
            f"@%p2 {init}" if self.fence == "of another thread" else "",
            "bar.sync 0;" if self.local else "",
            f"barrier.cluster.arrive{self.semantics};\nbarrier.cluster.wait;",
            self.USERS[self.user],
            "END:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;",
        )
        head = HEAD.format(target="sm_90a", threads=64, cluster=" .reqnctapercluster 2")
        return "\n".join((head, *parts, "ret;", "}", ""))

    @classmethod
    def cases(cls) -> Iterator[Initialization]:
        """Each user, arrival and fence."""
        fences = ("none", *cls.FENCES, "before the initialization", "of another thread")
        for row in product(cls.USERS, ("", ".release", ".relaxed"), fences, (True, False)):
            yield cls(*row)


@dataclass(frozen=True)
class Overwriting:
    """Bytes that one half of the threads reads and a copy of the other half then fills again."""

    reader: str
    synchronization: str
    fence: str

    READERS: ClassVar[dict[str, str]] = {
        "ld": "ld.shared.u32 %r9, [%r5];",
        "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r5];",
    }
    FENCES: ClassVar[dict[str, tuple[str, str, str]]] = {
        "none": ("", "", ""),
        "right": ("", "fence.proxy.async.shared::cta;", ""),
        "of all spaces": ("", "fence.proxy.async;", ""),
        "of another space": ("", "fence.proxy.async.global;", ""),
        "before the read": ("fence.proxy.async.shared::cta;", "", ""),
        "of the writer": ("", "", "fence.proxy.async.shared::cta;"),
    }

    def kernel(self) -> str:
        """Its kernel, with the verdict as a marker."""
        is_fenced = self.fence in ("right", "of all spaces", "of the writer")
        marker = "" if is_fenced else "  // expect: proxy-war"
        first, between, last = self.FENCES[self.fence]
        parts = (
            initialized(32),
            "shl.b32 %r5, %r1, 4;\nmov.u32 %r6, tile;\nadd.u32 %r5, %r5, %r6;",
            "setp.ge.u32 %p2, %r1, 32;\n@%p2 bra WRITER;",
            first,
            self.READERS[self.reader],
            between,
            handed_over(self.synchronization, 32),
            "bra END;\nWRITER:\nsetp.eq.u32 %p3, %r1, 32;",
            taken_over(self.synchronization, 32),
            last,
            "@!%p3 bra END;\nmbarrier.arrive.expect_tx.shared.b64 _, [full], 512;",
            f"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], 512, [full];{marker}",
            waited("full", "FULL"),
            "END:",
        )
        return "\n".join((HEAD.format(target="sm_90a", threads=64, cluster=""), *parts, "ret;", "}", ""))

    @classmethod
    def cases(cls) -> Iterator[Overwriting]:
        """Each reader, hand-over and fence."""
        for row in product(cls.READERS, EVERY, cls.FENCES):
            yield cls(*row)


Case = TensorMemory | TensorMap | Initialization | Overwriting
CASES: tuple[Case, ...] = (
    *TensorMemory.cases(),
    *TensorMap.cases(),
    *Initialization.cases(),
    *Overwriting.cases(),
)


@cache
def _rules() -> tuple[type, ...]:
    return (*registry.select(), *(rule for rule in registry.rules() if rule.name == "proxy-war"))


def test_the_table_is_large() -> None:
    assert len(CASES) >= 500
    assert len(set(CASES)) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_verdict(case: Case) -> None:
    text = case.kernel()
    difference = compared(text, marked(text), found(text, _rules()))
    assert not difference, difference


@pytest.mark.parametrize(("semantics", "severity"), [("", Severity.WARNING), (".relaxed.cta", Severity.ERROR)])
def test_nothing_but_the_fence_orders_a_relaxed_hand_over(semantics: str, severity: Severity) -> None:
    case = TensorMemory("ld", "mma", "mbarrier", before=False, after="right")
    text = case.kernel().replace("mbarrier.arrive.shared", f"mbarrier.arrive{semantics}.shared")
    (finding,) = lint_text(text, "kernel.ptx", Options(_rules())).findings
    assert (finding.rule, finding.severity) == ("missing-tcgen05-fence", severity)
