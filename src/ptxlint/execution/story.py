"""What a run showed, told for people: names of barriers, events in words, and a fault with all that a finding needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ptxlint import isa
from ptxlint.classes import dataclass
from ptxlint.demangle import variable_name
from ptxlint.execution.engine import Execution
from ptxlint.execution.judgement import Defect
from ptxlint.execution.layout import OFFSET_MASK, RANK_SHIFT, Layout
from ptxlint.execution.trace import Agent, Event, Fault, Incident, Kind, threads_in_words
from ptxlint.ir import Instruction
from ptxlint.rule import Finding, Related, Severity, Step
from ptxlint.source import Loc, Span

BARRIER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Names:
    """What the barriers of a kernel are called: `full[2]`, `ready` or, in memory with other contents, `smem+65536`.

    `slots` holds the variables that are arrays of mbarriers; `ranks` whether the CTA belongs to the name.
    """

    layout: Layout
    slots: frozenset[str]
    ranks: bool

    @staticmethod
    def of(execution: Execution) -> Names:
        """The names of a kernel's barriers: a variable is an array of them when they fill at least half of it."""
        layout = execution.layout
        addresses = {address & OFFSET_MASK for run in execution.runs for address in run.machine.mbarriers}
        held: dict[str, int] = {}
        for address in addresses:
            place = layout.place(address)
            held[place.symbol] = held.get(place.symbol, 0) + (place.offset % BARRIER_BYTES == 0)
        arrays = (name for name, number in held.items() if 0 < layout.sizes.get(name, 0) <= 2 * BARRIER_BYTES * number)
        return Names(layout, frozenset(arrays), any(run.binding.cluster_size > 1 for run in execution.runs))

    def mbarrier(self, address: int) -> str:
        """The name of the mbarrier at a `shared::cluster` address."""
        place = self.layout.place(address)
        name = variable_name(place.symbol) or "shared"
        slot, rest = divmod(place.offset, BARRIER_BYTES)
        if place.symbol in self.slots and rest == 0:
            name += f"[{slot}]" if self.layout.sizes[place.symbol] > BARRIER_BYTES else ""
        elif place.offset:
            name += f"+{place.offset}"
        return f"{name} of CTA {place.rank}" if self.ranks else name

    def memory(self, address: int) -> str:
        """The name of the memory at a `shared::cluster` address: its variable and the bytes into it."""
        place = self.layout.place(address)
        return f"{variable_name(place.symbol) or 'shared'}{f'+{place.offset}' if place.offset else ''}"

    def target(self, instruction: Instruction, target: int | None) -> str:
        """The name of what an instruction synchronizes on."""
        roles = isa.roles(instruction)
        if "barrier" in roles:
            return f"barrier {target}"
        if target is None:
            return "the cluster barrier"
        return self.mbarrier(target) if "mbarrier" in roles else self.memory(target)


def in_words(event: Event, body: Sequence[Instruction], names: Names) -> str:
    """What an event did, and how the barrier stood afterwards."""
    target = names.target(body[event.point], event.object) if event.point >= 0 else ""
    match event.kind:
        case Kind.INIT:
            return f"initializes {target} for {counted(event.amount, 'arrival')}"
        case Kind.INVAL:
            return f"invalidates {target}"
        case Kind.ARRIVE:
            return f"arrives at {target}{_times(event.amount)}; phase {event.phase} {_lacks(event)}"
        case Kind.EXPECT:
            return f"expects {event.amount} bytes on {target}; phase {event.phase} {_lacks(event)}"
        case Kind.COMPLETE:
            return f"{event.amount} bytes land for {target}; phase {event.phase} {_lacks(event)}"
        case Kind.COPY:
            return f"starts {_operation(event.amount)} {target}"
        case Kind.WAIT:
            return f"waits on {target} for parity {event.amount}: {_seen(event.phase)}"
        case Kind.POLL:
            return f"looks at {target} for parity {event.amount}: not complete"
        case Kind.PHASE:
            return f"phase {event.phase} of {names.mbarrier(event.object or 0)} completes"
        case Kind.SYNC:
            return f"waits at {target} for {event.amount} threads (use {event.phase})"
        case Kind.BAR_ARRIVE:
            return f"arrives at {target} of {event.amount} threads (use {event.phase})"
        case Kind.CLUSTER_ARRIVE:
            return f"arrives at the cluster barrier (use {event.phase})"
        case Kind.CLUSTER_WAIT:
            return f"passes the cluster barrier (use {event.phase})"
        case _:
            return str(event.kind)


