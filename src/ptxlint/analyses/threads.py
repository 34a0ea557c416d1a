"""The threads of a block: how many, and which of them satisfy predicates that depend on the thread alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

from ptxlint.analyses.evaluation import WARP, Evaluation, Number
from ptxlint.analyses.value import Apply, Constant, Leaf, LeafKind, Literal, Sum, Value
from ptxlint.classes import dataclass
from ptxlint.ir import Function
from ptxlint.launch import Dimensions, Launch

MOST = 1024
"""How many threads a block has at most. Source: CUDA C++ Programming Guide, *Compute Capabilities*."""

_OF_THE_THREAD = ("%tid", "%laneid", "%warpid", "%lanemask")


@dataclass(frozen=True, slots=True)
class Crowd:
    """Some threads of a block: `threads` by their bits, and of these the ones in which the `literals` hold.

    The literals are those that no thread number decides.
    """

    threads: int
    literals: frozenset[Literal]

    def __or__(self, other: Crowd) -> Crowd:
        """The smallest crowd that holds both."""
        return Crowd(self.threads | other.threads, self.literals & other.literals)

    def __and__(self, other: Crowd) -> Crowd:
        """The threads that are in both."""
        return Crowd(self.threads & other.threads, self.literals | other.literals)

    @property
    def is_empty(self) -> bool:
        """Whether no thread can be in it."""
        return not self.threads or any((value, False) in self.literals for value, truth in self.literals if truth)

    def outside(self, other: Crowd) -> Crowd | None:
        """Those of the crowd who may be elsewhere than the other one by the number of the thread; None when nobody is.

        A predicate that depends on the thread in a way that its number does not decide may part any of them.
        """
        if any(depends_on_thread(value) and (value, truth) not in self.literals for value, truth in other.literals):
            return self
        left = self.threads & ~other.threads
        return Crowd(left, self.literals) if left else None

    def goes_by_warp(self, other: Crowd) -> bool:
        """Whether those of the crowd who are elsewhere than the other one are so with their whole warp."""
        parting = [value for value, truth in other.literals if (value, truth) not in self.literals]
        return not self.threads & ~other.threads and not any(map(depends_on_lane, parting))

    def without(self, literals: frozenset[Literal]) -> Crowd:
        """The crowd when nothing is known of those predicates any more."""
        return Crowd(self.threads, self.literals - literals)


def depends_on_thread(value: Value) -> bool:
    """Whether a value may differ between threads because it is made of their numbers."""
    return _is_made_of_numbers(value, lambda _: False)


def depends_on_lane(value: Value) -> bool:
    """Whether a value may differ between threads of one warp because it is made of their numbers.

    The number of the warp does not, nor does what a shuffle has brought from one lane to all.
    """
    return _is_made_of_numbers(value, _is_of_warp)


def _is_of_warp(node: Value) -> bool:
    match node:
        case Leaf(LeafKind.SPECIAL, "%warpid"):
            return True
        case Apply("lane", _, (_, lane)):
            return not depends_on_thread(lane)
        case Apply("shr", _, (Leaf(LeafKind.SPECIAL, "%tid.x"), Constant(places))):
            return 1 << places >= WARP
    return False


def _is_made_of_numbers(value: Value, is_known: Callable[[Value], bool]) -> bool:
    """Whether numbers of threads go into a value, other than by way of what is known to be alike."""
    stack, seen = [value], set[Value]()
    while stack:
        node = stack.pop()
        if node in seen or is_known(node):
            continue
        seen.add(node)
        match node:
            case Leaf(LeafKind.SPECIAL, name) if name.startswith(_OF_THE_THREAD):
                return True
            case Apply("elect"):
                return True
            case Apply(_, _, arguments):
                stack.extend(arguments)
            case Sum(_, terms):
                stack.extend(term for term, _ in terms)
    return False


class Threads:
    """The threads of a block in linear order.

    `count`, the product of the extents, is exact under `.reqntid` or a launch that the user states, a bound under
    `.maxntid`, else the most there can be: `is_guessed` tells. `likely` are extents to assume where none are stated.
    """

    def __init__(self, function: Function, launch: Launch, likely: Dimensions | None = None) -> None:
        bound = function.directive("maxntid")
        self._block = launch.block or likely
        self.is_guessed = launch.block is None and bound is None
        if self._block is not None:
            self.count = prod(self._block)
        elif bound is not None:
            self.count = prod(bound.integers())
        else:
            self.count = MOST
        self._evaluation = Evaluation(lambda leaf: self.leaf(leaf, range(self.count)), range(self.count))
        self._masks: dict[Value, int | None] = {}
        self._samples: dict[tuple[int, ...], Sequence[int]] = {}

    def leaf(self, leaf: Leaf, threads: Sequence[int]) -> Number:
        """A special register in each of the threads. Raises KeyError for what does not depend on the thread alone.

        Without a stated block its extents beyond the first count as 1.
        """
        if leaf.kind is not LeafKind.SPECIAL:
            raise KeyError(leaf)
        width, height, _ = self._block or (self.count, 1, 1)
        match leaf.name:
            case "%tid.x":
                return [thread % width for thread in threads]
            case "%tid.y":
                return [thread // width % height for thread in threads]
            case "%tid.z":
                return [thread // (width * height) for thread in threads]
            case "%laneid":
                return [thread % WARP for thread in threads]
            case "%warpid":
                return [thread // WARP for thread in threads]
        if leaf.name.startswith("%ntid.") and self._block is not None:
            return self._block["xyz".index(leaf.name[-1])]
        raise KeyError(leaf)

    def sample(self, *crowds: int) -> Sequence[int]:
        """Warps to look at where crowds of threads meet: the first of each crowd, and the last of a known block."""
        if crowds not in self._samples:
            warps = {((crowd & -crowd).bit_length() - 1) // WARP for crowd in crowds if crowd}
            if not self.is_guessed:
                warps.add((self.count - 1) // WARP)
            numbers = (warp * WARP + lane for warp in sorted(warps) for lane in range(WARP))
            self._samples[crowds] = tuple(number for number in numbers if number < self.count)
        return self._samples[crowds]

    @property
    def everybody(self) -> Crowd:
        """All threads."""
        return Crowd((1 << self.count) - 1, frozenset())

    def crowd(self, literals: Iterable[Literal]) -> Crowd:
        """The threads in which all the predicates hold."""
        threads = (1 << self.count) - 1
        rest = set()
        for value, truth in literals:
            mask = self._mask(value)
            if mask is None:
                rest.add((value, truth))
            else:
                threads &= mask if truth else ~mask
        return Crowd(threads, frozenset(rest))

    def decides(self, value: Value) -> bool:
        """Whether the number of a thread alone decides a predicate."""
        return self._mask(value) is not None

    def _mask(self, value: Value) -> int | None:
        if value not in self._masks:
            try:
                vector = self._evaluation.vector(value)
            except KeyError:
                self._masks[value] = None
            else:
                self._masks[value] = sum(1 << thread for thread, holds in enumerate(vector) if holds)
        return self._masks[value]
