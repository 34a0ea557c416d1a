"""Inputs that are searched for when the usual ones leave a kernel unanalysed."""

from __future__ import annotations

from ptxlint.execution.conflict import Failure
from ptxlint.execution.engine import execute
from ptxlint.execution.search import WIDE_GRID
from ptxlint.launch import Launch
from ptxlint.parse import parse
from ptxlint.testing import module_of

from .running import executed, initialized, told

TILES = (
    initialized()
    + """
mov.u32 %r6, 0; mov.u32 %r5, %ctaid.x; mov.u32 %r7, %nctaid.x;
L: setp.ge.u32 %p2, %r5, 262144; @%p2 bra DONE;
@%p1 mbarrier.arrive.shared::cta.b64 _, [bars];
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], %r6; @!%p5 bra W;
xor.b32 %r6, %r6, 1; add.u32 %r5, %r5, %r7; {work} bra L;
DONE:
"""
)
"""Tiles that are shared out among the CTAs of the grid; with `work` far more steps than a run has."""

BLOCKS = (
    initialized(1, 1)
    + """
ld.param.u64 %rd1, [sizes]; ld.global.u32 %r4, [%rd1];
setp.ge.u32 %p2, %r1, 32; @%p2 bra CONSUME;
shr.u32 %r5, %r4, 7; mov.u32 %r6, 0; mov.u32 %r9, 1;
P: setp.ge.u32 %p3, %r6, %r5; @%p3 bra DONE;
Q: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bars+8], %r9; @!%p4 bra Q;
@%p1 mbarrier.arrive.shared::cta.b64 _, [bars];
xor.b32 %r9, %r9, 1; add.u32 %r6, %r6, 1; bra P;
CONSUME: shr.u32 %r5, %r4, 9; shl.b32 %r5, %r5, 2; mov.u32 %r6, 0; mov.u32 %r9, 0; setp.eq.u32 %p6, %r1, 32;
C: setp.ge.u32 %p3, %r6, %r5; @%p3 bra DONE;
D: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bars], %r9; @!%p4 bra D;
@%p6 mbarrier.arrive.shared::cta.b64 _, [bars+8];
xor.b32 %r9, %r9, 1; add.u32 %r6, %r6, 1; bra C;
DONE:
"""
)
"""One role goes by blocks of 128, the other by groups of four of them; the size comes from memory."""

FAR = "ld.param.u32 %r7, [n]; setp.eq.u32 %p6, %r7, {value}; @!%p6 bra END; {work} END:"


def test_one_tile_for_each_cluster_where_many_cost_too_much() -> None:
    execution = executed(TILES.format(work="add.u32 %r8, %r8, 1; bar.sync 0;" * 20), 32)
    assert execution.not_analysed is None
    assert not execution.uncovered
    assert execution.runs[0].binding.grid[0] == WIDE_GRID


def test_a_stated_grid_is_kept() -> None:
    module = parse(module_of(TILES.format(work="add.u32 %r8, %r8, 1; bar.sync 0;" * 20)))
    execution = execute(module, module.functions[0], Launch((32, 1, 1), grid=(4, 1, 1)))
    assert execution.not_analysed is not None
    assert {run.binding.grid for run in execution.runs} == {(4, 1, 1)}


def test_sizes_that_are_multiples_of_a_tile() -> None:
    execution = executed(BLOCKS, 64)
    assert execution.not_analysed is None
    assert not told(execution)
    assert execution.runs[0].binding.inputs.size == 1024


def test_a_word_that_an_unreached_branch_depends_on() -> None:
    execution = executed(FAR.format(value=65536, work="bar.sync 0; " * 4), 32)
    assert execution.not_analysed is None
    assert not execution.uncovered


def test_both_sides_of_a_block_that_may_lack_threads() -> None:
    """Of a block of whole warps one half of the barriers is reached, of any other the other half."""
    sides = """
    mov.u32 %r2, %ntid.x; and.b32 %r3, %r2, 31; setp.eq.u32 %p1, %r3, 0; @%p1 bra WHOLE;
    bar.sync 0; bar.sync 0; bar.sync 0; bra END;
    WHOLE: bar.sync 0; bar.sync 0; bar.sync 0; END:
    """
    execution = executed(sides)
    assert execution.not_analysed is None
    assert not execution.uncovered


def test_accesses_that_conflict_under_searched_inputs_are_not_told() -> None:
    """The inputs are too far-fetched for a finding, and a kernel with conflicts is not called clean."""
    race = ".shared .align 4 .b32 x; st.shared.b32 [x], %r1; ld.shared.b32 %r9, [x];"
    work = initialized() + "bar.sync 0;" * 4 + race
    execution = executed(FAR.format(value=65536, work=work), 64)
    assert execution.not_analysed is not None
    assert not execution.conflicts


