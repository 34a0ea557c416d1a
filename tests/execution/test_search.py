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
