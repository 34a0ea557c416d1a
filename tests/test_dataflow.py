"""The solver on small analyses, the laws that each analysis keeps, and golden states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint import isa
from ptxlint.analyses.groups import NOWHERE, Groups, Pending, Queue, Status
from ptxlint.analyses.threads import Crowd
from ptxlint.cfg import Cfg, Edge, build
from ptxlint.dataflow import Analysis, Direction, NoFixpoint, solve
from ptxlint.facts import Facts
from ptxlint.ir import Instruction
from ptxlint.launch import Launch, stated
from ptxlint.parse import parse
from ptxlint.testing import module_of

FIXTURES = Path(__file__).parent.parent / "fixtures"
Names = frozenset[str]


def cfg_of(snippet: str) -> Cfg:
    (function,) = parse(module_of(snippet)).functions
    return build(function)


class Written(Analysis[Names]):
    """Registers written on every path."""

    def boundary(self) -> Names:
        return frozenset()

    def join(self, first: Names, second: Names) -> Names:
        return first & second

    def transfer(self, index: int, instruction: Instruction, state: Names) -> Names:  # noqa: ARG002
        return state | {register.name for register in isa.writes(instruction)}


class Live(Analysis[Names]):
    """Registers that some path reads before it writes them."""

    direction = Direction.BACKWARD

    def boundary(self) -> Names:
        return frozenset()

    def join(self, first: Names, second: Names) -> Names:
        return first | second

    def transfer(self, index: int, instruction: Instruction, state: Names) -> Names:  # noqa: ARG002
        written = {register.name for register in isa.writes(instruction)}
        return (state - written) | {register.name for register in isa.reads(instruction)}


class Endless(Analysis[int]):
    """A lattice of infinite height."""

    def boundary(self) -> int:
        return 0

    def join(self, first: int, second: int) -> int:
        return max(first, second)

    def transfer(self, index: int, instruction: Instruction, state: int) -> int:  # noqa: ARG002
        return state + 1


class NeverFallsThrough(Written):
    """As if the guard of a branch always held."""

    def along(self, edge: Edge, state: Names) -> Names | None:
        return None if edge.guard and edge.guard.negated else state


class OnlyMoves(Written):
    """Looks at one opcode alone, and fails when it is shown another."""

    def sites(self, cfg: Cfg) -> Sequence[int]:
        return [index for index, instruction in enumerate(cfg.body) if instruction.opcode == "mov"]


BRANCHES = """
mov.b32 %r1, 0;
@%p1 bra SKIP;
mov.b32 %r2, 0;
SKIP:
add.s32 %r3, %r1, %r2;
"""
LOOP = """
mov.b32 %r1, 0;
TOP:
add.s32 %r1, %r1, 1;
setp.lt.s32 %p1, %r1, %r2;
@%p1 bra TOP;
"""


def before(snippet: str, analysis: Analysis[Names], opcode: str) -> Names:
    """The state before the first instruction with that opcode."""
    return next(state for _, i, state in solve(cfg_of(snippet), analysis).steps() if i.opcode == opcode)


def test_a_forward_analysis_joins_what_both_paths_bring() -> None:
    assert before(BRANCHES, Written(), "add") == {"%r1"}


def test_a_backward_analysis_follows_the_loop() -> None:
    assert before(LOOP, Live(), "mov") == {"%r2"}
    assert before(LOOP, Live(), "add") == {"%r1", "%r2"}


def test_an_edge_that_cannot_be_taken_brings_nothing() -> None:
    solution = solve(cfg_of(BRANCHES), NeverFallsThrough())
    reached = [instruction.opcode for _, instruction, _ in solution.steps()]
    assert reached == ["mov", "bra", "add", "ret"]


def test_blocks_without_sites_pass_states_on() -> None:
    assert before(BRANCHES, OnlyMoves(), "add") == {"%r1"}
    assert solve(cfg_of(LOOP), OnlyMoves()).before(2) == frozenset({"%r1"})


def test_unreachable_code_has_no_state() -> None:
    solution = solve(cfg_of("ret;\nmov.b32 %r1, 0;"), Written())
    assert solution.entering(1) is None
    assert solution.before(1) is None
    assert [index for index, _, _ in solution.steps()] == [0]


def test_states_that_keep_growing_are_an_error_that_names_analysis_and_block() -> None:
    with pytest.raises(NoFixpoint, match="Endless does not settle at block 1") as caught:
        solve(cfg_of(LOOP), Endless())
    assert caught.value.block == 1


@cache
def facts_of(path: str) -> Facts:
    module = parse((FIXTURES / path).read_text())
    function = next(function for function in module.functions if function.body is not None)
    return Facts(module, function, stated(function, Launch()))


PATHS = ("analysis/store_ring.ptx", "analysis/copy_pipeline.ptx", "kernels/cp_async_ring/commit-inside-guard.ptx")


@st.composite
def queues(draw: st.DrawFn, path: str) -> Queue:
    """States over the copies, waits, loops and predicates of a kernel."""
    facts = facts_of(path)
    groups = Groups(facts)
    literals = sorted(groups._literals, key=lambda literal: (literal[0].serial, literal[1]))

    def crowd() -> Crowd:
        threads = draw(st.sampled_from((facts.threads.everybody.threads, 1, 0b110, 1 << 20)))
        values = draw(st.lists(st.sampled_from(literals), max_size=2)) if literals else []
        return Crowd(threads, frozenset(dict(values).items()))

    sites = groups.sites(facts.cfg)
    headers = [loop.header for loop in facts.cfg.loops]
    blocks = [NOWHERE, *(block.index for block in facts.cfg.blocks)]
    pending = {}
    for _ in range(draw(st.integers(0, 3))):
        is_foreign = draw(st.booleans())
        batch = Pending(
            draw(st.sampled_from(sorted(groups.members))),
            draw(st.sampled_from(Status)),
            draw(st.integers(0, 3)),
            wait=draw(st.none() | st.sampled_from(list(sites))),
            landed=draw(st.none() | st.sampled_from(list(sites))),
            is_read_only=draw(st.booleans()),
            is_foreign=is_foreign,
            meets=draw(st.none() | st.sampled_from(blocks)) if is_foreign else None,
            laps=tuple((header, draw(st.integers(1, 3))) for header in headers[:1] if draw(st.booleans())),
        )
        pending[batch] = crowd()
    return Queue(crowd(), pending)


def is_below(groups: Groups, small: Queue | None, large: Queue | None) -> bool:
    return small is None or (large is not None and groups.join(small, large) == large)


@pytest.mark.parametrize("path", PATHS)
def test_join_keeps_its_laws(path: str) -> None:
    groups = Groups(facts_of(path))

    @given(queues(path), queues(path), queues(path))
    @settings(max_examples=60, deadline=None)
    def check(first: Queue, second: Queue, third: Queue) -> None:
        assert groups.join(first, second) == groups.join(second, first)
        assert groups.join(first, groups.join(second, third)) == groups.join(groups.join(first, second), third)
        assert groups.join(first, first) == first

    check()


@pytest.mark.parametrize("path", PATHS)
def test_transfer_and_edges_are_monotone(path: str) -> None:
    groups = Groups(facts_of(path))
    cfg = facts_of(path).cfg
    edges = [edge for block in cfg.blocks for edge in block.successors]

    @given(queues(path), queues(path))
    @settings(max_examples=40, deadline=None)
    def check(first: Queue, second: Queue) -> None:
        both = groups.join(first, second)
        for index in groups.sites(cfg):
            below = groups.transfer(index, cfg.body[index], first)
            assert is_below(groups, below, groups.transfer(index, cfg.body[index], both)), str(cfg.body[index])
        for edge in edges:
            assert is_below(groups, groups.along(edge, first), groups.along(edge, both)), str(edge)

    check()


def rendered(facts: Facts) -> str:
    """The states before each instruction that the analysis looks at, for people."""
    groups = Groups(facts)
    sites = set(groups.sites(facts.cfg))
    lines = []
    for index, instruction, state in facts.solve(Groups).steps():
        if index not in sites and not isa.accesses(instruction):
            continue
        lines.append(f"{index}: {instruction}")
        for batch, issuers in sorted(state.pending.items(), key=str):
            said = [f"{name} {value}" for name, value in _told(batch)]
            held = sorted(f"{value}={truth}" for value, truth in issuers.literals)
            lines.append(f"    {batch.status} {', '.join(said)}; {issuers.threads.bit_count()} threads; {held}")
    return "\n".join(lines) + "\n"


def _told(batch: Pending) -> list[tuple[str, object]]:
    fields = ("copy", "commits", "commit", "wait", "landed", "is_read_only", "is_foreign", "meets", "laps")
    return [(name, value) for name in fields if (value := getattr(batch, name)) not in (None, False, ())]


@pytest.mark.parametrize("name", ["store_ring", "copy_pipeline"])
def test_golden_states(name: str, request: pytest.FixtureRequest) -> None:
    golden = FIXTURES / "analysis" / f"{name}.groups.txt"
    actual = rendered(facts_of(f"analysis/{name}.ptx"))
    if request.config.getoption("--update"):
        golden.write_text(actual)
    assert actual == golden.read_text()
