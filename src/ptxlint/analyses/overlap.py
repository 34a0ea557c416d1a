"""Whether two instructions, some laps of a loop apart, touch the same bytes of shared memory.

Addresses are evaluated for all threads of a block under assignments that some launch has: a few laps of each loop whose
counters they depend on, and numbers for parameters and unknown results. Two touches overlap when they do under each
choice of those numbers, in at least one lap. What cannot be evaluated does not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import islice, product
from typing import TYPE_CHECKING, TypeAlias

from ptxlint import isa
from ptxlint.analyses.assignment import Assignment, Ground, Loops, Unpredictable
from ptxlint.analyses.evaluation import WARP
from ptxlint.analyses.threads import MOST
from ptxlint.analyses.value import Constant, LeafKind, Value, leaves
from ptxlint.analyses.values import base_symbol
from ptxlint.classes import dataclass
from ptxlint.isa.row import Access

if TYPE_CHECKING:
    from ptxlint.facts import Facts

LAPS = 8
"""How many laps of a loop are tried: as many as rings have slots. An address that goes on from lap to lap would run
into other memory after more of them than the loop makes."""
CHOICES = 24
"""How many combinations of laps are tried when addresses depend on several loops."""
WORD = 4
"""Bytes are compared in words of this size."""
_ALL_WARPS = sum(1 << warp * WARP for warp in range(MOST // WARP))
"""The first thread of each warp that a block may have, as bits."""
LEAST = 16
"""Bytes that a copy of unknown size certainly moves: the least that the ISA allows."""
SEEDS = 3
"""How many choices of numbers for what nothing says must agree."""


@dataclass(frozen=True, slots=True)
class Touch:
    """`size` bytes where the operand with that role points, touched by the threads whose bits are set."""

    index: int
    role: str
    size: int
    threads: int


class Parties(Enum):
    """Whose bytes two touches share."""

    ANY = auto()
    THREADS = auto()
    WARPS = auto()


@dataclass(frozen=True, slots=True)
class Question:
    """What else must hold when two touches meet.

    parties: whose bytes they are. is_gone: whether the early touch is over by then, given both
    touches and the laps of the loops at the early one and the late one.
    """

    parties: Parties = Parties.ANY
    is_gone: Callable[[Touch, Touch, Mapping[int, int], Mapping[int, int]], bool] | None = None


Laps: TypeAlias = tuple[tuple[int, int], ...]
"""The lap of each loop, given by its head, that matters to an address."""


@dataclass(frozen=True, slots=True)
class _Footprint:
    """The words that a touch covers, each with the threads that touch it as bits."""

    words: Mapping[int, int]
    low: int
    high: int


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """The laps of the loops at a late touch and at the one before, and the choices of numbers that must agree."""

    now: Laps
    then: Laps
    grounds: Sequence[Ground]


@dataclass(frozen=True, slots=True, eq=False)
class _Team:
    """Touches by the same threads whose addresses have one base and depend on the same loops, in the same loops: what
    is asked of one of them is asked of all at the same laps.
    """

    touches: Sequence[Touch]


class Overlaps:
    """Answers for one function, remembered."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.loops = Loops(facts.cfg, facts.values)
        self._known: dict[tuple[Touch, Touch, Laps, Question], bool] = {}
        self._grounds: dict[tuple[int, Sequence[int]], Ground] = {}
        self._footprints: dict[tuple[Touch | _Team, Laps, Ground], _Footprint | None] = {}
        self._teams: dict[Sequence[Touch], Sequence[_Team]] = {}
        self._sizes: dict[tuple[int, str], int] = {}
        self._addresses: dict[tuple[int, str], Value | None] = {}

    def touch(self, index: int, access: Access, threads: int) -> Touch:
        """What an access of an instruction touches; the least that it may move where its size is unknown."""
        key = (index, access.role)
        if key not in self._sizes:
            self._sizes[key] = self._size(index, access)
        return Touch(index, access.role, self._sizes[key], threads & self._naming(index, access))

    def _naming(self, index: int, access: Access) -> int:
        """The threads whose addresses count, as bits."""
        lanes = isa.naming_lanes(self._facts.cfg.body[index], access)
        everybody = self._facts.threads.everybody.threads
        return everybody if lanes is None else everybody & _ALL_WARPS * ((1 << lanes) - 1)

    def _size(self, index: int, access: Access) -> int:
        size = isa.access_bytes(self._facts.cfg.body[index], access)
        if size is None and access.size is not None:
            value = self._facts.values.role(index, access.size)
            size = value.value if isinstance(value, Constant) else None
        return size or LEAST

    def near(self, earlier: tuple[Touch, ...], late: Touch, laps: Laps, limit: int) -> frozenset[Touch]:
        """Those of some touches that may share bytes with a late one, see `meet`. Those that are alike are asked
        together."""
        if earlier not in self._teams:
            self._teams[earlier] = self._grouped(earlier)
        teams = (team for team in self._teams[earlier] if self._may_meet(team, late, laps, limit))
        return frozenset(touch for team in teams for touch in team.touches)

    def _grouped(self, touches: Iterable[Touch]) -> Sequence[_Team]:
        teams: dict[object, list[Touch]] = {}
        for touch in touches:
            address = self._address(touch)
            if address is not None:
                is_free = len(self._seeds(address, address)) > 1
                key = (base_symbol(address), is_free, self.loops.headers(address), self._around(touch.index))
                teams.setdefault((touch.threads, *key), []).append(touch)
        return [_Team(tuple(members)) for members in teams.values()]

    def _may_meet(self, team: _Team, late: Touch, laps: Laps, limit: int) -> bool:
        """Whether a late touch shares bytes with any of a team; whether they are gone by then is not asked."""
        cases = self._cases(team.touches[0], late, laps, limit)
        return any(self._all_share(team, late, case, Question()) for case in cases)

    def meet(self, early: Touch, late: Touch, laps: Laps, limit: int, question: Question) -> bool:
        """Whether the touches share bytes when control came to the head of each loop that often between them.

        A count of `limit` stands for itself and more.
        """
        key = (early, late, laps, question)
        if key not in self._known:
            self._known[key] = self._meet(early, late, laps, limit, question)
        return self._known[key]

    def _meet(self, early: Touch, late: Touch, laps: Laps, limit: int, question: Question) -> bool:
        for case in self._cases(early, late, laps, limit):
            if self._all_share(early, late, case, question) and not (
                question.is_gone and question.is_gone(early, late, dict(case.then), dict(case.now))
            ):
                return True
        return False

    def _cases(self, early: Touch, late: Touch, laps: Laps, limit: int) -> Iterator[_Case]:
        """The laps at which two touches may share bytes, with all choices of numbers; none where bases differ."""
        first, second = self._address(early), self._address(late)
        if first is None or second is None:
            return
        bases = base_symbol(first), base_symbol(second)
        if None not in bases and bases[0] != bases[1]:
            return
        threads = self._facts.threads.sample(early.threads, late.threads)
        grounds = [self.ground(seed, threads) for seed in self._seeds(first, second)]
        for now, then in self._laps(early, late, (first, second), dict(laps), limit, grounds[0]):
            yield _Case(now, then, grounds)

    def _all_share(self, early: Touch | _Team, late: Touch, case: _Case, question: Question) -> bool:
        """Whether a touch, or one of a team, shares bytes with a late one for each choice of numbers."""
        return all(
            _share(
                self._footprint(early, case.then, ground),
                self._footprint(late, case.now, ground),
                question.parties,
            )
            for ground in case.grounds
        )

    def _address(self, touch: Touch) -> Value | None:
        key = (touch.index, touch.role)
        if key not in self._addresses:
            self._addresses[key] = self._facts.values.role(*key)
        return self._addresses[key]

    def _seeds(self, first: Value, second: Value) -> range:
        is_free = any(leaf.kind is not LeafKind.SYMBOL for value in (first, second) for leaf in leaves(value))
        return range(SEEDS if is_free else 1)

    def _laps(
        self,
        early: Touch,
        late: Touch,
        addresses: tuple[Value, Value],
        laps: Mapping[int, int],
        limit: int,
        ground: Ground,
    ) -> Iterator[tuple[Laps, Laps]]:
        """Pairs (lap of each loop at the late touch, at the early one) that the counts allow."""
        fixed = self.loops.headers(addresses[0])
        if any(laps.get(outer, 0) for header in fixed for outer in self._outer(header)):
            return
        headers = sorted({*(self._around(early.index) & set(laps)), *fixed, *self.loops.headers(addresses[1])})
        choices = [self._choices(early, late, header, laps, limit, ground) for header in headers]
        for combination in islice(product(*choices), CHOICES):
            now = tuple((header, pair[0]) for header, pair in zip(headers, combination, strict=True))
            then = tuple((header, pair[1]) for header, pair in zip(headers, combination, strict=True))
            yield now, then

    def _choices(
        self, early: Touch, late: Touch, header: int, laps: Mapping[int, int], limit: int, ground: Ground
    ) -> Sequence[tuple[int, int]]:
        passed = laps.get(header, 0)
        most = self.loops.most_laps(header)
        tried = LAPS if most is None else min(LAPS, most)
        last = None if header in self._around(late.index) else ground.last_lap(header)
        if last is not None and header in self._around(early.index):
            return [(last, last - passed)] if passed <= last and passed < limit else ()
        if header in self._around(early.index):
            is_far = passed == limit or (most is not None and passed >= most)
            return () if is_far else [(lap, lap - passed) for lap in range(passed, max(passed + 1, tried))]
        if passed and header in self._around(late.index):
            end = passed if passed < limit else max(passed, tried)
            return [(lap, lap) for lap in range(passed - 1, end)]
        return [(lap, lap) for lap in range(tried)]

    def _around(self, index: int) -> frozenset[int]:
        """The heads of the loops around an instruction."""
        cfg = self._facts.cfg
        return frozenset(loop.header for loop in cfg.enclosing_loops(cfg.block_of[index]))

    def _outer(self, header: int) -> frozenset[int]:
        """The heads of the loops around a loop."""
        return frozenset(loop.header for loop in self._facts.cfg.enclosing_loops(header)) - {header}

    def _footprint(self, touch: Touch | _Team, laps: Laps, ground: Ground) -> _Footprint | None:
        """The words that a touch, or a team, covers at these laps; None when that is not known or there are none."""
        key = (touch, laps, ground)
        if key not in self._footprints:
            members = touch.touches if isinstance(touch, _Team) else ()
            parts = [part for member in members if (part := self._footprint(member, laps, ground)) is not None]
            words = _united(parts) if isinstance(touch, _Team) else self._known_words(touch, laps, ground)
            self._footprints[key] = _Footprint(words, min(words), max(words)) if words else None
        return self._footprints[key]

    def _known_words(self, touch: Touch, laps: Laps, ground: Ground) -> Mapping[int, int]:
        """The words that a touch covers, each with its threads; none when they cannot be predicted."""
        try:
            return self._words(touch, Assignment(ground, dict(laps)), ground.threads)
        except Unpredictable:
            return {}

    def _words(self, touch: Touch, assignment: Assignment, threads: Sequence[int]) -> Mapping[int, int]:
        address = self._address(touch)
        assert address is not None
        number = assignment.number(address)
        present = touch.threads & assignment.threads_at(touch.index)
        if isinstance(number, int):
            return dict.fromkeys(_covered(number, touch.size), present) if present else {}
        words: dict[int, int] = {}
        for thread, place in zip(threads, number, strict=True):
            if present >> thread & 1:
                for word in _covered(place, touch.size):
                    words[word] = words.get(word, 0) | 1 << thread
        return words

    def ground(self, seed: int, threads: Sequence[int]) -> Ground:
        """The values that no loop changes, for these threads."""
        key = (seed, threads)
        if key not in self._grounds:
            self._grounds[key] = Ground(self._facts, self.loops, seed, threads)
        return self._grounds[key]


def _united(parts: Iterable[_Footprint]) -> Mapping[int, int]:
    words: dict[int, int] = {}
    for part in parts:
        for word, threads in part.words.items():
            words[word] = words.get(word, 0) | threads
    return words


def _share(first: _Footprint | None, second: _Footprint | None, parties: Parties) -> bool:
    """Whether two footprints have a word in common that those parties touch."""
    if first is None or second is None or first.high < second.low or second.high < first.low:
        return False
    if first.words.keys().isdisjoint(second.words):
        return False
    if parties is Parties.ANY:
        return True
    common = first.words.keys() & second.words.keys()
    are_several = _are_of_two_warps if parties is Parties.WARPS else _are_two
    return any(are_several(first.words[word] | second.words[word]) for word in common)


def _are_two(threads: int) -> bool:
    return threads & (threads - 1) != 0


def _are_of_two_warps(threads: int) -> bool:
    first = (threads & -threads).bit_length() - 1
    return threads >> (first // WARP + 1) * WARP != 0


def _covered(place: int, size: int) -> range:
    place &= 0xFFFFFFFF
    return range(place // WORD, (place + size - 1) // WORD + 1)
