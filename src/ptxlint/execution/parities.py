"""Searches for a fault in the parities that waits ask for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from ptxlint.execution.barriers import Mbarrier
from ptxlint.execution.observation import Observation
from ptxlint.execution.recurrence import begins_anew
from ptxlint.execution.schedule import Repair
from ptxlint.execution.strand import Strand
from ptxlint.execution.trace import Event, Fault, Incident, Kind
from ptxlint.execution.waits import WaitGroup, begin_alike, history, run_lengths, unflipped
from ptxlint.ir import Immediate, Register


def repeated_parity(seen: Observation) -> Incident | None:
    """Waits that ask again for a parity they have had: each group by itself, then all of them together.

    A role that hangs at the fault of another comes to its own only when that one is mended.
    """
    repeats = _repeats(seen)
    for group, repeat in repeats:
        repair = Repair(alternating=group.points)
        if seen.mends(repair):
            return _parity_incident(seen, group, repeat, repair)
    points = frozenset(point for group, _ in repeats for point in group.points)
    further = points
    if repeats:
        mended = seen.under(Repair(alternating=points))
        further |= frozenset(point for group, _ in _repeats(mended) for point in group.points)
    if len(repeats) > 1 or further > points:
        repair = Repair(alternating=further)
        if seen.mends(repair):
            group, repeat = min(repeats, key=lambda item: item[1].order)
            return _parity_incident(seen, group, repeat, repair)
    return None


def _repeats(seen: Observation) -> list[tuple[WaitGroup, Event]]:
    """The suspects that ask again for a parity, with the first wait that does."""
    return [(g, repeat) for g in _suspects(seen) if (repeat := _first_repeat(seen, g)) is not None]


def _first_repeat(seen: Observation, group: WaitGroup) -> Event | None:
    """The first wait of a group that asks for the parity that its agent had asked the barrier for before."""
    followed: set[tuple[object, object]] = set()
    repeats: list[Event] = []
    for event in seen.wait_events():
        if event.point in group.points and event.agent:
            key = (event.object, event.agent.threads[0])
            if key not in followed:
                followed.add(key)
                asked = seen.turns(event)
                repeats.extend(b for a, b in itertools.pairwise(asked) if a.amount == b.amount)
    return min(repeats, key=lambda event: event.order, default=None)


def initial_parity(seen: Observation) -> Incident | None:
    """The other parity throughout; only where the waits come back, else it is one wait too many.

    Both sides of a ring may seem to begin wrong. The side that waits for data must not begin with a free pass; when
    it does, it is to blame, else the other.
    """
    found: list[tuple[int, Event]] = []
    for group in _suspects(seen):
        repair = Repair(flipped=group.points)
        if seen.mends(repair) and _comes_back(seen, group, repair):
            first = _first_wait(seen, group)
            if first is not None:
                passed_freely = first.phase < 0 and first.order < len(seen.machine.events)
                blame = 1 if not _carries_data(seen, group, repair) else 0 if passed_freely else 2
                found.append((blame, first))
    if not found:
        return None
    return seen.wait_incident(Fault.PARITY_INITIAL, min(found, key=lambda item: item[0])[1])


def any_parity(seen: Observation) -> Incident | None:
    """Waits that would be right if they asked for the phases in turn, from the first or from the second."""
    for group in _suspects(seen):
        for start in (None, 0, 1):
            repair = Repair(alternating=group.points, start=start)
            is_new = start is not None or _first_repeat(seen, group) is None
            if is_new and seen.mends(repair) and _comes_back(seen, group, repair):
                wait = _last_wait(seen, group)
                restarts = _restarts(seen, wait.point)
                fault = Fault.PARITY_RESTARTED if restarts else Fault.PARITY_OF_OTHER_SLOT
                return seen.wait_incident(fault, wait)
    return None


def stale_address(seen: Observation) -> Incident | None:
    """A barrier that is overtaken and that nobody ever waits on, while its neighbour is waited on twice a lap."""
    waited: dict[int, set[int]] = {}
    for event in seen.machine.events:
        if event.kind is Kind.WAIT and event.object is not None:
            waited.setdefault(event.point, set()).add(event.object)
    everything = {address for addresses in waited.values() for address in addresses}
    for incident in seen.machine.incidents:
        if incident.fault is not Fault.OVERTAKE or incident.object in everything:
            continue
        arrived = {e.object for e in seen.machine.events if e.kind is Kind.ARRIVE and e.point == incident.point}
        for point, addresses in waited.items():
            if len(addresses) == 1 and addresses & arrived:
                event = next(e for e in seen.machine.events if e.kind is Kind.WAIT and e.point == point)
                found = seen.wait_incident(Fault.PARITY_OF_OTHER_SLOT, event)
                never = (incident.point, "this barrier's other slots are never waited on")
                return found._replace(others=(*found.others, never))
    return None


def revisited(seen: Observation, waits: Iterable[tuple[Strand, int, Mbarrier]]) -> Event | None:
    """The wait of a stuck agent by which it came to one barrier twice running, in a ring of several."""
    for strand, point, _ in waits:
        group = next((g for g in seen.groups if point in g.points), None)
        if group is None or len(group.barriers) < 2:
            continue
        turns = [
            e
            for e in seen.wait_events()
            if e.point in group.points
            and e.agent
            and e.agent.rank == strand.cta.rank
            and strand.threads[0] in e.agent.threads
        ]
        for first, second in itertools.pairwise(turns):
            if first.object == second.object and first.amount != second.amount:
                return second
    return None


def _suspects(seen: Observation) -> list[WaitGroup]:
    """The groups on whose barriers something went wrong, and of the agents that it went wrong for."""
    objects = {incident.object for incident in seen.machine.incidents} | {b.address for _, _, b in seen.waits()}
    agents = {i.agent.threads[0] for i in seen.machine.incidents if i.agent} | {s.threads[0] for s in seen.stuck}
    first = [group for group in seen.groups if group.barriers & objects]
    waits = {
        event.point
        for event in seen.machine.events
        if event.kind is Kind.WAIT and event.agent and agents.intersection(event.agent.threads)
    }
    second = [group for group in seen.groups if group not in first and group.points & waits]
    return [*first, *second]


def _comes_back(seen: Observation, group: WaitGroup, repair: Repair) -> bool:
    """Whether the waits of a group go through more than one phase of a barrier once it is mended."""
    events = seen.rerun(repair).events
    return any(e.kind is Kind.WAIT and e.point in group.points and e.phase > 0 for e in events)


def _carries_data(seen: Observation, group: WaitGroup, repair: Repair) -> bool:
    """Whether copies complete on the barriers of a group."""
    events = seen.rerun(repair).events
    return any(e.kind is Kind.COPY and e.object in group.barriers for e in events)


def _first_wait(seen: Observation, group: WaitGroup) -> Event | None:
    return next((e for e in seen.wait_events() if e.point in group.points), None)


def _last_wait(seen: Observation, group: WaitGroup) -> Event:
    return next(e for e in reversed(seen.wait_events()) if e.point in group.points)


def _parity_incident(seen: Observation, group: WaitGroup, event: Event, repair: Repair) -> Incident:
    found = seen.wait_incident(_kind(seen, group, event, repair), event)
    before = unflipped(seen.turns(event), event) if found.fault is Fault.PARITY_CONSTANT else None
    if before is None:
        return found
    again = (event.point, "asks for the same parity")
    return found._replace(point=before.point, details={**found.details, "unflipped": 1}, others=(*found.others, again))


def _kind(seen: Observation, group: WaitGroup, event: Event, repair: Repair) -> Fault:
    """Which mistake the parities of an agent at one barrier show, all of them, as the mended run has them."""
    if _restarts(seen, event.point):
        return Fault.PARITY_RESTARTED
    mended = seen.rerun(repair)
    asked = [e.amount for e in history(mended.events, event)]
    if len(set(asked)) == 1:
        return Fault.PARITY_CONSTANT
    if begin_alike(asked) and _begins_anew(seen, event.point):
        return Fault.PARITY_RESTARTED
    runs = run_lengths(asked)
    if len(group.barriers) == 1 and len(runs) > 1 and all(length > 1 for length in runs[:-1]):
        return Fault.PARITY_OF_OTHER_SLOT
    return Fault.PARITY_CONSTANT


def _restarts(seen: Observation, point: int) -> bool:
    """Whether the parity of a wait is set to a constant inside a loop around the loop of the wait."""
    loops = list(seen.cfg.enclosing_loops(seen.cfg.block_of[point]))
    if len(loops) < 2:
        return False
    inner = seen.cfg.loop_blocks(loops[0])
    sources = seen.machine.program.definitions
    names = [o.name for o in seen.cfg.body[point].operands[2:3] if isinstance(o, Register)]
    known = set(names)
    while names:
        for place in sources.get(names.pop(), ()):
            instruction = seen.cfg.body[place]
            block = seen.cfg.block_of[place]
            outside = any(block in seen.cfg.loop_blocks(loop) for loop in loops[1:]) and block not in inner
            if instruction.opcode != "mov":
                continue
            source = instruction.operands[1]
            if isinstance(source, Immediate) and outside:
                return True
            if isinstance(source, Register) and source.name not in known:
                known.add(source.name)
                names.append(source.name)
    return False


def _begins_anew(seen: Observation, point: int) -> bool:
    parities = [operand for operand in seen.cfg.body[point].operands[2:3] if isinstance(operand, Register)]
    return any(begins_anew(seen.cfg, seen.machine.program.definitions, point, parity) for parity in parities)
