"""What goes wrong with copies in groups: each place where one is in flight that must not be, and why it still is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from ptxlint import isa
from ptxlint.analyses.groups import GROUPS, Groups, Pending, Queue, Status, allowed, handles_groups
from ptxlint.analyses.overlap import Laps, Overlaps, Parties, Question, Touch
from ptxlint.analyses.replay import Replay
from ptxlint.analyses.threads import Crowd
from ptxlint.analyses.value import implied
from ptxlint.classes import dataclass
from ptxlint.ir import Instruction
from ptxlint.isa.row import Access, Flow, Mode, Proxy, Row, Tracking

if TYPE_CHECKING:
    from ptxlint.facts import Facts


class Cause(StrEnum):
    """Why a copy is still in flight, or not known to have landed, where it must not be."""

    UNCOMMITTED = "no commit before the wait, or none at all"
    WEAK_WAIT = "the wait allows its group to be pending"
    EARLY_WAIT = "the wait comes before the commit that it counts on"
    NO_WAIT = "nothing waits for its group"
    FOREIGN_WAIT = "the wait is run by threads that did not issue it"
    NO_BARRIER = "other threads do not know of the wait"
    WRONG_KIND = "the wait is for groups of another kind"
    READ_WAIT = "the wait is for the read of the source alone"


class Consequence(StrEnum):
    """What happens to the bytes of the copy."""

    READ = "its destination is read"
    OVERWRITTEN = "its destination is written"
    REFILLED = "its source is written"
    PUBLISHED = "its result is announced"
    EXIT = "the thread exits"
    UNKNOWN = "nothing is known of who touches its bytes"


_INDIRECT = (Consequence.EXIT, Consequence.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Hazard:
    """One copy in danger. Indices into the body: `at` is where it goes wrong, `wait` and `commit` those involved.

    laps: how many laps of a loop after the copy was issued, 0 for the same lap.
    """

    cause: Cause
    consequence: Consequence
    copy: int
    at: int
    wait: int | None = None
    commit: int | None = None
    laps: int = 0


class Hazards:
    """Finds the hazards of one function."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._groups = Groups(facts)
        self._overlaps = Overlaps(facts)
        self._early: dict[tuple[int, int], tuple[Touch, ...]] = {}
        self._replays = {kind: Replay(facts, self._overlaps, kind) for kind in GROUPS}

    def found(self) -> Sequence[Hazard]:
        """The hazards, those that an access shows first; each copy and cause once."""
        body = self._facts.cfg.body
        if not any(map(handles_groups, body)):
            return ()
        states = [(index, instruction, state) for index, instruction, state in self._solution_steps()]
        hazards = [hazard for index, i, state in states for hazard in self._at(index, i, state)]
        hazards += self._wrong_kinds(states)
        hazards += self._early_waits(states)
        unique: dict[tuple[object, ...], Hazard] = {}
        for hazard in hazards:
            unique.setdefault((hazard.cause, hazard.copy, hazard.wait), hazard)
        return self._without_echoes(tuple(unique.values()))

    def _solution_steps(self) -> Iterator[tuple[int, Instruction, Queue]]:
        solution = self._facts.solve(Groups)
        for index, instruction, state in solution.steps():
            if state.pending:
                yield index, instruction, state

    def _without_echoes(self, hazards: Sequence[Hazard]) -> Sequence[Hazard]:
        """Without what another hazard of the same copy already explains."""
        tracking = self._groups.tracking
        mistaken = {tracking(hazard.copy) for hazard in hazards if hazard.cause is Cause.WRONG_KIND}
        shown = {hazard.copy for hazard in hazards if hazard.consequence not in _INDIRECT}
        return [
            hazard
            for hazard in hazards
            if (hazard.cause is Cause.WRONG_KIND)
            or not (tracking(hazard.copy) in mistaken or (hazard.consequence in _INDIRECT and hazard.copy in shown))
        ]

    def _at(self, index: int, instruction: Instruction, state: Queue) -> Iterator[Hazard]:
        row = isa.row(instruction)
        if row is None:
            return
        here = state.here & self._guarded(index)
        if here.is_empty:
            return
        yield from self._accesses(index, instruction, state, here)
        if row.flow in (Flow.RETURN, Flow.EXIT) and not row.aborts and self._facts.function.is_entry:
            yield from self._exits(index, state, here)
        yield from self._announcements(index, instruction, state, here)

    def _guarded(self, index: int) -> Crowd:
        literal = self._facts.values.guard(index)
        return self._facts.threads.crowd(() if literal is None else implied(*literal))

    def _accesses(self, index: int, instruction: Instruction, state: Queue, here: Crowd) -> Iterator[Hazard]:
        for access in isa.accesses(instruction):
            if access.is_descriptor or access.mode is Mode.OBJECT or not _is_shared(instruction, access):
                continue
            endangered = [
                (batch, issuers, consequence)
                for batch, issuers in state.pending.items()
                if (consequence := self._consequence(batch, instruction, access)) is not None
                and not (self._is_ordered(batch, index) or _is_shadow(batch, state))
            ]
            if not endangered:
                continue
            late = self._overlaps.touch(index, access, here.threads)
            near = self._near(((batch, issuers) for batch, issuers, _ in endangered), late)
            for batch, issuers, consequence in endangered:
                copy = self._meeting(batch, issuers, late, near)
                if copy is not None:
                    yield self._explain(batch, issuers, copy, index, consequence)

    def _near(self, batches: Iterable[tuple[Pending, Crowd]], late: Touch) -> frozenset[tuple[Laps, Touch]]:
        """What batches touch that may be the same bytes as a late touch, with the laps since."""
        earlier: dict[tuple[Laps, int], dict[Touch, None]] = {}
        for batch, issuers in batches:
            touches = earlier.setdefault((batch.laps, issuers.threads), {})
            touches.update(dict.fromkeys(self._touches(batch.copy, issuers)))
        limit = self._groups.lap_limit
        return frozenset(
            (laps, touch)
            for (laps, _), touches in earlier.items()
            for touch in self._overlaps.near(tuple(touches), late, laps, limit)
        )

    def _is_ordered(self, batch: Pending, index: int) -> bool:
        """Whether the touching instruction is itself one of the batch, in the same lap."""
        return not batch.laps and index in self._groups.members[batch.copy]

    def _consequence(self, batch: Pending, instruction: Instruction, access: Access) -> Consequence | None:
        """What the access does to the bytes of a batch that is in flight; None when that is allowed."""
        is_write = access.mode in (Mode.WRITE, Mode.UPDATE)
        row = isa.row(instruction)
        if self._groups.tracking(batch.copy) is Tracking.BULK:
            return Consequence.REFILLED if is_write and batch.status is not Status.READ else None
        if row is not None and row.opens is Tracking.CP_ASYNC:
            return None
        return Consequence.OVERWRITTEN if access.mode is Mode.WRITE else Consequence.READ

    def _meeting(self, batch: Pending, issuers: Crowd, late: Touch, near: frozenset[tuple[Laps, Touch]]) -> int | None:
        """The first copy of the batch whose bytes the access touches."""
        landed = batch.status is Status.LANDED
        question = Question(_parties(batch), None if landed else self._replays[self._groups.tracking(batch.copy)].lands)
        for early in self._touches(batch.copy, issuers):
            is_near = (batch.laps, early) in near
            if is_near and self._overlaps.meet(early, late, batch.laps, self._groups.lap_limit, question):
                return early.index
        return None

    def _touches(self, copy: int, issuers: Crowd) -> tuple[Touch, ...]:
        """What the copies that are one batch with a copy touch of shared memory."""
        key = (copy, issuers.threads)
        if key not in self._early:
            body, kind = self._facts.cfg.body, self._groups.tracking(copy)
            sides = ((member, _shared_side(body[member], kind)) for member in self._groups.members[copy])
            self._early[key] = tuple(
                self._overlaps.touch(member, access, issuers.threads) for member, access in sides if access is not None
            )
        return self._early[key]

    def _explain(self, batch: Pending, issuers: Crowd, copy: int, at: int, consequence: Consequence) -> Hazard:
        laps = max((count for _, count in batch.laps), default=0)
        if batch.status is Status.LANDED:
            assert batch.landed is not None
            waiters = self._here(batch.landed)
            issues = self._here(copy)
            cause = Cause.FOREIGN_WAIT if waiters.threads & ~issues.threads else Cause.NO_BARRIER
            return Hazard(cause, consequence, copy, at, batch.landed, batch.commit, laps)
        cause, wait = self._reason(batch, issuers, copy, at)
        return Hazard(cause, consequence, copy, at, wait, batch.commit, laps)

    def _reason(self, batch: Pending, issuers: Crowd, copy: int, at: int) -> tuple[Cause, int | None]:
        """Why a batch that is in flight has not landed, and the wait to blame."""
        if batch.wait is None:
            foreign = self._foreign_wait(batch, issuers, copy, at)
            if foreign is not None:
                return Cause.FOREIGN_WAIT, foreign
            return (Cause.NO_WAIT if batch.commits else Cause.UNCOMMITTED), None
        if not batch.commits_at_wait:
            is_late = batch.commit is not None and self._loop(batch.commit) == self._loop(copy)
            return (Cause.EARLY_WAIT if is_late else Cause.UNCOMMITTED), batch.wait
        would_do = batch.commits > allowed(self._facts.cfg.body[batch.wait])
        return (Cause.EARLY_WAIT if would_do and batch.wait in self._with_uncommitted else Cause.WEAK_WAIT), batch.wait

    def _foreign_wait(self, batch: Pending, issuers: Crowd, copy: int, at: int) -> int | None:
        """A wait between the copy and the access that would have done, but is run by other threads alone."""
        kind = self._groups.tracking(copy)
        for wait in self._waits.get(kind, ()):
            would_do = batch.commits > allowed(self._facts.cfg.body[wait])
            is_foreign = not self._here(wait).threads & issuers.threads
            if would_do and is_foreign and self._is_between(copy, wait, at):
                return wait
        return None

    def _exits(self, index: int, state: Queue, here: Crowd) -> Iterator[Hazard]:
        for batch, issuers in state.pending.items():
            if batch.status is not Status.FLYING or batch.is_foreign or (issuers & here).is_empty:
                continue
            is_bulk = self._groups.tracking(batch.copy) is Tracking.BULK
            if not batch.commits:
                yield Hazard(Cause.UNCOMMITTED, Consequence.EXIT, batch.copy, index)
            elif is_bulk and _shared_side(self._facts.cfg.body[batch.copy], Tracking.BULK) is not None:
                cause = Cause.NO_WAIT if batch.wait is None else Cause.WEAK_WAIT
                yield Hazard(cause, Consequence.EXIT, batch.copy, index, batch.wait, batch.commit)

    def _announcements(self, index: int, instruction: Instruction, state: Queue, here: Crowd) -> Iterator[Hazard]:
        if not self._announces(index, instruction):
            return
        for batch, issuers in state.pending.items():
            if self._groups.tracking(batch.copy) is not Tracking.BULK or batch.is_foreign or (issuers & here).is_empty:
                continue
            if any(self._is_between(batch.copy, write, index) for write in self._global_writes):
                continue
            if batch.is_read_only or batch.status is Status.READ:
                yield Hazard(Cause.READ_WAIT, Consequence.PUBLISHED, batch.copy, index, batch.landed, batch.commit)
            elif batch.status is Status.FLYING and batch.commits and isa.accesses(instruction):
                yield Hazard(Cause.NO_WAIT, Consequence.PUBLISHED, batch.copy, index, batch.wait, batch.commit)

    def _announces(self, index: int, instruction: Instruction) -> bool:
        """Whether the instruction releases to the GPU: a flag, or a fence that a write to global memory follows.

        A store of 0 lowers a flag and announces nothing, and the release of a tensor map is about the map alone.
        """
        covered = isa.covers(instruction)
        if covered is not None and covered.after is Proxy.TENSORMAP:
            return False
        if isa.semantics(instruction) not in ("release", "acq_rel", "sc") or isa.scope(instruction) not in (
            "gpu",
            "sys",
        ):
            return False
        if isa.accesses(instruction):
            return _writes_global(instruction) and self._facts.number(index, "value") != 0
        block = self._facts.cfg.blocks[self._facts.cfg.block_of[index]]
        return any(_writes_global(self._facts.cfg.body[later]) for later in range(index + 1, block.stop))

    @cached_property
    def _global_writes(self) -> Sequence[int]:
        """Writes of the generic proxy to global memory that release nothing: a flag after them may be theirs."""
        body = enumerate(self._facts.cfg.body)
        return [i for i, each in body if isa.semantics(each) in ("weak", "relaxed") and _writes_global(each)]

    def _wrong_kinds(self, states: Sequence[tuple[int, Instruction, Queue]]) -> Iterator[Hazard]:
        """Waits for a kind of group that no copy before them belongs to, where copies of the other kind are pending."""
        body = self._facts.cfg.body
        for index, instruction, state in states:
            row = isa.row(instruction)
            if row is None or row.waits not in GROUPS or self._precedes(self._opens.get(row.waits, ()), index):
                continue
            for batch in state.pending:
                kind = self._groups.tracking(batch.copy)
                if kind is not row.waits and batch.status is Status.FLYING and not self._is_waited(kind, index):
                    copy = next(
                        (c for c in self._groups.members[batch.copy] if _shared_side(body[c], kind)), batch.copy
                    )
                    yield Hazard(Cause.WRONG_KIND, Consequence.UNKNOWN, copy, index, index, batch.commit)
                    break

    def _is_waited(self, kind: Tracking, index: int) -> bool:
        """Whether the loop of an instruction, or the whole function outside loops, waits for that kind of group."""
        loop = self._loop(index)
        return any(self._loop(wait) == loop for wait in self._waits.get(kind, ()))

    def _early_waits(self, states: Sequence[tuple[int, Instruction, Queue]]) -> Iterator[Hazard]:
        """Waits that run before anything was committed, where what is pending is committed after them."""
        for index, instruction, state in states:
            row = isa.row(instruction)
            if row is None or row.waits not in GROUPS or row.commits is not None:
                continue
            commits = self._commits.get(row.waits, ())
            pending = [b for b in state.pending if self._groups.tracking(b.copy) is row.waits and not b.is_foreign]
            after = [commit for commit in commits if self._reaches(index, commit)]
            if pending and after and not self._precedes(commits, index):
                yield Hazard(Cause.EARLY_WAIT, Consequence.UNKNOWN, pending[0].copy, index, index, after[0])

    @cached_property
    def _with_uncommitted(self) -> frozenset[int]:
        """The waits that run while copies of their kind are issued and not yet committed."""
        found = set()
        for wait, state in self._states.items():
            row = isa.row(self._facts.cfg.body[wait])
            for batch in state.pending:
                is_open = batch.status is Status.FLYING and not batch.commits and not batch.is_foreign
                if row is not None and is_open and self._groups.tracking(batch.copy) is row.waits:
                    found.add(wait)
        return frozenset(found)

    @cached_property
    def _states(self) -> Mapping[int, Queue]:
        """The state before each copy and wait."""
        wanted = {index for sites in (*self._waits.values(), *self._opens.values()) for index in sites}
        return {index: state for index, _, state in self._facts.solve(Groups).steps() if index in wanted}

    def _here(self, index: int) -> Crowd:
        """The threads that may run a copy or a wait."""
        state = self._states.get(index)
        return self._facts.threads.everybody if state is None else state.here & self._guarded(index)

    @cached_property
    def _waits(self) -> Mapping[Tracking, Sequence[int]]:
        return self._sites(lambda row: row.waits)

    @cached_property
    def _commits(self) -> Mapping[Tracking, Sequence[int]]:
        return self._sites(lambda row: row.commits)

    @cached_property
    def _opens(self) -> Mapping[Tracking, Sequence[int]]:
        return self._sites(lambda row: row.opens)

    def _sites(self, kind_of: Callable[[Row], Tracking | None]) -> Mapping[Tracking, Sequence[int]]:
        found: dict[Tracking, list[int]] = {}
        for index, instruction in enumerate(self._facts.cfg.body):
            row = isa.row(instruction)
            kind = None if row is None else kind_of(row)
            if kind in GROUPS:
                found.setdefault(kind, []).append(index)
        return found

    def _loop(self, index: int) -> int | None:
        return self._facts.cfg.loop_of[self._facts.cfg.block_of[index]]

    def _precedes(self, earlier: Sequence[int], index: int) -> bool:
        return any(self._reaches(one, index) for one in earlier)

    def _is_between(self, first: int, middle: int, last: int) -> bool:
        return self._reaches(first, middle) and self._reaches(middle, last)

    def _reaches(self, first: int, second: int) -> bool:
        """Whether some path leads from one instruction to another."""
        cfg = self._facts.cfg
        start, end = cfg.block_of[first], cfg.block_of[second]
        return (start == end and first < second) or end in self._beyond(start)

    def _beyond(self, block: int) -> frozenset[int]:
        if block not in self._reached:
            cfg = self._facts.cfg
            seen: set[int] = set()
            stack = [edge.target for edge in cfg.blocks[block].successors]
            while stack:
                at = stack.pop()
                if at not in seen:
                    seen.add(at)
                    stack.extend(edge.target for edge in cfg.blocks[at].successors)
            self._reached[block] = frozenset(seen)
        return self._reached[block]

    @cached_property
    def _reached(self) -> dict[int, frozenset[int]]:
        return {}


