"""What a run says of the bytes of tensor boxes, which the PTX does not name.

Two things hold of every box. Copies in flight at the same time fill different bytes, so a box is no larger than the
room up to the next of them, to an mbarrier, or to the end of its variable. And a box belongs to its tensor map: phases
that are filled through the same maps bring the same bytes. A phase that expects other bytes never completes, or
completes while data are missing.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field

from ptxlint import isa
from ptxlint.cfg import Cfg
from ptxlint.classes import dataclass
from ptxlint.execution.barriers import Mbarrier
from ptxlint.execution.layout import RANK_SHIFT, Layout
from ptxlint.execution.trace import Event, Fault, Incident, Kind
from ptxlint.ir import Address, Immediate, Operand, Register, Symbol

_SAME_ADDRESS = frozenset({"mov", "cvta"})


@dataclass(slots=True)
class _Filling:
    """One phase of an mbarrier that has completed: what it expected, and what filled it."""

    expects: list[Event] = field(default_factory=list)
    boxes: list[Event] = field(default_factory=list)
    sized: int = 0

    @property
    def expected(self) -> int:
        """The bytes that its tensor boxes have to bring."""
        return sum(event.amount for event in self.expects) - self.sized


def tensor_maps(cfg: Cfg, definitions: Mapping[str, Sequence[int]]) -> dict[int, Hashable]:
    """What tells the tensor map of a copy from others, by the copy's place; only where it is always the same one.

    A kernel that changes the boxes of maps has none.
    """
    body = cfg.body
    if any("box_dim" in instruction.modifiers for instruction in body):
        return {}
    maps: dict[int, Hashable] = {}
    for point, instruction in enumerate(body):
        row = isa.row(instruction)
        if row is None or row.name != "cp.async.bulk.tensor":
            continue
        source = isa.roles(instruction).get("source")
        known = _map_address(cfg, definitions, source.base, source.offset) if isinstance(source, Address) else None
        if known is not None:
            maps[point] = (known, instruction.modifiers)
    return maps


def _map_address(cfg: Cfg, definitions: Mapping[str, Sequence[int]], base: Operand, offset: int) -> Hashable | None:
    """A symbol or a register that is written once, and an offset from it in bytes."""
    for _ in range(len(cfg.body)):
        if isinstance(base, Symbol):
            return base.name, offset
        places = definitions.get(base.name, ()) if isinstance(base, Register) else ()
        if len(places) != 1:
            return None
        instruction = cfg.body[places[0]]
        match instruction.opcode, instruction.operands:
            case opcode, (_, source) if opcode in _SAME_ADDRESS:
                base = source.base if isinstance(source, Address) else source
            case "add", (_, Register() as source, Immediate(value=int() as step)):
                base, offset = source, offset + step
            case _:
                is_repeated = any(True for _ in cfg.enclosing_loops(cfg.block_of[places[0]]))
                return None if is_repeated else (places[0], offset)
    return None


def misfits(
    events: Sequence[Event], maps: Mapping[int, Hashable], barriers: Mapping[int, Mbarrier], layout: Layout
) -> Iterator[Incident]:
    """The phases of a run that ended well whose bytes cannot be those of their boxes."""
    fillings = _fillings(events)
    if not any(filling.boxes for filling in fillings):
        return
    rooms = _rooms(events, barriers, layout)
    room_of: dict[Hashable, int] = {}
    for filling in fillings:
        for box in filling.boxes:
            if box.point in maps and box.order in rooms:
                key = maps[box.point]
                room_of[key] = min(room_of.get(key, rooms[box.order]), rooms[box.order])
    excess = next(_excesses(fillings, maps, rooms, room_of), None)
    contradiction = excess or next(_contradictions(fillings, maps), None)
    if contradiction is not None:
        yield contradiction


def _fillings(events: Sequence[Event]) -> list[_Filling]:
    """The phases that completed, in order."""
    running: dict[tuple[int | None, int], _Filling] = {}
    completed = []
    for event in events:
        filling = running.setdefault((event.object, event.phase), _Filling())
        match event.kind:
            case Kind.EXPECT:
                filling.expects.append(event)
            case Kind.COPY if event.amount < 0:
                filling.boxes.append(event)
            case Kind.COPY:
                filling.sized += event.amount
            case Kind.COMPLETE if event.agent is not None:
                filling.sized += event.amount
            case Kind.PHASE:
                completed.append(running.pop((event.object, event.phase)))
    return completed


def _rooms(events: Sequence[Event], barriers: Mapping[int, Mbarrier], layout: Layout) -> dict[int, int]:
    """The bytes that each box has at most, by the order of its copy's event."""
    in_flight: list[tuple[int, int]] = []
    phases: dict[tuple[int | None, int], list[tuple[int, int]]] = {}
    rooms: dict[int, int] = {}
    places = sorted(barriers)
    for event in events:
        use = (event.object, event.phase)
        if event.kind is Kind.PHASE:
            for entry in phases.pop(use, ()):
                in_flight.remove(entry)
        elif event.kind is Kind.COPY and event.amount < 0 and event.source >= 0:
            entry = (event.source, event.order)
            at = bisect_right(in_flight, (event.source, -1))
            limits = [in_flight[at][0]] if at < len(in_flight) else []
            limits += _limits(event, places, barriers, layout)
            _narrow(rooms, event.order, event.source, limits)
            for place, order in reversed(in_flight[:at]):
                if place != in_flight[at - 1][0]:
                    break
                _narrow(rooms, order, place, [event.source])
            insort(in_flight, entry)
            phases.setdefault(use, []).append(entry)
    return rooms


