"""Conflicts of the ordered run as findings: what they name, how they are grouped, the mistake that each shows."""

from __future__ import annotations

import pytest

from ptxlint.facts import Clash, Facts, Mistake
from ptxlint.launch import Launch, stated
from ptxlint.parse import parse
from ptxlint.rule import Severity

HEAD = """\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 result) .reqntid 128
{
.reg .pred %p<4>;
.reg .b32 %r<8>;
.reg .b64 %rd<3>;
.shared .align 128 .b8 tile[2048];
.shared .align 8 .b64 ready;
ld.param.u64 %rd1, [result];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, tile;
add.u32 %r3, %r3, %r2;
setp.ne.u32 %p1, %r1, 96;
"""

STORE = """\
@%p1 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
"""


def _clashes(body: str, threads: int = 128) -> list[Clash]:
    head = HEAD.replace(".reqntid 128", f".reqntid {threads}")
    module = parse(f"{head}{body}ret;\n}}\n")
    function = module.functions[0]
    return list(Facts(module, function, stated(function, Launch())).clashes(*Mistake))


def test_both_accesses_are_named_with_bytes_and_release() -> None:
    (clash,) = _clashes(f"st.shared.u32 [%r3], %r1;\nbar.sync 0;\n{STORE}")
    assert clash.mistake is Mistake.UNFENCED
    assert clash.early == "thread 96 reads tile (`cp.async.bulk`)"
    assert clash.unfinished == "the write by warps 0-3 (`st.shared.u32`)"
    finding = clash.finding("message", "fix")
    assert [step.agent for step in finding.witness] == ["warps 0-3", "warps 0-3", "thread 96"]
    assert finding.severity is None


def test_unrolled_stores_are_one_finding() -> None:
    stores = "".join(f"st.shared.u32 [%r3+{512 * row}], %r1;\n" for row in range(4))
    copy = STORE.replace("512;", "2048;")
    (clash,) = _clashes(f"{stores}bar.sync 0;\n{copy}")
    assert len(clash.conflicts) == 4
    assert clash.memory == "tile"


def test_two_mistakes_are_two_findings() -> None:
    other = STORE.replace("[tile]", "[tile+1024]").replace("DONE", "LAST")
    body = f"st.shared.u32 [%r3], %r1;\nst.shared.u32 [%r3+1024], %r1;\nbar.sync 0;\n{STORE}{other}"
    assert [clash.mistake for clash in _clashes(body)] == [Mistake.UNFENCED, Mistake.UNFENCED]


@pytest.mark.parametrize(
    ("between", "mistake"),
    [
        ("bar.sync 0;\n", Mistake.UNFENCED),
        ("fence.proxy.async.global;\nbar.sync 0;\n", Mistake.FENCED_ELSEWHERE),
        ("bar.sync 0;\nfence.proxy.async.shared::cta;\n", Mistake.FENCED_LATE),
        ("fence.proxy.async.shared::cta;\n", Mistake.SHARED_RACE),
        ("fence.proxy.async.shared::cta;\nbar.sync 0;\n", None),
        ("fence.proxy.async;\nbar.sync 0;\n", None),
    ],
)
def test_what_stands_between_decides(between: str, mistake: Mistake | None) -> None:
    clashes = _clashes(f"st.shared.u32 [%r3], %r1;\n{between}{STORE}bar.sync 0;\n")
    assert [clash.mistake for clash in clashes] == ([] if mistake is None else [mistake])


def test_a_guessed_launch_makes_a_race_a_warning() -> None:
    body = "st.shared.u32 [%r3], %r1;\nxor.b32 %r4, %r3, 256;\nbar.sync 1, 128;\nld.shared.u32 %r5, [%r4];\n"
    race = body.replace("bar.sync 1, 128;\n", "") + "bar.sync 0;\n"
    assert not _clashes(body)
    (clash,) = _clashes(race)
    assert clash.mistake is Mistake.SHARED_RACE
    assert clash.finding("message", "fix").severity is None
    module = parse(f"{HEAD}{race}ret;\n}}\n".replace(" .reqntid 128", ""))
    function = module.functions[0]
    (guessed,) = Facts(module, function, stated(function, Launch())).clashes(Mistake.SHARED_RACE)
    assert guessed.finding("message", "fix").severity is Severity.WARNING


