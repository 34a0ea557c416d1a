"""Which group-tracked copies may be in flight at a point, and which threads issued them.

State:    the threads that may be here, and for each copy that may be pending its place in the queue of groups, the
          waits that it outlived, the loops it went round, and the threads that issued it; an absent copy is done, and
          everybody who might touch its bytes may know it
Order:    more pending copies, more threads
Entry:    nothing pending, all threads
Transfer: a copy enters as not committed; a commit ages what is committed and takes in what is not; a wait lands the
          groups older than it allows, for its thread; a release (barrier, arrive, fence) after that tells all others

A branch that a copy's thread cannot take leaves the copy as it was, foreign to those who do take it, until the next
release: there the state that came with the copy's own thread speaks for it. Where the ways meet again, that state is
there as well, and those who took the branch need only hear of it: an acquire is enough. A call of a function that
handles groups itself counts as the end of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from ptxlint import isa
from ptxlint.analyses.assignment import Loops
from ptxlint.analyses.evaluation import Evaluation
from ptxlint.analyses.substitution import substituted
from ptxlint.analyses.threads import Crowd
from ptxlint.analyses.value import Apply, Constant, Leaf, LeafKind, Literal, Value, implied, leaves
from ptxlint.cfg import Cfg, Edge
from ptxlint.classes import dataclass
from ptxlint.dataflow import Analysis
from ptxlint.ir import Immediate, Instruction
from ptxlint.isa.row import Flow, Row, Tracking

if TYPE_CHECKING:
    from ptxlint.facts import Facts

Change: TypeAlias = Callable[["Pending"], "Pending | None"]

GROUPS = frozenset({Tracking.CP_ASYNC, Tracking.BULK})
RELEASES = frozenset({"release", "acq_rel", "sc"})
NOWHERE = -1
_TRUTHS = (True, False)


class Status(StrEnum):
    """How far a copy has come: pending, done as its own thread knows, or (bulk) read for all but not yet written."""

    FLYING = "flying"
    LANDED = "landed"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch of copies in the queue of its thread.

    copy: index of the batch's first copy. commits: groups committed since, its own included; 0 while not committed.
    commit: the commit that took it in. wait: the last wait of its kind that it outlived, with `commits` at that time.
    landed: the wait that landed it; is_read_only when that wait was a `.read`. is_foreign: seen by threads on a path
    that its own thread does not take; meets: the block where that path meets those of its thread, NOWHERE for none,
    None once it has; is_apart: those threads are of other warps. laps: how often control has come to the head of each
    loop since.
    """

    copy: int
    status: Status = Status.FLYING
    commits: int = 0
    commit: int | None = None
    wait: int | None = None
    commits_at_wait: int = 0
    landed: int | None = None
    is_read_only: bool = False
    is_foreign: bool = False
    meets: int | None = None
    is_apart: bool = False
    laps: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Queue:
    """A state: the threads that may be here, and for each pending batch the threads that may have issued it."""

    here: Crowd
    pending: Mapping[Pending, Crowd]


