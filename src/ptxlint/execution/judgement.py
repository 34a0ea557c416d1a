"""What a fault of a run rests on: whether another launch or other inputs, which may hold as well, make it go away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ptxlint.classes import dataclass
from ptxlint.execution.choice import FULL, MOST_VARIED, Choice, other_sizes
from ptxlint.execution.program import Binding, Slot
from ptxlint.execution.runs import ENOUGH_PHASES, Run, varied
from ptxlint.execution.search import wide
from ptxlint.execution.trace import Event, Fault, Incident

SCHEDULE_FAULTS = frozenset({Fault.SHARED_BARRIER, Fault.BARRIER_COUNT})
"""Faults that a single run may not show."""


@dataclass(frozen=True, slots=True)
class Defect:
    """A fault with all that a finding needs. `is_certain` is False when it rests on an assumption that may not hold."""

    incident: Incident
    witness: tuple[Event, ...]
    assumptions: tuple[str, ...]
    is_certain: bool
    run: Run

    @property
    def fault(self) -> Fault:
        """Which fault."""
        return self.incident.fault


class Judge:
    """Judges the faults of one kernel. `hinging` holds those that the assumed inputs alone may be the reason of.

    has_related_inputs: whether integers come as a structure or from memory, so that host code relates them. has_roles:
    whether threads do different things.
    """

    def __init__(self, choice: Choice, *, has_related_inputs: bool, has_roles: bool) -> None:
        self.runner = choice.runner
        self.launch = choice.runner.launch
        self.choice = choice
        self.has_related_inputs = has_related_inputs
        self.has_roles = has_roles
        self.hinging: list[Defect] = []

    def judged(self, defect: Defect, run: Run, tried: Sequence[Sequence[Run]]) -> Defect | None:
        """A defect with what it rests on: certain when neither another shape nor other inputs make it go away.

        None when other inputs do and they come as a structure or from memory: host code relates its fields and words,
        and the assumed values break that relation.
        """
        point = defect.incident.point
        assumptions = []
        if defect.incident.details.get("trips") and len(self._scalars()) != 1:
            if self.has_related_inputs:
                self.hinging.append(defect)
                return None
            assumptions.append(f"trip counts as integer parameters of {run.binding.inputs.size} make them")
        if not self.launch.cluster and run.binding.cluster_size > 1:
            if self.has_related_inputs:
                self.hinging.append(defect)
                return None
            assumptions.append(f"launched with {_in_words(run.binding)}")
        elif defect.fault is Fault.REINIT and not self.launch.block and not self.has_roles:
            assumptions.append("launched with more than one thread")
        rivals = [runs for runs in tried if point in self.runner.covered(runs[0]) and not runs[0].out_of_budget]
        if defect.fault not in SCHEDULE_FAULTS and any(all(other.is_clean for other in runs) for runs in rivals):
            assumptions.append(f"launched with {_in_words(run.binding)}")
        assumptions = list(dict.fromkeys(assumptions))
        if any(self._refutes(rival, defect) for rival in self._rival_inputs(run.binding, defect.fault)):
            if self.has_related_inputs:
                self.hinging.append(defect)
                return None
            assumptions.append(f"integer parameters and memory such as {run.binding.inputs.size}")
        is_certain = not assumptions
        if is_certain and self._refutes(self._wide(run.binding), defect):
            assumptions.append("fewer clusters than tiles: with a cluster for each tile nothing shows")
        elif is_certain and (word := self._repeating(run.binding, defect)) is not None:
            assumptions.append(f"{self._in_words_of(word)} of more than 1: with 1 nothing shows")
        return replace(defect, assumptions=tuple(assumptions), is_certain=is_certain)

    def _repeating(self, assumed: Binding, defect: Defect) -> Slot | None:
        """The parameter word that makes a kernel go over its work again, if the fault shows in no first time.

        With 1 inner loops still go round; the number of laps of such a loop itself is no assumption worth a word.
        """
        for word in self._scalars()[:MOST_VARIED]:
            single = self._refuting(varied(assumed, {(word.name, word.offset): 1}), defect)
            if single is not None and self.runner.reach(single)[1] == ENOUGH_PHASES:
                return word
        return None

    def _in_words_of(self, word: Slot) -> str:
        where = f" at byte {word.offset}" if word.offset else ""
        return f"parameter {self.runner.indices[word.name]}{where}"

    def _refutes(self, binding: Binding, defect: Defect) -> bool:
        """Whether a run under another launch or other inputs comes to the place of a fault and goes well."""
        return self._refuting(binding, defect) is not None

    def _refuting(self, binding: Binding, defect: Defect) -> Run | None:
        """That run, where it goes so; under shapes of which no other inputs were tried, these are the alternative."""
        if defect.fault in SCHEDULE_FAULTS or binding is defect.run.binding:
            return None
        other = self.runner.go(binding, defect.run.schedule)
        is_there = defect.incident.point in self.runner.covered(other) and _meets(other, defect.incident)
        if other.out_of_budget or not other.is_clean or not is_there:
            return None
        self.choice.alternatives.setdefault((binding.block, binding.cluster), other)
        return other

    def _rival_inputs(self, assumed: Binding, fault: Fault) -> Iterator[Binding]:
        """What may hold instead of the inputs of a run that shows a fault: other integers; where it parts a warp, one
        that gives each thread as much to do as every other."""
        for size in other_sizes(assumed.inputs.size):
            yield self.runner.binding(assumed.block, assumed.cluster, size)
        if fault is Fault.DIVERGENT:
            yield self.runner.binding(assumed.block, assumed.cluster, FULL)
            for word in self._scalars()[:MOST_VARIED]:
                yield varied(assumed, {(word.name, word.offset): FULL})

    def _wide(self, assumed: Binding) -> Binding:
        """The same in a grid that has a cluster for each tile; itself where the user states the grid."""
        return assumed if self.launch.grid else replace(assumed, grid=wide(assumed))

    def _scalars(self) -> list[Slot]:
        """The parameter words, other than pointers, that the slice reads."""
        return [slot for slot in self.runner.words() if (slot.name, slot.offset) not in self.runner.pointers]


def _meets(run: Run, incident: Incident) -> bool:
    """Whether a run comes to the place of an incident with the same barrier; with any, where that one is the fault."""
    is_any = incident.fault is Fault.PARITY_OF_OTHER_SLOT
    here = (event for event in run.machine.events if event.point == incident.point)
    return any(is_any or event.object == incident.object for event in here)


def _in_words(binding: Binding) -> str:
    block, cluster = ("x".join(map(str, extents)) for extents in (binding.block, binding.cluster))
    return f"{block} threads" + (f" in clusters of {cluster}" if binding.cluster_size > 1 else "")