def _parties(batch: Pending) -> Parties:
    """Who they are that meet in bytes of a batch."""
    if batch.is_apart:
        return Parties.WARPS
    return Parties.THREADS if batch.status is Status.LANDED else Parties.ANY


def _is_shadow(batch: Pending, state: Queue) -> bool:
    """Whether a batch is what other threads saw of one that has landed since."""
    return batch.is_foreign and any(
        other.copy == batch.copy and other.laps == batch.laps and other.status is Status.LANDED
        for other in state.pending
    )


def _is_shared(instruction: Instruction, access: Access) -> bool:
    return isa.space(instruction, access) in ("shared::cta", "shared::cluster", "generic")


def _shared_side(copy: Instruction, kind: Tracking) -> Access | None:
    """The side of a copy that is in shared memory and must be left alone: cp.async's destination, a store's source."""
    role = "destination" if kind is Tracking.CP_ASYNC else "source"
    sides = (access for access in isa.accesses(copy) if access.role == role and access.proxy is not Proxy.TENSORMAP)
    return next((access for access in sides if not access.is_mapped and _is_shared(copy, access)), None)


def _writes_global(instruction: Instruction) -> bool:
    return any(
        access.mode in (Mode.WRITE, Mode.UPDATE)
        and access.proxy is Proxy.GENERIC
        and isa.space(instruction, access) in ("global", "generic")
        for access in isa.accesses(instruction)
    )