class Groups(Analysis[Queue]):
    """The analysis; see the head of this file."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._values = facts.values
        self._loops = Loops(facts.cfg, facts.values)

    def boundary(self) -> Queue:
        """Nothing is pending, all threads are here."""
        return Queue(self._facts.threads.everybody, {})

    def join(self, first: Queue, second: Queue) -> Queue:
        """Pending on either path, the threads of both."""
        return Queue(first.here | second.here, _joined((*first.pending.items(), *second.pending.items())))

    def sites(self, cfg: Cfg) -> Sequence[int]:
        """Copies, commits, waits, releases, calls that matter, and the results that predicates are made of."""
        found = {index for index, each in enumerate(cfg.body) if self._matters(index, each) or _hears(each)}
        return sorted(found | {index for index in self._stale_results if index >= 0})

    def transfer(self, index: int, instruction: Instruction, state: Queue) -> Queue:
        """Open, commit, wait, release; forget predicates whose values change here."""
        if index in self._stale_results:
            state = _forget(state, self._stale_results[index])
        row = isa.row(instruction)
        if row is None:
            return state
        literal = self._values.guard(index)
        if row.flow is Flow.CALL:
            return Queue(state.here, {}) if self._calls_groups(instruction) else state
        if row.opens in GROUPS:
            return self._open(index, literal, state)
        change = self._change(index, instruction)
        return state if change is None or not state.pending else self._rewrite(state, literal, change)

    def along(self, edge: Edge, state: Queue) -> Queue | None:
        """Narrow by what the edge says, drop or estrange what its thread cannot have issued, count laps."""
        literal = self._values.along(edge)
        if literal is not None:
            crowd = self._crowd(literal)
            here = state.here & crowd
            if here.is_empty:
                return None
            meets = self._facts.cfg.immediate_post_dominators[edge.source]
            narrowed = _narrowed(state.pending, crowd, NOWHERE if meets is None else meets)
            state = Queue(here, _joined(narrowed))
        if any(batch.meets == edge.target for batch in state.pending):
            state = Queue(state.here, _joined((_met(b, edge.target), who) for b, who in state.pending.items()))
        if edge.target in self._stale_merges:
            brought = self._facts.threads.crowd(self._brought(edge))
            here = self._passed(state.here, edge) & brought
            if here.is_empty:
                return None
            state = Queue(here, _joined(self._brought_along(state.pending, edge, brought)))
        if edge.target in self._counted and state.pending:
            state = Queue(state.here, _joined((self._lap(b, edge.target), who) for b, who in state.pending.items()))
        return state

    def tracking(self, copy: int) -> Tracking:
        """The kind of group that a copy belongs to."""
        row = isa.row(self._facts.cfg.body[copy])
        assert row is not None
        assert row.opens is not None
        return row.opens

    @cached_property
    def members(self) -> Mapping[int, Sequence[int]]:
        """For the first copy of each batch all its copies: one block, one guard, nothing that matters between them."""
        found: dict[int, list[int]] = {}
        body = self._facts.cfg.body
        for block in self._facts.cfg.blocks:
            current: list[int] | None = None
            for index in block.points:
                row = isa.row(body[index])
                if row is not None and row.opens in GROUPS:
                    if current is None or not self._belongs(index, current):
                        current = found.setdefault(index, [])
                    current.append(index)
                elif self._matters(index, body[index]):
                    current = None
        return found

    @cached_property
    def lap_limit(self) -> int:
        """The count of laps that stands for itself and all larger ones."""
        return self._most_groups + 3

    def _belongs(self, index: int, batch: Sequence[int]) -> bool:
        same_kind = self.tracking(index) is self.tracking(batch[0])
        return same_kind and self._values.guard(index) == self._values.guard(batch[0])

    def _matters(self, index: int, instruction: Instruction) -> bool:
        row = isa.row(instruction)
        if row is None:
            return False
        if row.flow is Flow.CALL:
            return self._calls_groups(instruction)
        return index in self._stale_results or _acts(instruction)

    def _open(self, index: int, literal: Literal | None, state: Queue) -> Queue:
        if index not in self.members:
            return state
        here = state.here & self._crowd(literal)
        return state if here.is_empty else Queue(state.here, _joined((*state.pending.items(), (Pending(index), here))))

    def _crowd(self, literal: Literal | None) -> Crowd:
        return self._facts.threads.crowd(() if literal is None else self._implied(literal))

    def _change(self, index: int, instruction: Instruction) -> Change | None:
        """What an instruction does to a batch of a thread that runs it; None when it does nothing to any."""
        row = isa.row(instruction)
        if row is None:
            return None
        if _hears(instruction):
            return _heard
        if not _acts(instruction):
            return None
        kind = _touched(row)
        limit, is_read = allowed(instruction), "read" in instruction.modifiers
        hands_over = row.commits is not None and "mbarrier" in isa.roles(instruction)

        def change(batch: Pending) -> Pending | None:
            if kind is None:
                return _released(batch)
            if self.tracking(batch.copy) is not kind:
                return batch
            if hands_over:
                return None
            if row.commits in GROUPS:
                batch = self._committed(batch, index)
            return _waited(batch, index, limit, is_read) if row.waits in GROUPS else batch

        return change

    def _committed(self, batch: Pending, index: int) -> Pending:
        if batch.commits:
            return replace(batch, commits=min(batch.commits + 1, self._most_groups))
        return replace(batch, commits=1, commit=index)

    def _rewrite(self, state: Queue, literal: Literal | None, change: Change) -> Queue:
        """Apply a commit, wait or release to the batches of the threads that run it; None means done for good.

        Under a predicate that says nothing of a batch's thread, both kinds of thread are followed.
        """
        runs = self._crowd(literal)
        skips = None if literal is None else self._crowd((literal[0], not literal[1]))
        found: list[tuple[Pending, Crowd]] = []
        for batch, issuers in state.pending.items():
            if batch.is_foreign:
                if change(batch) is not None:
                    found.append((batch, issuers))
                continue
            if not (issuers & runs).is_empty and (after := change(batch)) is not None:
                found.append((after, issuers & runs))
            if skips is not None and not (issuers & skips).is_empty:
                found.append((batch, issuers & skips))
        return Queue(state.here, _joined(found))

    def _lap(self, batch: Pending, header: int) -> Pending:
        if batch.status is Status.READ:
            return batch
        laps = dict(batch.laps)
        laps[header] = min(laps.get(header, 0) + 1, self.lap_limit)
        return replace(batch, laps=tuple(sorted(laps.items())))

    def _calls_groups(self, instruction: Instruction) -> bool:
        names = {str(operand) for operand in instruction.operands}
        return bool(names & self._facts.functions_with_groups)

    @cached_property
    def _most_groups(self) -> int:
        """A count of commits that every wait of this function takes as done."""
        body = self._facts.cfg.body
        waits = [i for i in body if (row := isa.row(i)) is not None and row.waits in GROUPS]
        return max((allowed(wait) for wait in waits), default=0) + 2

    @cached_property
    def _counted(self) -> frozenset[int]:
        """The heads of the loops that issue, commit or wait: those whose laps are counted."""
        cfg = self._facts.cfg
        active = {cfg.block_of[index] for index, instruction in enumerate(cfg.body) if handles_groups(instruction)}
        return frozenset(loop.header for block in active for loop in cfg.enclosing_loops(block))

    @cached_property
    def _limits(self) -> Mapping[Value, Value]:
        """For comparisons of a loop's counter with the number it counts to, the test that ends the loop: while a
        counter that goes on in steps of one is not equal to it, it is less."""
        algebra = self._values.algebra
        approaches = {(difference, step): ends for ends, difference, step in self._loops.approaches()}
        found: dict[Value, Value] = {}
        for value in self._decisive if approaches else ():
            match value:
                case Apply("lt", _, (first, second)):
                    for step in (1, -1):
                        difference = algebra.total(0, ((first, step), (second, -step)))
                        if (difference, step) in approaches:
                            found[value] = approaches[difference, step]
        return found

    @cached_property
    def _decisive(self) -> Mapping[Value, int]:
        """The predicates that decide branches or guards, each with how many."""
        cfg = self._facts.cfg
        sites = [block.stop - 1 for block in cfg.blocks if block.successors and block.successors[0].guard]
        sites += [index for index, instruction in enumerate(cfg.body) if instruction.guard and _acts(instruction)]
        count: dict[Value, int] = {}
        for literal in (self._values.guard(index) for index in dict.fromkeys(sites)):
            if literal is not None:
                parts = {value for truth in (True, False) for value, _ in implied(literal[0], truth)}
                count.update({value: count.get(value, 0) + 1 for value in parts})
        return count

    @cached_property
    def _literals(self) -> frozenset[Literal]:
        """The predicates worth following: those that decide several branches or guards, in one lap of a loop or in two,
        and those that tell."""
        count = self._decisive
        kept = {value for value, times in count.items() if times > 1 or self._is_telling(value)}
        kept.update(self._paired(frozenset(count)))
        kept.update(part for pair in self._limits.items() if pair[1] in count for part in pair)
        return frozenset((value, truth) for value in kept for truth in (True, False))

    def _paired(self, predicates: frozenset[Value]) -> Iterator[Value]:
        """The predicates that decide what another one decides in the lap before or after, by the values of that lap."""
        cfg = self._facts.cfg
        for value in predicates:
            blocks = {place for kind, place in self._values.stales_at(value) if kind is LeafKind.MERGE}
            edges = [
                edge for block in blocks for edge in cfg.blocks[block].predecessors if edge.source in cfg.reachable
            ]
            for before in {self._brought_to(value, edge)[0] for edge in edges} & predicates - {value}:
                yield from (value, before)

    def _is_telling(self, value: Value) -> bool:
        """Whether a predicate that decides one branch alone still tells something: it lasts, or constants set it."""
        kinds = {leaf.kind for leaf in leaves(value)}
        return kinds == {LeafKind.MERGE} or not kinds & {LeafKind.MERGE, LeafKind.UNKNOWN}

    def _implied(self, literal: Literal) -> frozenset[Literal]:
        """What follows from a predicate, as far as it is worth following or decided by the thread's number."""
        threads = self._facts.threads
        parts = implied(*literal)
        reached = {(self._limits[value], True) for value, truth in parts if not truth and value in self._limits}
        kept = (part for part in parts | reached if part in self._literals or threads.decides(part[0]))
        return frozenset(kept)

    def _brought(self, edge: Edge) -> Iterator[Literal]:
        """The predicates over merges at the target that the constants which the edge brings decide."""
        for value, truth in self._stale_merges[edge.target]:
            if truth and (number := self._number(value, edge)) is not None:
                yield value, bool(number)

    def _brought_along(
        self, pending: Mapping[Pending, Crowd], edge: Edge, brought: Crowd
    ) -> Iterator[tuple[Pending, Crowd]]:
        """The batches past an edge that changes the meaning of predicates; it says nothing of threads elsewhere."""
        for batch, issuers in pending.items():
            passed = self._passed(issuers, edge) & brought
            if batch.is_foreign:
                yield batch, issuers.without(self._stale_merges[edge.target])
            elif not passed.is_empty:
                yield batch, passed

    def _passed(self, crowd: Crowd, edge: Edge) -> Crowd:
        """A crowd on the far side of an edge that changes the meaning of predicates: what is known of one there is what
        was known of it with what the edge brings in its place."""
        kept = crowd.without(self._stale_merges[edge.target])
        if not crowd.literals:
            return kept
        renamed = self._renamed(edge).items()
        known = {
            (value, was is same) for value, (old, same) in renamed for was in _TRUTHS if (old, was) in crowd.literals
        }
        return Crowd(kept.threads, kept.literals | known)

    def _renamed(self, edge: Edge) -> Mapping[Value, Literal]:
        """The predicates over merges at the target, each with what it says of the values that the edge brings."""
        if edge not in self._known_renamed:
            stale = self._stale_merges[edge.target]
            self._known_renamed[edge] = {value: self._brought_to(value, edge) for value, truth in stale if truth}
        return self._known_renamed[edge]

    @cached_property
    def _known_renamed(self) -> dict[Edge, Mapping[Value, Literal]]:
        return {}

    def _brought_to(self, value: Value, edge: Edge) -> Literal:
        """What a predicate over merges at an edge's target says of the values before the edge: a predicate without
        negation, and its truth."""
        here = (leaf for leaf in leaves(value) if leaf.kind is LeafKind.MERGE and leaf.place == edge.target)
        brought = {leaf: dict(self._values.incoming(leaf)).get(edge.source, leaf) for leaf in here}
        before = substituted(value, brought, self._values.algebra)
        opposite = self._values.algebra.negation(before)
        return (before, True) if before.depth <= opposite.depth else (opposite, False)

    def _number(self, value: Value, edge: Edge) -> int | None:
        def constant(leaf: Leaf) -> int:
            is_here = leaf.kind is LeafKind.MERGE and leaf.place == edge.target
            brought = dict(self._values.incoming(leaf)).get(edge.source) if is_here else None
            if not isinstance(brought, Constant):
                raise KeyError(leaf)
            return brought.value

        try:
            return Evaluation(constant, (0,)).vector(value)[0]
        except KeyError:
            return None

    @cached_property
    def _stale_merges(self) -> Mapping[int, frozenset[Literal]]:
        return self._stale(LeafKind.MERGE)

    @cached_property
    def _stale_results(self) -> Mapping[int, frozenset[Literal]]:
        return self._stale(LeafKind.UNKNOWN)

    def _stale(self, kind: LeafKind) -> Mapping[int, frozenset[Literal]]:
        """For each place where predicates change their meaning, those that do."""
        found: dict[int, set[Literal]] = {}
        for value, _ in self._literals:
            for leaf_kind, place in self._values.stales_at(value):
                if leaf_kind is kind:
                    found.setdefault(place, set()).update({(value, True), (value, False)})
        return {place: frozenset(literals) for place, literals in found.items()}


