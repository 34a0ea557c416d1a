"""Whether two instructions, some laps of a loop apart, touch the same bytes of shared memory.

Addresses are evaluated for all threads of a block under assignments that some launch has: a few laps of each loop whose
counters they depend on, and numbers for parameters and unknown results. Two touches overlap when they do under each
choice of those numbers, in at least one lap. What cannot be evaluated does not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.analyses.assignment import Assignment, Ground, Loops, Unpredictable
from ptxlint.analyses.value import Constant, LeafKind, Value, leaves
from ptxlint.analyses.values import base_symbol
from ptxlint.isa.row import Access

if TYPE_CHECKING:
    from ptxlint.facts import Facts

LAPS = 12
"""How many laps of a loop are tried: more than rings have slots."""
CHOICES = 48
"""How many combinations of laps are tried when addresses depend on several loops."""
WORD = 4
"""Bytes are compared in words of this size."""
LEAST = 16
"""Bytes that a copy of unknown size certainly moves: the least that the ISA allows."""
SEEDS = 3
"""How many choices of numbers for what nothing says must agree."""


@dataclass(frozen=True, slots=True)
class Touch:
    """An access by the instruction at `index` through the operand with that role, by the threads whose bits are set."""

    index: int
    access: Access
    threads: int


@dataclass(frozen=True, slots=True)
class Question:
    """What else must hold when two touches meet.

    of_two_threads: the bytes are those of two threads. is_gone: whether the early touch is over by then, given both
    touches and the laps of the loops at the early one and the late one.
    """

    of_two_threads: bool = False
    is_gone: Callable[[Touch, Touch, Mapping[int, int], Mapping[int, int]], bool] | None = None


class Overlaps:
    """Answers for one function, remembered."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[tuple[object, ...], bool] = {}
        self.loops = Loops(facts.cfg, facts.values)
        self._grounds: dict[tuple[int, Sequence[int]], Ground] = {}
        self._words: dict[tuple[object, ...], Mapping[int, int] | None] = {}

    def meet(self, early: Touch, late: Touch, laps: Mapping[int, int], limit: int, question: Question) -> bool:
        """Whether the touches share bytes when control came to the head of each loop `laps` times between them.

        A count of `limit` stands for itself and more.
        """
        key = (early, late, tuple(sorted(laps.items())), question)
        if key not in self._known:
            self._known[key] = self._meet(early, late, laps, limit, question)
        return self._known[key]

    def _meet(self, early: Touch, late: Touch, laps: Mapping[int, int], limit: int, question: Question) -> bool:
        first, second = self._address(early), self._address(late)
        if first is None or second is None:
            return False
        bases = base_symbol(first), base_symbol(second)
        if None not in bases and bases[0] != bases[1]:
            return False
        seeds = self._seeds(first, second)
        for now, then in self._laps(early, late, (first, second), laps, limit):
            meets = all(self._share(early, late, (then, now), seed, question.of_two_threads) for seed in seeds)
            if meets and not (question.is_gone and question.is_gone(early, late, then, now)):
                return True
        return False

    def _address(self, touch: Touch) -> Value | None:
        return self._facts.values.role(touch.index, touch.access.role)

    def _seeds(self, first: Value, second: Value) -> range:
        is_free = any(leaf.kind is not LeafKind.SYMBOL for value in (first, second) for leaf in leaves(value))
        return range(SEEDS if is_free else 1)

    def _laps(
        self, early: Touch, late: Touch, addresses: Sequence[Value], laps: Mapping[int, int], limit: int
    ) -> Iterator[tuple[Mapping[int, int], Mapping[int, int]]]:
        """Pairs (lap of each loop at the late touch, at the early one) that the counts allow."""
        around = {loop.header for loop in self._facts.cfg.enclosing_loops(self._facts.cfg.block_of[early.index])}
        headers = sorted({*(around & set(laps)), *(h for value in addresses for h in self.loops.headers(value))})
        fixed = self.loops.headers(addresses[0])
        if any(laps.get(outer, 0) for header in fixed for outer in self._outer(header)):
            return
        choices = [self._choices(early, late, header, laps, limit) for header in headers]
        for combination in islice(product(*choices), CHOICES):
            now = {header: pair[0] for header, pair in zip(headers, combination, strict=True)}
            then = {header: pair[1] for header, pair in zip(headers, combination, strict=True)}
            yield now, then

    def _choices(
        self, early: Touch, late: Touch, header: int, laps: Mapping[int, int], limit: int
    ) -> Sequence[tuple[int, int]]:
        cfg = self._facts.cfg
        passed = laps.get(header, 0)
        early_loops = {loop.header for loop in cfg.enclosing_loops(cfg.block_of[early.index])}
        late_loops = {loop.header for loop in cfg.enclosing_loops(cfg.block_of[late.index])}
        if header in early_loops:
            return () if passed == limit else [(lap, lap - passed) for lap in range(passed, passed + LAPS)]
        if passed and header in late_loops:
            last = passed if passed < limit else passed + LAPS
            return [(lap, lap) for lap in range(passed - 1, last)]
        return [(lap, lap) for lap in range(LAPS)]

    def _outer(self, header: int) -> frozenset[int]:
        """The loops around a loop."""
        return frozenset(loop.header for loop in self._facts.cfg.enclosing_loops(header)) - {header}

    def _share(
        self,
        early: Touch,
        late: Touch,
        laps: tuple[Mapping[int, int], Mapping[int, int]],
        seed: int,
        other_thread: bool,
    ) -> bool:
        threads = self._facts.threads.sample(early.threads, late.threads)
        first = self._touched(early, laps[0], seed, threads)
        second = self._touched(late, laps[1], seed, threads)
        if first is None or second is None:
            return False
        small, large = sorted((first, second), key=len)
        if not small or max(small) < min(large) or max(large) < min(small):
            return False
        if not other_thread:
            return any(word in large for word in small)
        return any(word in large and _are_several(large[word] | small[word]) for word in small)

    def _touched(
        self, touch: Touch, laps: Mapping[int, int], seed: int, threads: Sequence[int]
    ) -> Mapping[int, int] | None:
        """The words that a touch covers, each with the threads that touch it; None when that is not known."""
        key = (touch, tuple(sorted(laps.items())), seed, threads)
        if key not in self._words:
            try:
                self._words[key] = self._footprint(touch, laps, seed, threads)
            except Unpredictable:
                self._words[key] = None
        return self._words[key]

    def _footprint(self, touch: Touch, laps: Mapping[int, int], seed: int, threads: Sequence[int]) -> Mapping[int, int]:
        address = self._address(touch)
        assert address is not None
        assignment = Assignment(self.ground(seed, threads), laps)
        number = assignment.number(address)
        present = touch.threads & assignment.threads_at(touch.index)
        size = self._size(touch)
        words: dict[int, int] = {}
        if isinstance(number, int):
            return dict.fromkeys(_words(number, size), present) if present else {}
        for thread, place in zip(threads, number, strict=True):
            if present >> thread & 1:
                for word in _words(place, size):
                    words[word] = words.get(word, 0) | 1 << thread
        return words

    def ground(self, seed: int, threads: Sequence[int]) -> Ground:
        """The values that no loop changes, for these threads."""
        key = (seed, threads)
        if key not in self._grounds:
            self._grounds[key] = Ground(self._facts, self.loops, seed, threads)
        return self._grounds[key]

    def _size(self, touch: Touch) -> int:
        instruction = self._facts.cfg.body[touch.index]
        size = isa.access_bytes(instruction, touch.access)
        if size is None and touch.access.size is not None:
            value = self._facts.values.role(touch.index, touch.access.size)
            size = value.value if isinstance(value, Constant) else None
        return size or LEAST


def _are_several(threads: int) -> bool:
    return threads & (threads - 1) != 0


def _words(place: int, size: int) -> range:
    place &= 0xFFFFFFFF
    return range(place // WORD, (place + size - 1) // WORD + 1)