def test_places_computed_from_contents_are_no_conflict() -> None:
    body = "ld.global.u32 %r4, [%rd1];\nmov.u32 %r5, tile;\nadd.u32 %r5, %r5, %r4;\nst.shared.u32 [%r5], %r1;\n"
    assert not _clashes(f"{body}ld.shared.u32 %r6, [%r5];\nbar.sync 0;\n")


def test_a_register_that_held_contents_before_is_no_matter() -> None:
    """A counter that a loop's sum was copied from while it was zero is known."""
    body = "mov.u32 %r4, 0;\nmov.u32 %r6, %r4;\nld.global.u32 %r4, [%rd1];\nshl.b32 %r6, %r6, 2;\n"
    race = f"{body}mov.u32 %r5, tile;\nadd.u32 %r5, %r5, %r6;\nst.shared.u32 [%r5], %r4;\n"
    (clash,) = _clashes(
        f"{race}setp.ne.u32 %p2, %r1, 0;\n@%p2 bra DONE;\nld.shared.u32 %r7, [%r5];\nDONE:\nbar.sync 0;\n"
    )
    assert clash.mistake is Mistake.SHARED_RACE


@pytest.mark.parametrize(
    ("between", "by_own", "by_others"),
    [
        ("wgmma.wait_group.sync.aligned 0;\n", [], Mistake.SHARED_RACE),
        ("bar.sync 0;\nwgmma.wait_group.sync.aligned 0;\n", [], Mistake.WGMMA_WAIT_LATE),
        ("", [Mistake.WGMMA_RELEASED], Mistake.SHARED_RACE),
    ],
)
def test_how_others_come_to_write_operands(between: str, by_own: list[Mistake], by_others: Mistake) -> None:
    """What one warpgroup reads, the other writes; among its own warps, one that has waited speaks for all four."""
    read = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 1, 1, 1, 0, 0;\n"
    multiply = (
        ".reg .f32 %f<5>;\nmov.u32 %r4, tile;\nshr.u32 %r4, %r4, 4;\ncvt.u64.u32 %rd2, %r4;\n"
        f"wgmma.fence.sync.aligned;\n{read}wgmma.commit_group.sync.aligned;\n"
    )
    own = f"{multiply}{between}st.shared.u32 [%r3], %r1;\n"
    assert [clash.mistake for clash in _clashes(own)] == by_own
    others = f"setp.ge.u32 %p2, %r1, 128;\n@%p2 bra OTHERS;\n{multiply}{between}bra MEET;\n"
    others += f"OTHERS:\n{'bar.sync 0;' * ('bar.sync' in between)}\nst.shared.u32 [%r3+-512], %r1;\nMEET:\n"
    assert by_others in [clash.mistake for clash in _clashes(others, 256)]


def test_a_tensor_map_whose_address_goes_through_shared_memory_is_known() -> None:
    body = """
setp.ne.u32 %p2, %r1, 0;
@%p2 bra CHANGED;
tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd1;
fence.proxy.tensormap::generic.release.gpu;
st.shared.u64 [tile], %rd1;
CHANGED:
bar.sync 0;
ld.shared.u64 %rd2, [tile];
mov.u32 %r4, 0;
@%p1 bra DONE;
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd2, {%r4}], [tile+128];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
"""
    assert [clash.mistake for clash in _clashes(body)] == [Mistake.MAP_UNACQUIRED]
    read = body.replace(
        "ld.shared.u64 %rd2, [tile];",
        "ld.global.u64 %rd2, [%rd1+128];\nand.b64 %rd2, %rd2, 0;\nadd.u64 %rd2, %rd1, %rd2;",
    )
    assert not _clashes(read)