def allowed(wait: Instruction) -> int:
    """How many of the newest groups a wait leaves pending; 0 for the waits that leave none."""
    count = isa.roles(wait).get("count")
    return count.value if isinstance(count, Immediate) and isinstance(count.value, int) else 0


def _touched(row: Row) -> Tracking | None:
    """The kind of group that an instruction commits or waits for."""
    return next((kind for kind in (row.commits, row.waits) if kind in GROUPS), None)


def handles_groups(instruction: Instruction) -> bool:
    """Whether an instruction issues, commits or waits for copies in groups."""
    row = isa.row(instruction)
    return row is not None and (row.opens in GROUPS or _touched(row) is not None)


def _acts(instruction: Instruction) -> bool:
    return handles_groups(instruction) or isa.semantics(instruction) in RELEASES


def _hears(instruction: Instruction) -> bool:
    return isa.semantics(instruction) == "acquire"


def _heard(batch: Pending) -> Pending | None:
    """A batch after an acquire by those to whom it is foreign: they know what its thread has done of late."""
    return None if batch.is_foreign and batch.meets is None else batch


def _met(batch: Pending, block: int) -> Pending:
    """A batch at the head of a block."""
    return replace(batch, meets=None, is_apart=False) if batch.meets == block else batch


def _released(batch: Pending) -> Pending | None:
    """What has landed becomes known to all; a store whose source alone was read keeps its result pending."""
    if batch.is_foreign:
        return None
    if batch.status is not Status.LANDED:
        return batch
    return Pending(batch.copy, Status.READ, batch.commits, landed=batch.landed) if batch.is_read_only else None


