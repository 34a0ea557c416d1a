"""Numbers for the leaves of symbolic values at chosen laps of the loops, and which threads still run those laps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ptxlint.analyses.evaluation import Evaluation, Number
from ptxlint.analyses.value import Apply, Constant, Leaf, LeafKind, Literal, Sum, Value, leaves
from ptxlint.analyses.values import Values
from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass

if TYPE_CHECKING:
    from ptxlint.facts import Facts

_ROOM = 1 << 20
"""Bytes between the addresses that symbols are given."""


LONGEST = 1024
"""How many laps a loop is followed to find the one in which it ends."""


class Unpredictable(Exception):  # noqa: N818, it is named like what the value is
    """A value that cannot be evaluated at a lap of a loop."""


@dataclass(frozen=True, slots=True)
class Test:
    """A branch out of a loop that each lap passes: threads stay where the literal holds."""

    block: int
    stays: Literal


class Loops:
    """What the counters of a function's loops do, and what ends the loops."""

    def __init__(self, cfg: Cfg, values: Values) -> None:
        self._cfg = cfg
        self._values = values
        self._nexts: dict[Leaf, Value | None] = {}
        self._tests: dict[int, Sequence[Test]] = {}
        self._conditions: dict[tuple[int, int], Sequence[Literal]] = {}
        self._depends: dict[Value, frozenset[Leaf]] = {}
        self._headers: dict[Value, frozenset[int]] = {}
        self._most: dict[int, int | None] = {}

    @cached_property
    def _of_header(self) -> Mapping[int, int]:
        return {loop.header: loop.index for loop in self._cfg.loops}

    def is_counter(self, leaf: Leaf) -> bool:
        """Whether a leaf is what a register holds at the head of a loop."""
        return leaf.kind is LeafKind.MERGE and leaf.place in self._of_header

    def headers(self, value: Value) -> frozenset[int]:
        """The loops whose counters a value depends on, also by way of their first values."""
        if value not in self._headers:
            seen: set[Leaf] = set()
            stack = [value]
            while stack:
                for leaf in leaves(stack.pop()):
                    if leaf not in seen and self.is_counter(leaf):
                        seen.add(leaf)
                        stack.extend(brought for _, brought in self._values.incoming(leaf))
            self._headers[value] = frozenset(leaf.place for leaf in seen)
        return self._headers[value]

    def first(self, counter: Leaf) -> Value:
        """What a counter is in lap 0. Raises Unpredictable when that depends on the path."""
        return self._only(self._brought(counter, is_first=True))

    def following(self, counter: Leaf) -> Value:
        """What a counter is in the next lap, by the counters of this one. Raises Unpredictable."""
        if counter not in self._nexts:
            brought = self._brought(counter, is_first=False)
            is_known = len(brought) == 1 and not any(self._moves(leaf, counter.place) for leaf in leaves(brought[0]))
            self._nexts[counter] = brought[0] if is_known else None
        return self._only([value for value in [self._nexts[counter]] if value is not None])

    def closure(self, counter: Leaf) -> Sequence[Leaf]:
        """The counters of the same loop that the next laps of one depend on, itself first. Raises Unpredictable."""
        found = [counter]
        for one in found:
            for leaf in leaves(self.following(one)):
                if self.is_counter(leaf) and leaf.place == counter.place and leaf not in found:
                    found.append(leaf)
        return found

    def tests(self, header: int) -> Sequence[Test]:
        """The branches out of a loop that each of its laps passes."""
        if header not in self._tests:
            loop = self._cfg.loops[self._of_header[header]]
            inside = self._cfg.loop_blocks(loop)
            found = []
            for block in inside:
                stays = [edge for edge in self._cfg.blocks[block].successors if edge.target in inside]
                is_passed = all(self._cfg.dominates(block, latch) for latch in loop.latches)
                literal = self._values.along(stays[0]) if len(stays) == 1 else None
                if is_passed and literal is not None and len(self._cfg.blocks[block].successors) == 2:
                    found.append(Test(block, literal))
            self._tests[header] = found
        return self._tests[header]

    def most_laps(self, header: int) -> int | None:
        """The most laps that a loop can make; None where nothing says it.

        A remainder loop counts to a number from a rest of a division: `n & 3`, in steps of one.
        """
        if header not in self._most:
            known = [most for test in self.tests(header) if (most := self._most_by(test, header)) is not None]
            self._most[header] = min(known, default=None)
        return self._most[header]

    def _most_by(self, test: Test, header: int) -> int | None:
        """The most laps up to a test that a counter is no longer other than a number, for each rest that it may begin
        with; nobody lets a rest run through all integers that does not get there."""
        match test.stays:
            case Apply("eq", _, (difference, Constant(0))), False:
                pass
            case _:
                return None
        counter, factor, constant = _linear(difference)
        if counter is None or not isinstance(counter, Leaf) or not self.is_counter(counter) or counter.place != header:
            return None
        try:
            stepped, times, step = _linear(self.following(counter))
            rest, sign, start = _linear(self.first(counter))
        except Unpredictable:
            return None
        if stepped is not counter or times != 1 or step == 0 or rest is None:
            return None
        first = (factor * (sign * value + start) + constant for value in _rests(rest))
        laps = [-value // (factor * step) for value in first if value % (factor * step) == 0]
        return max((lap + 1 for lap in laps if lap >= 0), default=None)

    def approaches(self) -> Iterator[tuple[Value, Value, int]]:
        """The tests that end a loop when a counter is equal to a number, and steps of one lead to it: the predicate,
        the difference that is then 0, and what a lap adds to it."""
        for header in self._of_header:
            for test in self.tests(header):
                match test.stays:
                    case Apply("eq", _, (difference, Constant(0))) as ends, False:
                        step = self._step(difference, header)
                        if step in (1, -1):
                            yield ends, difference, step

    def _step(self, value: Value, header: int) -> int | None:
        """What a lap of a loop adds to a value; None where that is not always the same."""
        terms = value.terms if isinstance(value, Sum) else ((value, 1),)
        total = 0
        for term, factor in terms:
            if isinstance(term, Leaf) and self.is_counter(term) and term.place == header:
                try:
                    stepped, times, step = _linear(self.following(term))
                except Unpredictable:
                    return None
                if stepped is not term or times != 1:
                    return None
                total += factor * step
            elif any(self.changes(leaf, header) for leaf in leaves(term)):
                return None
        return total

    def conditions(self, block: int, header: int) -> Sequence[Literal]:
        """What holds whenever control comes to a block of a loop, by the branches since the loop's head.

        How an inner loop ends is no condition: control that has come to it will leave it.
        """
        key = (block, header)
        if key not in self._conditions:
            found = []
            runner = block
            own = self._cfg.loop_of[header]
            while runner != header and (above := self._cfg.immediate_dominators[runner]) is not None:
                for edge in self._cfg.blocks[above].successors if self._cfg.loop_of[above] == own else ():
                    is_only_way = len(self._cfg.blocks[edge.target].predecessors) == 1
                    if is_only_way and self._cfg.dominates(edge.target, runner):
                        literal = self._values.along(edge)
                        found += [] if literal is None else [literal]
                runner = above
            self._conditions[key] = found
        return self._conditions[key]

    def is_determined(self, value: Value, laps: Mapping[int, int]) -> bool:
        """Whether a value depends on nothing but threads, symbols and counters that depend on nothing else."""
        for leaf in self._dependencies(value):
            is_of_thread = leaf.kind is LeafKind.SPECIAL and leaf.name.startswith(("%tid", "%laneid", "%warpid"))
            is_known_counter = self.is_counter(leaf) and leaf.place in laps
            if not (is_of_thread or is_known_counter or leaf.kind is LeafKind.SYMBOL):
                return False
        return True

    def _dependencies(self, value: Value) -> frozenset[Leaf]:
        """The leaves of a value and of all that its counters ever hold; a counter that moves oddly is its own end."""
        if value not in self._depends:
            found: set[Leaf] = set()
            stack = list(leaves(value))
            while stack:
                leaf = stack.pop()
                if leaf in found:
                    continue
                found.add(leaf)
                if self.is_counter(leaf):
                    try:
                        stack.extend((*leaves(self.first(leaf)), *leaves(self.following(leaf))))
                    except Unpredictable:
                        found.update(other for _, brought in self._values.incoming(leaf) for other in leaves(brought))
            self._depends[value] = frozenset(found)
        return self._depends[value]

    def _brought(self, counter: Leaf, is_first: bool) -> Sequence[Value]:
        """What the edges into a loop, or those back to its head, bring."""
        incoming = self._values.incoming(counter)
        values = (
            value
            for block, value in incoming
            if (block < 0 or not self._cfg.dominates(counter.place, block)) is is_first
        )
        return tuple(dict.fromkeys(values))

    def _only(self, values: Sequence[Value]) -> Value:
        if len(values) != 1:
            raise Unpredictable
        return values[0]

    def changes(self, leaf: Leaf, header: int) -> bool:
        """Whether a leaf may change from lap to lap of a loop."""
        if leaf.kind not in (LeafKind.UNKNOWN, LeafKind.MERGE) or leaf.place < 0:
            return False
        block = leaf.place if leaf.kind is LeafKind.MERGE else self._cfg.block_of[leaf.place]
        return any(loop.header == header for loop in self._cfg.enclosing_loops(block))

    def _moves(self, leaf: Leaf, header: int) -> bool:
        """Whether a leaf changes from lap to lap of a loop without being a counter of it."""
        is_own_counter = leaf.kind is LeafKind.MERGE and leaf.place == header
        return not is_own_counter and self.changes(leaf, header)


class Ground:
    """What the values that no lap of a loop changes are, for some threads and one choice of unknown numbers."""

    def __init__(self, facts: Facts, loops: Loops, seed: int, threads: Sequence[int]) -> None:
        self.facts = facts
        self.loops = loops
        self.threads = threads
        self._seed = seed
        self.evaluation = Evaluation(self.leaf, threads)
        self.counters: dict[tuple[Leaf, tuple[int | None, ...]], Number] = {}
        self._holds: dict[Value, bool] = {}
        self._last: dict[int, int | None] = {}

    def holds(self, value: Value) -> bool:
        """Whether a value is the same in all laps of all loops."""
        if value not in self._holds:
            self._holds[value] = not any(map(self.loops.is_counter, leaves(value)))
        return self._holds[value]

    def last_lap(self, header: int) -> int | None:
        """The lap in which a loop ends for all threads; None when their numbers do not tell, or not soon enough."""
        if header not in self._last:
            self._last[header] = self._found_last_lap(header)
        return self._last[header]

    def _found_last_lap(self, header: int) -> int | None:
        tests = self.loops.tests(header)
        if len(tests) != 1 or not self.loops.is_determined(tests[0].stays[0], {header: 0}):
            return None
        everybody = sum(1 << thread for thread in self.threads)
        try:
            for lap in range(LONGEST):
                staying = Assignment(self, {header: lap}).where(tests[0].stays, -1)
                if staying != everybody:
                    return lap if staying == 0 else None
        except Unpredictable:
            return None
        return None

    def leaf(self, leaf: Leaf) -> Number:
        """The number of a leaf that is no counter."""
        match leaf.kind:
            case LeafKind.SYMBOL:
                return _place(self.facts.variables, leaf.name)
            case LeafKind.SPECIAL:
                try:
                    return self.facts.threads.leaf(leaf, self.threads)
                except KeyError:
                    return self.facts.threads.count if leaf.name == "%ntid.x" else self.chosen(leaf)
        return self.chosen(leaf)

    def chosen(self, leaf: Leaf) -> int:
        """Some number, a multiple of 1024, that depends on the seed."""
        return 1024 * (1 + (leaf.serial * 7919 + self._seed * 104729) % 8191)


class Assignment:
    """Numbers for the leaves of values, each loop at a lap."""

    def __init__(self, ground: Ground, laps: Mapping[int, int]) -> None:
        self._ground = ground
        self._loops = ground.loops
        self._threads = ground.threads
        self._laps = laps
        self._evaluation = Evaluation(self._leaf, ground.threads, ground.evaluation, ground.holds)

    def number(self, value: Value) -> Number:
        """What a value is at these laps. Raises Unpredictable."""
        return self._evaluation.number(value)

    def threads_at(self, index: int) -> int:
        """The threads, as bits, that run the instruction at these laps, as far as their numbers alone decide it.

        A loop that does not hold the instruction is taken to end in its lap; `Ground.last_lap` says which one that is.
        """
        cfg = self._ground.facts.cfg
        block = cfg.block_of[index]
        running = sum(1 << thread for thread in self._threads)
        around = {loop.header for loop in cfg.enclosing_loops(block)}
        for header in self._laps:
            if not cfg.dominates(header, block):
                continue
            tests = self._loops.tests(header)
            determined = [test for test in tests if self._loops.is_determined(test.stays[0], self._laps)]
            if header in around:
                for test in determined:
                    running &= self._staying(header, test, self._laps[header])
                for literal in self._loops.conditions(block, header):
                    running &= self.where(literal, -1)
        return running

    def where(self, literal: Literal, otherwise: int) -> int:
        """The threads in which a predicate holds at these laps; `otherwise` when their numbers do not decide it."""
        value, truth = literal
        if not self._loops.is_determined(value, self._laps):
            return otherwise
        vector = self._evaluation.vector(value)
        return sum(1 << t for t, holds in zip(self._threads, vector, strict=True) if bool(holds) is truth)

    def _staying(self, header: int, test: Test, laps: int) -> int:
        """The threads that pass a test in each of the first laps."""
        staying = -1
        for lap in range(laps):
            earlier = Assignment(self._ground, {**self._laps, header: lap})
            staying &= earlier.where(test.stays, -1)
        return staying

    def _leaf(self, leaf: Leaf) -> Number:
        is_counted = leaf.kind is LeafKind.MERGE and leaf.place in self._laps
        return self._counter(leaf) if is_counted else self._ground.leaf(leaf)

    def _counter(self, leaf: Leaf) -> Number:
        """What a register holds at the head of its loop in the lap that was chosen."""
        known = self._ground.counters
        headers = sorted(self._loops.headers(leaf) - {leaf.place})
        around = tuple(self._laps.get(header) for header in headers)
        lap = self._laps[leaf.place]
        if (leaf, (*around, lap)) not in known:
            counters = self._loops.closure(leaf)
            start = next((n for n in range(lap, 0, -1) if all((c, (*around, n)) in known for c in counters)), 0)
            numbers = {
                counter: known[counter, (*around, start)] if start else self.number(self._loops.first(counter))
                for counter in counters
            }
            for _ in range(start, lap):
                step = Evaluation(_Lap(self._leaf, numbers), self._threads, self._ground.evaluation, self._ground.holds)
                numbers = {counter: step.number(self._loops.following(counter)) for counter in counters}
            known.update({(counter, (*around, lap)): number for counter, number in numbers.items()})
        return known[leaf, (*around, lap)]


class _Lap:
    """The leaves during one lap: the counters of its loop have the numbers they had at its head."""

    def __init__(self, outside: Callable[[Leaf], Number], numbers: Mapping[Leaf, Number]) -> None:
        self._outside = outside
        self._numbers = numbers

    def __call__(self, leaf: Leaf) -> Number:
        return self._numbers[leaf] if leaf in self._numbers else self._outside(leaf)


def _linear(value: Value) -> tuple[Value | None, int, int]:
    """A value as one term times a factor and a constant; no term where there are more, or none."""
    match value:
        case Sum(constant, ((term, factor),)):
            return term, factor, constant
        case Leaf() | Apply():
            return value, 1, 0
    return None, 0, 0


def _rests(value: Value) -> range:
    """What a rest of a division by a constant may be; nothing for other values."""
    match value:
        case Apply("and", _, (_, Constant(mask)) | (Constant(mask), _)) if 0 <= mask < LONGEST:
            return range(mask + 1)
        case Apply("rem", type_name, (_, Constant(divisor))) if type_name.startswith("u") and divisor <= LONGEST:
            return range(divisor)
    return range(0)


def _place(symbols: Iterable[str], symbol: str) -> int:
    """An address for a symbol, apart from all others."""
    names = sorted(symbols)
    return _ROOM * (1 + (names.index(symbol) if symbol in names else len(names) + 1))