LOADED = """\
.shared .align 8 .b64 done;
.shared .align 8 .b64 drained;
.shared .align 4 .b32 slot;
.reg .b32 %s<4>;
mov.u32 %r5, 0x8100490;
mov.b64 %rd2, 0x4000004000080040;
setp.ge.u32 %p2, %r1, 32;
setp.ne.u32 %p1, %r1, 0;
@%p2 bra READY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
@%p1 bra READY;
mbarrier.init.shared.b64 [done], 1;
mbarrier.init.shared.b64 [drained], 128;
READY:
bar.sync 0;
ld.shared.u32 %r6, [slot];
mov.u32 %s0, 0;
bra LOAD;
HEAD:
{head}
AGAIN:
tcgen05.fence::before_thread_sync;
mbarrier.arrive.shared.b64 _, [drained];
@%p1 bra NEXT;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p3, [drained], %s0;
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd2, %rd2, %r5, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
NEXT:
LAST:
mbarrier.try_wait.parity.shared.b64 %p3, [done], %s0;
@!%p3 bra LAST;
tcgen05.fence::after_thread_sync;
add.u32 %s0, %s0, 1;
setp.eq.u32 %p3, %s0, 2;
@%p3 bra OVER;
LOAD:
tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%s1}}, [%r6];
{tail}
bra HEAD;
OVER:
bar.sync 0;
setp.eq.u32 %p3, %s0, 9;
@%p3 bra AGAIN;
@%p2 bra DONE;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64;
DONE:
"""
"""A loop whose loads end a lap, and whose head hands the columns on."""


@pytest.mark.parametrize(
    ("head", "tail", "is_consumed"),
    [
        ("add.u32 %s2, %s1, 1;", "", True),
        ("", "add.u32 %s2, %s1, 1;", True),
        ("add.u32 %s2, %s3, 1;", "mov.u32 %s3, %s1;", True),
        ("add.u32 %s2, %s1, 1;", "setp.eq.u32 %p3, %s0, 9;\n@%p3 bra OVER;", True),
        ("", "", False),
        ("mov.u32 %s3, %s1;", "", False),
        ("add.u32 %s2, %s3, 1;\nmov.u32 %s3, %s1;", "", False),
        ("add.u32 %s2, %s1, 1;", "mov.u32 %s1, 0;", False),
        ("@%p1 bra PAST;\nadd.u32 %s2, %s1, 1;\nPAST:", "", False),
        ("@%p1 bra ELSE;\nadd.u32 %s2, %s1, 1;\nbra PAST;\nELSE: sub.u32 %s2, %s1, 1;\nPAST:", "", True),
    ],
)
def test_loaded_registers_that_are_used_behind_the_back_edge(head: str, tail: str, is_consumed: bool) -> None:
    """A load is over where every way to the hand-over, also by the next lap, uses what it loaded."""
    found = {clash.mistake for clash in _clashes(LOADED.format(head=head, tail=tail))}
    assert found == (set() if is_consumed else {Mistake.LOAD_RELEASED})


@pytest.mark.parametrize(("trips", "is_found"), [("ld.global.u32 %r4, [%rd1];", False), ("mov.u32 %r4, 13;", True)])
def test_a_table_whose_length_is_assumed_ends_somewhere(trips: str, is_found: bool) -> None:
    """A loop that nothing synchronizes reads what a parameter says; how far it comes is a guess."""
    copy = (
        "@%p1 bra READ;\nmbarrier.init.shared::cta.b64 [ready], 1;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [ready], 512;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+1024], [%rd1], 512, [ready];\n"
        "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [ready], 0;\n@!%p3 bra WAIT;\n"
    )
    read = "READ:\nld.shared.u32 %r5, [%r3];\nadd.u32 %r3, %r3, 128;\nadd.u32 %r6, %r6, 1;\n"
    body = f"{trips}\nmov.u32 %r6, 0;\n{copy}{read}setp.lt.u32 %p2, %r6, %r4;\n@%p2 bra READ;\nbar.sync 0;\n"
    assert bool(_clashes(body)) is is_found