def test_a_conflict_that_the_usual_inputs_show_is_told() -> None:
    race = ".shared .align 4 .b32 x; st.shared.b32 [x], %r1; ld.shared.b32 %r9, [x];"
    execution = executed(initialized() + race + FAR.format(value=65536, work="bar.sync 0;" * 20), 64)
    assert {conflict.failure for conflict in execution.conflicts} == {Failure.UNORDERED}


def test_a_fault_under_the_usual_inputs_is_told() -> None:
    """A barrier that lacks threads whatever the inputs are."""
    execution = executed("bar.sync 1, 96;" + FAR.format(value=65536, work="bar.sync 0; " * 4), 64)
    assert told(execution)


def test_a_cluster_of_two_where_sizes_keep_warps_together() -> None:
    """With a size that parts warps no cluster runs clean; with another a single CTA does, and reaches less."""
    meet = "@%p7 barrier.cluster.arrive; @%p7 barrier.cluster.wait;"
    loop = f"""
    ld.param.u64 %rd1, [sizes]; ld.global.u32 %r4, [%rd1]; mov.u32 %r5, %tid.x;
    mov.u32 %r9, %cluster_nctarank; setp.gt.u32 %p7, %r9, 1;
    L: setp.ge.u32 %p2, %r5, %r4; @%p2 bra DONE; {meet * 2} add.u32 %r5, %r5, 64; bra L;
    DONE: bar.sync 0;
    """
    execution = executed(loop, 64)
    assert execution.not_analysed is None
    assert not execution.defects
    assert execution.runs[0].binding.cluster == (2, 1, 1)


def test_words_that_must_equal_constants() -> None:
    """A kernel that is made for one shape leaves when it is given another."""
    asked = "ld.param.u32 %r7, [rows]; ld.param.u32 %r8, [columns]; setp.ne.s32 %p6, %r7, 73728; "
    asked += "setp.ne.s32 %p7, %r8, 192; or.pred %p6, %p6, %p7; @%p6 bra END; "
    execution = executed(asked + "bar.sync 0; " * 4 + "END:", 32)
    assert execution.not_analysed is None
    assert not execution.uncovered


def test_a_cluster_as_large_as_the_kernel_reaches_in_it() -> None:
    """A kernel that leaves in all but one shape, and reads from the eighth CTA of its cluster."""
    snippet = """
    ld.param.u32 %r7, [rows]; setp.ne.s32 %p6, %r7, 73728; @%p6 bra END;
    bar.sync 0; barrier.cluster.arrive; barrier.cluster.wait;
    .shared .align 4 .b32 x; mov.u32 %r4, 7; mapa.shared::cluster.u32 %r5, x, %r4; ld.shared::cluster.u32 %r6, [%r5];
    barrier.cluster.arrive; barrier.cluster.wait; END:
    """
    execution = executed(snippet, 32)
    assert execution.not_analysed is None
    assert execution.runs[0].binding.cluster == (8, 1, 1)


def test_lengths_behind_some_pointers_and_offsets_behind_the_rest() -> None:
    """One item of work from a list of ranges; its index must be less than one length, and the other several tiles."""
    snippet = """
    ld.param.u64 %rd1, [ranges]; ld.param.u64 %rd2, [tiles]; ld.param.u64 %rd3, [rows]; ld.param.u64 %rd4, [keys];
    mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd5, %r2, 4; add.s64 %rd6, %rd1, %rd5;
    ld.global.u32 %r3, [%rd6]; ld.global.u32 %r4, [%rd6+4];
    W: setp.ge.s32 %p1, %r3, %r4; @%p1 bra DONE;
    mul.wide.s32 %rd7, %r3, 4; add.s64 %rd8, %rd2, %rd7; add.s64 %rd9, %rd3, %rd7; add.s64 %rd10, %rd4, %rd7;
    ld.global.u32 %r5, [%rd8]; ld.global.u32 %r6, [%rd9]; ld.global.u32 %r7, [%rd10];
    shl.b32 %r5, %r5, 7; setp.ge.s32 %p2, %r5, %r6; @%p2 bra NEXT;
    shr.s32 %r8, %r7, 7; setp.lt.s32 %p3, %r8, 2; @%p3 bra NEXT; bar.sync 0; bar.sync 0; bar.sync 0; bar.sync 0;
    NEXT: add.s32 %r3, %r3, 1; bra W; DONE: bar.sync 0;
    """
    execution = executed(snippet, 32)
    assert execution.not_analysed is None
    assert not execution.uncovered


def test_memory_that_holds_floats() -> None:
    snippet = "ld.param.u64 %rd1, [weights]; ld.global.f32 %f1, [%rd1]; setp.gt.f32 %p1, %f1, 0f3F000000; "
    snippet += "setp.lt.f32 %p2, %f1, 0f40000000; and.pred %p1, %p1, %p2; @!%p1 bra END; "
    execution = executed(snippet + "bar.sync 0; " * 4 + "END:", 32)
    assert execution.not_analysed is None
    assert not execution.uncovered