def _limits(event: Event, places: Sequence[int], barriers: Mapping[int, Mbarrier], layout: Layout) -> Iterator[int]:
    """Where a box must end: at the next live mbarrier, and at the end of its variable."""
    at = bisect_right(places, event.source)
    following = (barriers[place] for place in places[at : at + 1])
    yield from (barrier.address for barrier in following if barrier.live and barrier.init_order < event.order)
    place = layout.place(event.source)
    size = layout.sizes.get(place.symbol, 0)
    if size > place.offset:
        yield event.source + size - place.offset


def _narrow(rooms: dict[int, int], order: int, start: int, limits: Sequence[int]) -> None:
    known = [limit - start for limit in limits if limit >> RANK_SHIFT == start >> RANK_SHIFT and limit > start]
    if known:
        rooms[order] = min(rooms.get(order, known[0]), *known)


def _excesses(
    fillings: Sequence[_Filling],
    maps: Mapping[int, Hashable],
    rooms: Mapping[int, int],
    room_of: Mapping[Hashable, int],
) -> Iterator[Incident]:
    """Phases that expect more bytes than their boxes have room for."""
    for filling in fillings:
        most = [room_of.get(maps.get(box.point, box), rooms.get(box.order)) for box in filling.boxes]
        known = [room for room in most if room is not None]
        if filling.expects and known and len(known) == len(most) and filling.expected > sum(known):
            others = [(box.point, "copied here") for box in filling.boxes[:2]]
            yield _incident(filling, others, room=filling.sized + sum(known))


def _contradictions(fillings: Sequence[_Filling], maps: Mapping[int, Hashable]) -> Iterator[Incident]:
    """Phases that expect other bytes than most of those which are filled through the same maps."""
    alike: dict[Hashable, list[_Filling]] = {}
    for filling in fillings:
        if filling.expects and filling.boxes and all(box.point in maps for box in filling.boxes):
            used = Counter(maps[box.point] for box in filling.boxes)
            alike.setdefault(frozenset(used.items()), []).append(filling)
    for same in alike.values():
        usual, count = Counter(filling.expected for filling in same).most_common(1)[0]
        for filling in same if 2 * count > len(same) else ():
            if filling.expected != usual:
                right = next(other for other in same if other.expected == usual)
                yield _incident(filling, [(right.expects[-1].point, "expected here")], usual=filling.sized + usual)


def _incident(filling: _Filling, others: Sequence[tuple[int, str]], **details: int) -> Incident:
    last = filling.expects[-1]
    known = {"phase": last.phase, "expected": filling.sized + filling.expected, **details}
    return Incident(Fault.BOXES, last.point, last.agent, last.object, last.order, known, tuple(others))