def together(agents: Iterable[Agent]) -> str:
    """The threads of several agents in words: `warps 0-3`, `thread 0 of each CTA`."""
    ranks: dict[int, set[int]] = {}
    for agent in agents:
        ranks.setdefault(agent.rank, set()).update(agent.threads)
    words = {rank: threads_in_words(tuple(sorted(threads))) for rank, threads in ranks.items()}
    if len(words) > 1 and len(set(words.values())) == 1:
        return f"{next(iter(words.values()))} of each CTA"
    return ", ".join(f"{text}{f' of CTA {rank}' if rank else ''}" for rank, text in words.items())


def counted(number: int, noun: str) -> str:
    """`1 arrival`, `2 arrivals`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def brief(names: Sequence[str]) -> str:
    """Names in short: `full[0-3]`, `full[0-3] of each CTA`, `tile`, `smem+64, smem+72`."""
    unique = sorted(dict.fromkeys(names), key=_by_number)
    bare = list(dict.fromkeys(name.partition(" of CTA ")[0] for name in unique))
    ctas = {rank for _, _, rank in (name.partition(" of CTA ") for name in unique) if rank}
    suffix = f" of CTA {next(iter(ctas))}" if len(ctas) == 1 else " of each CTA" if len(bare) < len(unique) else ""
    shown = bare if suffix else unique
    heads = {name.partition("[")[0] for name in shown}
    if len(shown) > 1 and len(heads) == 1 and all(name.endswith("]") for name in shown):
        slots = [int(name.rpartition("[")[2][:-1]) for name in shown]
        if slots == list(range(slots[0], slots[-1] + 1)):
            return f"{heads.pop()}[{slots[0]}-{slots[-1]}]{suffix}"
    listed = ", ".join(shown) if len(shown) < 4 else f"{shown[0]} ... {shown[-1]} ({len(shown)})"
    return f"{listed}{suffix}"


def _by_number(name: str) -> tuple[str, list[int]]:
    return re.sub(r"\d+", "", name), [int(number) for number in re.findall(r"\d+", name)]


def _times(amount: int) -> str:
    return f" {amount} times" if amount > 1 else ""


def _lacks(event: Event) -> str:
    missing = [counted(event.pending, "arrival")] if event.pending > 0 else []
    missing += [f"{event.tx} bytes"] if event.tx else []
    surplus = [f"{counted(-event.pending, 'arrival')} too many"] if event.pending < 0 else []
    return ", ".join([f"lacks {' and '.join(missing)}", *surplus] if missing else surplus or ["lacks nothing"])


def _operation(size: int) -> str:
    if size == 0:
        return "an operation that will arrive at"
    return f"a copy of {f'{size} bytes' if size > 0 else 'a tensor box'} that completes on"


def _seen(phase: int) -> str:
    return f"phase {phase} is complete" if phase >= 0 else "passes at once, no phase has been used"


@dataclass(frozen=True, slots=True)
class Story:
    """A fault of a kernel at one place of its source; several defects where unrolled code repeats it."""

    defects: tuple[Defect, ...]
    execution: Execution
    names: Names

    @property
    def incident(self) -> Incident:
        """The first of the defects."""
        return self.defects[0].incident

    @property
    def fault(self) -> Fault:
        """Which fault."""
        return self.incident.fault

    @property
    def agent(self) -> str:
        """Who ran into it."""
        return self._who(self.incident)

    def subject(self, verb: str) -> str:
        """Who ran into it with what they do, the verb in its plain form: `warp 0 waits`, `warps 1-3 wait`."""
        is_plural = re.match(r"\d|\w+s ", self.agent)
        return f"{self.agent} {verb}{'' if is_plural else 'es' if verb.endswith('s') else 's'}"

    @property
    def span(self) -> Span:
        """Where the finding lies."""
        return self._span(self.incident.point)

    @property
    def memory(self) -> str:
        """The memory concerned, where it is none of a barrier."""
        return self.names.memory(self.incident.object or 0)

    @property
    def barrier(self) -> str:
        """The barrier concerned, or all of them."""
        return brief([self._name(defect.incident) for defect in self.defects])

    def number(self, name: str) -> int:
        """One of the numbers of the fault; 0 where it has none of that name."""
        return self.incident.details.get(name, 0)

    def counted(self, name: str, noun: str) -> str:
        """One of the numbers with its noun: `1 arrival`, `2 arrivals`."""
        return counted(self.number(name), noun)

    @property
    def visit(self) -> str:
        """How often the agent had come to the place by then, this time included: `2nd`."""
        return ordinal(self.number("visit") or self._visits())

    def _visits(self) -> int:
        who = self.incident.agent
        if who is None:
            return 1
        times = sum(
            1
            for event in self.defects[0].run.machine.events[: self.incident.order]
            if self._is_here(event.point)
            and event.object == self.incident.object
            and event.agent is not None
            and event.agent.rank == who.rank
            and who.threads[0] in event.agent.threads
            and event.kind is not Kind.EXPECT
        )
        return max(times, 1) if self.fault in _RECORDED_BEFORE else times + 1

    def _is_here(self, point: int) -> bool:
        """Whether a point belongs to the place of the fault: that one, or another copy of its source line."""
        here, there = self.execution.body[self.incident.point].loc, self.execution.body[point].loc
        return point == self.incident.point or (point >= 0 and here is not None and here == there)

    def finding(self, message: str, fix: str, *, is_contested: bool = False) -> Finding:
        """The finding that says so, with the places, events and assumptions that belong to it; contested, a warning."""
        is_certain = any(defect.is_certain for defect in self.defects)
        assumptions = (*self.execution.assumptions, *(a for defect in self.defects for a in defect.assumptions))
        return Finding(
            self.span,
            message,
            fix,
            tuple(self._related()),
            tuple(self._witness()),
            tuple(dict.fromkeys(assumptions)),
            None if is_certain and not is_contested else Severity.WARNING,
        )

    def _who(self, incident: Incident) -> str:
        return str(incident.agent) if incident.agent else "the hardware"

    def _name(self, incident: Incident) -> str:
        target = incident.object
        if target is not None and "rank" in incident.details:
            target |= incident.details["rank"] << RANK_SHIFT
        return self.names.target(self.execution.body[incident.point], target)

    def _span(self, point: int) -> Span:
        return self.execution.body[point].span

    def _related(self) -> Iterator[Related]:
        seen: set[tuple[Span, str]] = set()
        for defect in self.defects[:1]:
            for point, text in defect.incident.others:
                key = (self._span(point), text)
                if point >= 0 and key not in seen:
                    seen.add(key)
                    yield Related(*key)

    def _witness(self) -> Iterator[Step]:
        body = self.execution.body
        point = self.incident.point
        for event in self.defects[0].witness:
            point = event.point if event.point >= 0 else point
            agent = str(event.agent) if event.agent else "hardware"
            yield Step(agent, body[point].span, in_words(event, body, self.names))


_RECORDED_BEFORE = frozenset({Fault.DIVERGENT, Fault.BARRIER_COUNT, Fault.RUN_AHEAD, Fault.CLUSTER_TWICE})
"""Faults that are noticed after the event that shows them has been recorded."""


def tell(execution: Execution) -> tuple[Story, ...]:
    """The faults of a kernel, one story for each place of the source and kind of fault."""
    body = execution.body
    groups: dict[tuple[Fault, Loc | Span], list[Defect]] = {}
    for defect in execution.defects:
        instruction = body[defect.incident.point]
        groups.setdefault((defect.fault, instruction.loc or instruction.span), []).append(defect)
    names = Names.of(execution)
    return tuple(Story(tuple(group), execution, names) for group in groups.values())