def _waited(batch: Pending, index: int, limit: int, is_read: bool) -> Pending | None:
    """A batch after a wait of its thread; None when nothing of it is pending any more."""
    is_done = batch.commits > limit
    if batch.status is Status.FLYING:
        if is_done:
            return replace(batch, status=Status.LANDED, landed=index, is_read_only=is_read)
        return replace(batch, wait=index, commits_at_wait=batch.commits)
    if not is_done or is_read:
        return batch
    return None if batch.status is Status.READ else replace(batch, is_read_only=False)


def _joined(batches: Iterable[tuple[Pending, Crowd]]) -> Mapping[Pending, Crowd]:
    found: dict[Pending, Crowd] = {}
    for batch, issuers in batches:
        known = found.get(batch)
        found[batch] = issuers if known is None else known | issuers
    return found


def _narrowed(pending: Mapping[Pending, Crowd], crowd: Crowd, meets: int) -> Iterator[tuple[Pending, Crowd]]:
    """The batches on a path that only `crowd` takes, up to a block: its own, and those of threads elsewhere, foreign
    there."""
    for batch, issuers in pending.items():
        if batch.is_foreign:
            yield batch, issuers
            continue
        own = issuers & crowd
        if not own.is_empty:
            yield batch, own
        others = issuers.outside(crowd)
        if batch.status is not Status.READ and others is not None:
            yield replace(batch, is_foreign=True, meets=meets, is_apart=issuers.goes_by_warp(crowd)), others


def _forget(state: Queue, stale: frozenset[Literal]) -> Queue:
    pending = _joined((batch, issuers.without(stale)) for batch, issuers in state.pending.items())
    return Queue(state.here.without(stale), pending)
