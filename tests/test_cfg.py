"""The control-flow graph: edges of every kind, dominators against their definition, loops, size."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint import graph
from ptxlint.cfg import Cfg, EdgeKind, build, render
from ptxlint.ir import Function, Guard, Immediate, Instruction, Label, Operand, Register
from ptxlint.source import Span

PREDICATE = Register("%p1", "pred")


def instruction(text: str, line: int) -> Instruction:
    """A label-only instruction such as `@!p bra L1` or `ret`."""
    words = text.split()
    guard = Guard(PREDICATE, words[0].startswith("@!")) if words[0].startswith("@") else None
    name, *targets = words[1:] if guard else words
    opcode, *modifiers = name.split(".")
    operands: list[Operand] = [Label(target) for target in targets]
    if opcode == "brx":
        operands.insert(0, Register("%r1", "b32"))
    if opcode == "mov":
        operands = [Register("%r1", "b32"), Immediate(0, "0")]
    return Instruction(opcode, tuple(modifiers), tuple(operands), guard, Span(line))


def function(source: str, tables: dict[str, tuple[str, ...]] | None = None) -> Function:
    """A function from lines that are either `label:` or an instruction."""
    labels: dict[str, int] = {}
    body: list[Instruction] = []
    for line in filter(None, map(str.strip, source.splitlines())):
        if line.endswith(":"):
            labels[line[:-1]] = len(body)
        else:
            body.append(instruction(line, len(body) + 1))
    return Function("f", True, (), (), (), (), tuple(body), labels, tables or {}, {}, (), None, Span(1))


def edges(cfg: Cfg) -> set[tuple[int, int]]:
    return {(edge.source, edge.target) for block in cfg.blocks for edge in block.successors}


DIAMOND = """
    mov.b32
    @p bra THEN
    mov.b32
    bra JOIN
    THEN:
    mov.b32
    JOIN:
    ret
"""


def test_a_diamond_has_two_arms_and_joins_at_its_post_dominator() -> None:
    cfg = build(function(DIAMOND))
    assert edges(cfg) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert list(cfg.immediate_dominators) == [None, 0, 0, 0]
    assert list(cfg.immediate_post_dominators) == [3, 3, 3, cfg.exit]
    taken, fallen = sorted(cfg.blocks[0].successors, key=lambda edge: edge.kind)
    assert (taken.kind, taken.guard) == (EdgeKind.BRANCH, Guard(PREDICATE))
    assert (fallen.kind, fallen.guard) == (EdgeKind.FALL_THROUGH, Guard(PREDICATE, True))


def test_predecessors_mirror_successors() -> None:
    cfg = build(function(DIAMOND))
    assert {(e.source, e.target) for block in cfg.blocks for e in block.predecessors} == edges(cfg)


@pytest.mark.parametrize("end", ["ret", "exit", "trap"])
def test_a_guarded_end_leaves_and_falls_through(end: str) -> None:
    cfg = build(function(f"mov.b32\n@!p {end}\nmov.b32\nret"))
    assert edges(cfg) == {(0, 1)}
    assert [block.leaves for block in cfg.blocks] == [True, True]
    assert cfg.blocks[0].successors[0].guard == Guard(PREDICATE)


def test_code_after_an_unconditional_end_is_unreachable() -> None:
    cfg = build(function("ret\nmov.b32\nret"))
    assert cfg.reachable == {0}
    assert cfg.immediate_dominators[1] is None
    assert cfg.immediate_post_dominators[1] is None


def test_a_table_branch_goes_to_each_distinct_target() -> None:
    cfg = build(function("brx.idx ts\nA:\nret\nB:\nret", {"ts": ("A", "B", "A")}))
    assert edges(cfg) == {(0, 1), (0, 2)}
    assert {edge.kind for edge in cfg.blocks[0].successors} == {EdgeKind.TABLE}


def test_a_branch_to_a_table_nobody_declares_leaves() -> None:
    cfg = build(function("brx.idx ts\nA:\nret"))
    assert cfg.blocks[0].leaves
    assert edges(cfg) == set()


def test_a_label_at_the_end_of_the_body_is_an_empty_block() -> None:
    cfg = build(function("@p bra DONE\nmov.b32\nDONE:"))
    assert edges(cfg) == {(0, 1), (0, 2), (1, 2)}
    assert list(cfg.blocks[2].points) == []
    assert [block.leaves for block in cfg.blocks] == [False, False, True]


def test_the_end_of_the_body_leaves_after_a_guarded_branch() -> None:
    cfg = build(function("TOP:\nmov.b32\n@p bra TOP"))
    assert edges(cfg) == {(0, 0)}
    assert cfg.blocks[0].leaves


def test_an_empty_body_is_one_empty_block() -> None:
    cfg = build(function(""))
    assert [(block.start, block.stop, block.leaves) for block in cfg.blocks] == [(0, 0, True)]


def test_labels_nobody_branches_to_split_nothing() -> None:
    assert len(build(function("mov.b32\nDEBUG:\nmov.b32\nret")).blocks) == 1


def test_a_call_falls_through_unless_its_callee_never_returns() -> None:
    called = function("call abort\nmov.b32\nret")
    assert len(build(called).blocks) == 1
    endless = build(called, frozenset({"abort"}))
    assert [block.leaves for block in endless.blocks] == [True, True]
    assert endless.reachable == {0}


NEST = """
    mov.b32
    OUTER:
    mov.b32
    INNER:
    mov.b32
    @p bra INNER
    @p bra OUTER
    ret
