"""Algorithms on directed graphs given as adjacency lists. None of them recurses; each is near-linear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Adjacency = Sequence[Sequence[int]]


def reverse_postorder(root: int, successors: Adjacency) -> list[int]:
    """The nodes that `root` reaches, each before its successors except along retreating edges."""
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(successors[root]))]
    while stack:
        node, rest = stack[-1]
        for target in rest:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(successors[target])))
                break
        else:
            order.append(node)
            stack.pop()
    order.reverse()
    return order


def dominator_tree(root: int, successors: Adjacency, predecessors: Adjacency) -> list[int | None]:
    """The immediate dominator of each node; None for the root and for nodes that it does not reach.

    Lengauer and Tarjan's algorithm in its simple form: O(edges * log nodes).
    """
    vertices, parents = _depth_first(root, successors)
    number = {node: place for place, node in enumerate(vertices)}
    semi = list(range(len(vertices)))
    forest = _Forest(semi)
    buckets: list[list[int]] = [[] for _ in vertices]
    dominators = [0] * len(vertices)
    for place in range(len(vertices) - 1, 0, -1):
        for source in predecessors[vertices[place]]:
            if source in number:
                semi[place] = min(semi[place], semi[forest.lowest(number[source])])
        buckets[semi[place]].append(place)
        parent = parents[place]
        forest.link(parent, place)
        for waiting in buckets[parent]:
            lowest = forest.lowest(waiting)
            dominators[waiting] = lowest if semi[lowest] < semi[waiting] else parent
        buckets[parent].clear()
    found: list[int | None] = [None] * len(successors)
    for place in range(1, len(vertices)):
        if dominators[place] != semi[place]:
            dominators[place] = dominators[dominators[place]]
        found[vertices[place]] = vertices[dominators[place]]
    return found


def _depth_first(root: int, successors: Adjacency) -> tuple[list[int], list[int]]:
    """The reached nodes in preorder, and for each the preorder number of its parent in the tree."""
    vertices: list[int] = []
    parents: list[int] = []
    seen: set[int] = set()
    stack = [(root, 0)]
    while stack:
        node, parent = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        place = len(vertices)
        vertices.append(node)
        parents.append(parent)
        stack.extend((target, place) for target in reversed(successors[node]) if target not in seen)
    return vertices, parents


class _Forest:
    """The forest of the dominator algorithm: for a node, the ancestor of least semidominator, by path compression."""

    def __init__(self, semi: list[int]) -> None:
        self._semi = semi
        self._ancestors = [-1] * len(semi)
        self._lowest = list(range(len(semi)))

    def link(self, parent: int, child: int) -> None:
        """Hang a finished child under its parent."""
        self._ancestors[child] = parent

    def lowest(self, node: int) -> int:
        """The node of least semidominator on the way from `node` up to, not including, the root of its tree."""
        ancestors, lowest, semi = self._ancestors, self._lowest, self._semi
        path = []
        runner = node
        while ancestors[runner] != -1 and ancestors[ancestors[runner]] != -1:
            path.append(runner)
            runner = ancestors[runner]
        for step in reversed(path):
            above = ancestors[step]
            if semi[lowest[above]] < semi[lowest[step]]:
                lowest[step] = lowest[above]
            ancestors[step] = ancestors[above]
        return lowest[node]


def with_virtual_exit(
    successors: Adjacency, leaving: Iterable[int], order: Sequence[int]
) -> tuple[list[list[int]], list[list[int]]]:
    """The graph with one node more, the exit, as (successors, predecessors); every node of `order` reaches it.

    The `leaving` nodes have an edge to it. Nodes that cannot reach one of them are given an edge from the last of them
    in `order`, again until none is left.
    """
    exit_node = len(successors)
    forward = [list(targets) for targets in successors] + [[]]
    backward: list[list[int]] = [[] for _ in forward]
    for node, targets in enumerate(forward):
        for target in targets:
            backward[target].append(node)
    seen = {exit_node}

    def leave(node: int) -> None:
        forward[node].append(exit_node)
        backward[exit_node].append(node)
        stack = [node]
        while stack:
            reached = stack.pop()
            if reached not in seen:
                seen.add(reached)
                stack.extend(backward[reached])

    for node in leaving:
        leave(node)
    for node in reversed(order):
        if node not in seen:
            leave(node)
    return forward, backward


def nest_loops(
    order: Sequence[int], latches: Mapping[int, Sequence[int]], predecessors: Adjacency
) -> tuple[dict[int, int | None], list[int | None]]:
    """How natural loops nest, as (header to the header around it, node to its innermost header).

    `order` is a reverse postorder of the reachable nodes; `latches` maps each header to the sources of its back edges.
    Inner headers come later in `order`, so they are finished first and then stand for their whole loop.
    """
    reachable = set(order)
    parents: dict[int, int | None] = {}
    innermost: list[int | None] = [None] * len(predecessors)
    outermost: dict[int, int] = {}

    def representative(header: int) -> int:
        path = []
        while header in outermost:
            path.append(header)
            header = outermost[header]
        for step in path:
            outermost[step] = header
        return header

    for header in reversed(order):
        if header not in latches:
            continue
        parents[header] = None
        inner = innermost[header]
        innermost[header] = header
        stack = [latch for latch in latches[header] if latch != header]
        while stack:
            node = stack.pop()
            inner = innermost[node]
            if inner is None:
                innermost[node] = header
                stack.extend(source for source in predecessors[node] if source in reachable)
                continue
            top = representative(inner)
            if top == header:
                continue
            parents[top] = header
            outermost[top] = header
            stack.extend(source for source in predecessors[top] if source in reachable)
    return parents, innermost
