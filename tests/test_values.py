"""Symbolic values, their evaluation, congruences, and laps of loops."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.analyses.congruence import Congruence, Congruences, congruence
from ptxlint.analyses.evaluation import Evaluation
from ptxlint.analyses.groups import Groups
from ptxlint.analyses.value import Algebra, Leaf, LeafKind, Value, implied, leaves
from ptxlint.analyses.values import base_symbol, location
from ptxlint.facts import Cause, Consequence, Facts
from ptxlint.ir import Register
from ptxlint.launch import Launch
from ptxlint.parse import parse
from ptxlint.testing import module_of


def facts_of(snippet: str, launch: Launch | None = None) -> Facts:
    module = parse(module_of(snippet))
    return Facts(module, module.functions[-1], launch or Launch())


def final(facts: Facts, name: str) -> Value:
    """What a register holds at the end of the snippet."""
    return facts.values.register(len(facts.cfg.body) - 1, Register(name, "pred" if name.startswith("%p") else "b32"))


def shown(snippet: str, name: str) -> str:
    return str(final(facts_of(snippet), name))


TID = "mov.u32 %r1, %tid.x;\n"
CHOICE = "setp.eq.s32 %p1, %r1, 3;\nselp.b32 %r2, 1, 0, %p1;\n"


@pytest.mark.parametrize(
    ("snippet", "name", "expected"),
    [
        ("mov.u32 %r1, 4;\nadd.s32 %r2, %r1, -1;\nshl.b32 %r3, %r2, 4;", "%r3", "48"),
        (TID + "mad.lo.s32 %r2, %r1, 4, 8;\nadd.s32 %r3, %r2, %r1;", "%r3", "(5*%tid.x + 8)"),
        (TID + "sub.s32 %r2, %r1, %r1;", "%r2", "0"),
        (".shared .b8 s[8];\nmov.u32 %r1, s;\nadd.s32 %r2, %r1, 4;", "%r2", "(s + 4)"),
        (".shared .b8 s[8];\nmov.u64 %rd1, s;\ncvta.shared.u64 %rd2, %rd1;\ncvt.u32.u64 %r2, %rd2;", "%r2", "s"),
        (TID + "mov.b64 %rd1, {%r1, 0};\nmov.b64 {%r2, %r3}, %rd1;", "%r2", "%tid.x"),
        ("ld.param.u32 %r1, [n];\nld.param.u32 %r2, [n];\nsub.s32 %r3, %r1, %r2;", "%r3", "0"),
        ("ld.global.u32 %r1, [%rd1];", "%r1", "%r1@0"),
        (TID + "setp.ge.s32 %p1, %r1, 3;\nor.pred %p3, %p1, %p1;", "%p3", "not.pred(lt.s32(%tid.x, 3))"),
        (TID + CHOICE + "setp.ne.s32 %p2, %r2, 0;", "%p2", "eq.s32((%tid.x + -3), 0)"),
        ("mov.pred %p1, -1;", "%p1", "1"),
        ("mov.u32 %r1, 1;\n@%p1 mov.u32 %r1, 2;", "%r1", "select.b32(%p1@-1, 2, 1)"),
        ("mov.u32 %r1, %clock;\nmov.u32 %r2, %clock;\nsub.s32 %r3, %r1, %r2;", "%r3", "(-1*%clock@1 + %clock@0)"),
    ],
)  # fmt: skip
def test_what_a_register_holds(snippet: str, name: str, expected: str) -> None:
    assert shown(snippet, name) == expected


DIAMOND = """
mov.u32 %r1, 1;
@%p1 bra THEN;
mov.u32 %r1, 2;
bra JOIN;
THEN:
mov.u32 %r1, 3;
JOIN:
add.s32 %r2, %r1, 0;
"""
LADDER = """
mov.u32 %r1, 1;
@%p1 bra JOIN;
mov.u32 %r1, 2;
@%p2 bra JOIN;
mov.u32 %r1, 3;
JOIN:
add.s32 %r2, %r1, 0;
"""
LOOP = """
mov.u32 %r1, 4;
TOP:
add.s32 %r1, %r1, 8;
setp.lt.s32 %p1, %r1, %r3;
@%p1 bra TOP;
"""


def test_a_join_is_a_choice_by_its_branches() -> None:
    assert shown(DIAMOND, "%r2") == "select.b32(%p1@-1, 3, 2)"
    assert shown(LADDER, "%r2") == "select.b32(%p1@-1, 1, select.b32(%p2@-1, 2, 3))"


def test_the_head_of_a_loop_is_a_merge_of_what_comes_in() -> None:
    facts = facts_of(LOOP)
    value = final(facts, "%r1")
    assert str(value) == "(%r1@B1 + 8)"
    (merge,) = leaves(value)
    assert sorted(str(brought) for _, brought in facts.values.incoming(merge)) == ["(%r1@B1 + 8)", "4"]
    assert list(facts.values.stales_at(value)) == [(LeafKind.MERGE, 1)]


def test_a_deep_expression_becomes_unknown_and_nothing_recurses() -> None:
    lines = [f"xor.b32 %r{n + 1}, %r{n}, %r{n + 2};\nadd.s32 %r{n + 1}, %r{n + 1}, %r{n};" for n in range(1, 3000)]
    assert final(facts_of("\n".join(lines)), "%r3000").depth <= 60


def test_locations_and_bases() -> None:
    facts = facts_of(".shared .b8 s[64];\n" + TID + "mov.u32 %r2, s;\nadd.s32 %r3, %r2, 12;\nadd.s32 %r4, %r3, %r1;")
    assert location(final(facts, "%r3")) == ("s", 12)
    assert location(final(facts, "%r4")) is None
    assert base_symbol(final(facts, "%r4")) == "s"


def test_what_a_conjunction_implies() -> None:
    facts = facts_of("and.pred %p3, %p1, %p2;\nor.pred %p6, %p4, %p5;")
    both, either = final(facts, "%p3"), final(facts, "%p6")
    assert sorted(f"{v}={t}" for v, t in implied(both, True) if v is not both) == ["%p1@-1=True", "%p2@-1=True"]
    assert sorted(f"{v}={t}" for v, t in implied(either, False) if v is not either) == ["%p4@-1=False", "%p5@-1=False"]
    assert implied(both, False) == {(both, False)}


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add.s32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> min(b, 32),
    "div.u32": lambda a, b: a // b if b else 0xFFFFFFFF,
    "rem.u32": lambda a, b: a % b if b else a,
    "min.u32": min,
}
steps = st.lists(
    st.tuples(
        st.sampled_from(sorted(OPERATIONS)), st.integers(0, 5), st.integers(0, 5), st.none() | st.integers(0, 40)
    ),
    min_size=1,
    max_size=10,
)


@given(steps, st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3))
@settings(max_examples=80, deadline=None)
def test_evaluation_agrees_with_running_the_instructions(
    program: list[tuple[str, int, int, int | None]], inputs: list[int]
) -> None:
    lines = [f"ld.global.u32 %r{n}, [%rd1];" for n in range(3)]
    registers = [*inputs, 0, 0, 0]
    lines += [f"mov.u32 %r{n}, 0;" for n in range(3, 6)]
    for number, (operation, first, second, immediate) in enumerate(program):
        target = number % 6
        operand = f"%r{second}" if immediate is None else str(immediate)
        lines.append(f"{operation} %r{target}, %r{first}, {operand};")
        right = registers[second] if immediate is None else immediate
        registers[target] = OPERATIONS[operation](registers[first], right) & 0xFFFFFFFF
    facts = facts_of("\n".join(lines))
    evaluation = Evaluation(lambda leaf: inputs[leaf.place], (0,))
    for number, expected in enumerate(registers):
        actual = evaluation.number(final(facts, f"%r{number}"))
        assert isinstance(actual, int)
        assert actual & 0xFFFFFFFF == expected, "\n".join(lines)


WARPS = """
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 5;
shfl.sync.idx.b32 %r3, %r2, 0, 31, -1;
elect.sync _|%p1, -1;
selp.b32 %r4, 1, 0, %p1;
"""


def test_evaluation_of_threads_lanes_and_the_elected_one() -> None:
    facts = facts_of(WARPS)
    evaluation = Evaluation(lambda leaf: facts.threads.leaf(leaf, (0, 31, 32, 33)), (0, 31, 32, 33))
    assert list(evaluation.vector(final(facts, "%r3"))) == [0, 0, 1, 1]
    assert list(evaluation.vector(final(facts, "%r4"))) == [1, 0, 1, 0]


congruences = st.builds(congruence, st.integers(0, 64), st.integers(-64, 64))


def members(of: Congruence) -> list[int]:
    return [of.remainder + of.modulus * k for k in range(-3, 4)]


def holds(of: Congruence, number: int) -> bool:
    return number == of.remainder if of.modulus == 0 else number % of.modulus == of.remainder


@given(congruences, congruences)
def test_arithmetic_of_congruences_is_sound(first: Congruence, second: Congruence) -> None:
    for a in members(first):
        assert holds(first | second, a)
        for b in members(second):
            assert holds(first + second, a + b)
            assert holds(first * second, a * b)


@given(congruences, congruences, congruences)
def test_join_of_congruences_keeps_its_laws(first: Congruence, second: Congruence, third: Congruence) -> None:
    assert first | second == second | first
    assert first | (second | third) == (first | second) | third
    assert first | first == first


@given(congruences, st.sampled_from((8, 16, 128)))
def test_a_certain_misalignment_is_one_of_every_member(of: Congruence, alignment: int) -> None:
    off = of.off(alignment)
    misses = [number % gcd(of.modulus, alignment) for number in members(of)]
    assert all(misses) if off else not all(misses)


@pytest.mark.parametrize(
    ("snippet", "expected"),
    [
        (LOOP + "mov.u32 %r2, %r1;", Congruence(8, 4)),
        (LOOP + "and.b32 %r2, %r1, -16;", Congruence(16, 0)),
        (LOOP + "or.b32 %r2, %r1, 3;", Congruence(8, 7)),
        (LOOP + "xor.b32 %r2, %r1, 1;", Congruence(8, 5)),
        (LOOP + "shr.u32 %r2, %r1, 2;", Congruence(2, 1)),
        (TID + "mad.lo.s32 %r2, %r1, 48, 20;", Congruence(48, 20)),
        (TID + "mul.lo.s32 %r3, %r1, 6;\nrem.u32 %r2, %r3, 4;", Congruence(2, 0)),
        ("setp.eq.s32 %p1, %r9, 0;\nselp.b32 %r2, 16, 40, %p1;", Congruence(24, 16)),
        (".shared .align 32 .b8 s[64];\nmov.u32 %r1, s;\nadd.s32 %r2, %r1, 8;", Congruence(32, 8)),
    ],
)
def test_what_is_known_of_a_remainder(snippet: str, expected: Congruence) -> None:
    facts = facts_of(snippet)
    assert Congruences(facts.values, facts.variables).of(final(facts, "%r2")) == expected


def test_the_algebra_brings_equal_values_to_one_object() -> None:
    algebra = Algebra()
    x, y = (algebra.leaf(LeafKind.SPECIAL, name) for name in ("x", "y"))
    assert algebra.total(1, ((x, 2), (y, 1))) is algebra.add(algebra.add(y, algebra.constant(1)), algebra.scaled(x, 2))
    assert algebra.compare("gt", "s32", x, y) is algebra.compare("lt", "s32", y, x)
    assert algebra.compare("eq", "s32", x, y) is algebra.compare("eq", "s32", y, x)
    assert isinstance(algebra.add(x, algebra.constant(0)), Leaf)


RING = """
.shared .align 16 .b8 tile[2048];
mov.u32 %r1, %tid.x;
mov.u32 %r9, 0;
LOOP:
and.b32 %r2, %r9, {mask};
shl.b32 %r3, %r2, 9;
mov.u32 %r4, tile;
mad.lo.s32 %r5, %r1, 16, %r4;
add.s32 %r6, %r5, %r3;
cp.async.cg.shared.global [%r6], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group {allowed};
bar.sync 0;
sub.s32 %r7, %r9, {behind};
and.b32 %r7, %r7, {mask};
shl.b32 %r7, %r7, 9;
add.s32 %r7, %r5, %r7;
ld.shared.u32 %r8, [%r7];
add.s32 %r9, %r9, 1;
setp.lt.s32 %p1, %r9, 99;
@%p1 bra LOOP;
cp.async.wait_all;
"""


@pytest.mark.parametrize("behind", range(4))
@pytest.mark.parametrize("allowed", range(4))
def test_a_slot_is_safe_when_the_wait_leaves_fewer_groups_than_its_age(allowed: int, behind: int) -> None:
    facts = facts_of(RING.format(mask=3, allowed=allowed, behind=behind), Launch(block=(32, 1, 1)))
    causes = {hazard.cause for hazard in facts.hazards}
    assert causes == (set() if allowed <= behind else {Cause.WEAK_WAIT})


def test_groups_are_counted_per_kind() -> None:
    snippet = RING.format(mask=3, allowed=1, behind=1)
    mixed = snippet.replace("cp.async.wait_group", "cp.async.bulk.commit_group;\ncp.async.wait_group")
    facts = facts_of(mixed, Launch(block=(32, 1, 1)))
    assert facts.hazards == []
    assert facts.solve(Groups) is facts.solve(Groups)


TAIL = """
.shared .align 16 .b8 tile[1024];
mov.u32 %r1, tile;
mov.u32 %r9, 0;
LOOP:
and.b32 %r2, %r9, 1;
mad.lo.s32 %r3, %r2, 512, %r1;
cp.async.cg.shared.global [%r3], [%rd1], 16;
cp.async.commit_group;
add.s32 %r9, %r9, 1;
setp.lt.s32 %p1, %r9, {trips};
@%p1 bra LOOP;
cp.async.wait_group 1;
ld.shared.u32 %r4, [tile];
cp.async.wait_all;
"""


@pytest.mark.parametrize(("trips", "expected"), [(5, {Cause.WEAK_WAIT}), (6, set()), ("%r8", {Cause.WEAK_WAIT})])
def test_after_a_loop_its_last_lap_is_the_one_in_which_it_ends(trips: int | str, expected: set[Cause]) -> None:
    facts = facts_of(TAIL.format(trips=trips), Launch(block=(1, 1, 1)))
    assert {hazard.cause for hazard in facts.hazards} == expected


PROLOGUE = """
.shared .align 16 .b8 tile[1024];
cp.async.cg.shared.global [tile+512], [%rd1], 16;
cp.async.commit_group;
mov.u32 %r1, tile;
mov.u32 %r9, 0;
LOOP:
mad.lo.s32 %r3, %r9, 512, %r1;
ld.shared.u32 %r4, [%r3];
add.s32 %r9, %r9, 1;
setp.lt.s32 %p1, %r9, {trips};
@%p1 bra LOOP;
cp.async.wait_all;
"""


@pytest.mark.parametrize(("trips", "expected"), [(1, set()), (2, {Cause.NO_WAIT}), (3, {Cause.NO_WAIT})])
def test_a_copy_before_a_loop_meets_the_laps_that_the_loop_has(trips: int, expected: set[Cause]) -> None:
    facts = facts_of(PROLOGUE.format(trips=trips), Launch(block=(1, 1, 1)))
    assert {hazard.cause for hazard in facts.hazards} == expected


STORED = """
.shared .align 128 .b8 tile[1024];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
mad.lo.s32 %r3, %r1, 16, %r2;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra PAST;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile+256], 256;
cp.async.bulk.commit_group;
PAST:
bar.sync 0;
{refill}
"""


@pytest.mark.parametrize(
    ("refill", "expected"),
    [
        ("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r3], {%r4, %r4};", set()),
        ("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3], {%r4, %r4, %r4, %r4};", {Cause.NO_WAIT}),
    ],
)
def test_a_refill_by_matrices_is_where_the_first_lanes_point(refill: str, expected: set[Cause]) -> None:
    facts = facts_of(STORED.replace("{refill}", refill), Launch(block=(32, 1, 1)))
    assert {hazard.cause for hazard in facts.hazards if hazard.consequence is Consequence.REFILLED} == expected


ELECTED = """
.shared .align 128 .b8 tile[512];
.shared .align 8 .b64 free;
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 5;
setp.ne.u32 %p1, %r2, 0;
mov.u32 %r9, 0;
@%p1 bra LOADER;
STORER:
elect.sync _|%p2, -1;
@!%p2 bra STORED;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
STORED:
elect.sync _|%p3, -1;
@!%p3 bra FREED;
{wait}
mbarrier.arrive.shared.b64 _, [free];
FREED:
add.u32 %r9, %r9, 1;
setp.lt.u32 %p4, %r9, 8;
@%p4 bra STORER;
LOADER:
{hears}
st.shared.u32 [tile], %r1;
"""


@pytest.mark.parametrize(
    ("wait", "hears", "expected"),
    [
        ("cp.async.bulk.wait_group.read 0;", "mbarrier.try_wait.parity.shared.b64 %p5, [free], 0;", set()),
        ("cp.async.bulk.wait_group 0;", "mbarrier.try_wait.parity.shared.b64 %p5, [free], 0;", set()),
        ("cp.async.bulk.wait_group 0;", "", {Cause.NO_WAIT}),
        ("", "mbarrier.try_wait.parity.shared.b64 %p5, [free], 0;", {Cause.NO_WAIT}),
    ],
)
def test_lanes_that_were_not_elected_need_only_hear_of_the_wait(wait: str, hears: str, expected: set[Cause]) -> None:
    """The elected thread stores and waits under an election each time; the refill is further down the text."""
    facts = facts_of(ELECTED.format(wait=wait, hears=hears), Launch(block=(64, 1, 1)))
    assert {hazard.cause for hazard in facts.hazards if hazard.consequence is Consequence.REFILLED} == expected


LAPS = """
.shared .align 128 .b8 tile[512];
ld.global.u32 %r1, [%rd1];
ld.global.u32 %r2, [%rd1+4];
mov.u32 %r9, 0;
HEAD:
setp.le.s32 %p1, %r1, %r9;
@%p1 bra REFILL;
cp.async.bulk.wait_group.read 1;
REFILL:
st.shared.u32 [tile], %r9;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 512;
cp.async.bulk.commit_group;
add.s32 %r9, %r9, 1;
setp.le.s32 %p2, {bound}, %r9;
@%p2 bra NEXT;
cp.async.bulk.wait_group.read 0;
NEXT:
setp.ne.s32 %p3, %r9, 9;
@%p3 bra HEAD;
"""


@pytest.mark.parametrize(("bound", "expected"), [("%r1", {Cause.NO_WAIT}), ("%r2", {Cause.NO_WAIT, Cause.WEAK_WAIT})])
def test_branches_of_two_laps_that_exclude_each_other(bound: str, expected: set[Cause]) -> None:
    """A lap that skips its last wait is followed by one that skips its first; by another bound it need not be."""
    facts = facts_of(LAPS.format(bound=bound), Launch(block=(1, 1, 1)))
    assert {hazard.cause for hazard in facts.hazards if hazard.consequence is Consequence.REFILLED} == expected