"""


def test_loops_nest_and_loops_with_one_header_are_one() -> None:
    cfg = build(function(NEST))
    outer, inner = cfg.loops
    assert (outer.header, outer.depth, outer.parent) == (1, 1, None)
    assert (inner.header, inner.depth, inner.parent) == (2, 2, outer.index)
    assert cfg.loop_blocks(outer) == {1, 2, 3}
    assert cfg.loop_blocks(inner) == {2}
    assert [loop.header for loop in cfg.enclosing_loops(2)] == [2, 1]
    two_latches = build(function("TOP:\nmov.b32\n@p bra TOP\n@p bra TOP\nret"))
    assert [(loop.header, loop.latches) for loop in two_latches.loops] == [(0, (0, 1))]


def test_an_infinite_loop_has_post_dominators() -> None:
    cfg = build(function("@p bra SPIN\nret\nSPIN:\nmov.b32\nbra SPIN"))
    assert list(cfg.immediate_post_dominators) == [cfg.exit, cfg.exit, cfg.exit]
    assert [loop.header for loop in cfg.loops] == [2]


def test_an_irreducible_cycle_is_reported_and_is_no_loop() -> None:
    cfg = build(function("@p bra B\nA:\nmov.b32\n@p bra OUT\nB:\nmov.b32\nbra A\nOUT:\nret"))
    assert cfg.loops == ()
    assert len(cfg.irreducible_edges) == 1


def dominators_by_definition(root: int, successors: list[list[int]]) -> list[int | None]:
    """`first` dominates `second` when removing it makes `second` unreachable."""
    reached = set(graph.reverse_postorder(root, successors))
    strict: dict[int, set[int]] = {node: set() for node in reached}
    for removed in reached - {root}:
        cut = [[t for t in targets if t != removed] for targets in successors]
        for node in reached - set(graph.reverse_postorder(root, cut)) - {removed}:
            strict[node].add(removed)
    for node in reached - {root}:
        strict[node].add(root)
    above = [strict.get(node, set()) for node in range(len(successors))]
    return [next((node for node in nodes if len(strict[node]) == len(nodes) - 1), None) for nodes in above]


graphs = st.integers(1, 9).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n)
)


def mirrored(successors: list[list[int]]) -> list[list[int]]:
    backward: list[list[int]] = [[] for _ in successors]
    for node, targets in enumerate(successors):
        for target in targets:
            backward[target].append(node)
    return backward


@given(graphs)
@settings(max_examples=300)
def test_dominators_agree_with_their_definition(successors: list[list[int]]) -> None:
    found = graph.dominator_tree(0, successors, mirrored(successors))
    assert found == dominators_by_definition(0, successors)


@given(graphs)
def test_every_node_reaches_the_virtual_exit(successors: list[list[int]]) -> None:
    order = graph.reverse_postorder(0, successors)
    leaving = [node for node in order if not successors[node]]
    forward, backward = graph.with_virtual_exit(successors, leaving, order)
    assert set(order) <= set(graph.reverse_postorder(len(successors), backward))
    assert list(map(sorted, mirrored(forward))) == list(map(sorted, backward))


@given(graphs)
@settings(max_examples=300)
def test_loop_nesting_agrees_with_its_definition(successors: list[list[int]]) -> None:
    backward = mirrored(successors)
    order = graph.reverse_postorder(0, successors)
    dominators = graph.dominator_tree(0, successors, backward)

    def dominates(first: int, second: int | None) -> bool:
        while second is not None and second != first:
            second = dominators[second]
        return second == first

    latches: dict[int, list[int]] = {}
    for node in order:
        for target in successors[node]:
            if dominates(target, node):
                latches.setdefault(target, []).append(node)
    blocks: dict[int, set[int]] = {}
    for header, sources in latches.items():
        blocks[header] = {header}
        stack = list(sources)
        while stack:
            node = stack.pop()
            if node not in blocks[header]:
                blocks[header].add(node)
                stack.extend(source for source in backward[node] if source in order)
    parents, innermost = graph.nest_loops(order, latches, backward)
    for node in order:
        holding = [header for header in latches if node in blocks[header]]
        assert innermost[node] == min(holding, key=lambda header: len(blocks[header]), default=None)
    for header, parent in parents.items():
        around = [other for other in latches if other != header and header in blocks[other]]
        assert parent == min(around, key=lambda other: len(blocks[other]), default=None)


def ladder(rungs: int) -> Function:
    """Blocks that each may branch to one common end, in loops over all of them: quadratic for naive walks."""
    body = [instruction("@p bra TRAP" if rung % 3 else "@p bra TOP", rung + 1) for rung in range(rungs)]
    body += [instruction("ret", rungs + 1), instruction("trap", rungs + 2)]
    labels = {"TOP": 0, "TRAP": rungs + 1}
    return Function("f", True, (), (), (), (), tuple(body), labels, {}, {}, (), None, Span(1))


def seconds_for_everything(rungs: int) -> float:
    began = time.process_time()
    cfg = build(ladder(rungs))
    assert cfg.immediate_dominators[rungs // 2] == rungs // 2 - 1
    assert list(cfg.immediate_post_dominators[:2]) == [1, cfg.exit]
    assert len(cfg.loops) == 1
    assert len(cfg.dominance_frontiers) == len(cfg.blocks)
    assert cfg.dominates(1, rungs // 2)
    assert not cfg.post_dominates(2, 1)
    return time.process_time() - began


def test_a_hundred_thousand_blocks_take_about_linear_time() -> None:
    small, large = seconds_for_everything(10_000), seconds_for_everything(100_000)
    assert large < 40 * small
    assert large < 60


def test_the_text_and_the_dot_graph_show_every_edge() -> None:
    cfg = build(function(DIAMOND))
    text, dot = render(cfg), render(cfg, dot=True)
    assert "B0:  // joins at B3 JOIN" in text
    assert "-> B2 THEN if @%p1, B1 if @!%p1" in text
    assert 'b0 -> b2 [label="@%p1"];' in dot
    assert dot.count("->") == 4 + 1
