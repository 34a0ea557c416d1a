"""The choice of launch and inputs: what is assumed where neither the PTX nor the user says it.

Inputs are chosen so that every synchronization point is reached and every barrier goes through several phases within
the budget. A launch shape is good when the kernel runs clean under it and reaches much.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from ptxlint.cfg import Cfg
from ptxlint.execution.program import Binding
from ptxlint.execution.runs import ENOUGH_PHASES, STEPS, Run, Runner, varied
from ptxlint.execution.schedule import SCHEDULES
from ptxlint.execution.shapes import Shapes, concerns_cluster
from ptxlint.execution.trace import Fault
from ptxlint.launch import Dimensions

ALL_STEPS = 400_000
"""Steps of all runs of a kernel together that look for a launch shape and inputs."""

ENOUGH_STEPS = 20_000
"""Steps of a run whose inputs are preferred: one that goes on for longer shows little more, several times over."""

SIZES = (13, 7, 300, 800, 2000)
"""Assumed integers, tried in turn while they reach more; 800 makes loops over tiles of 64 go round rings of 7 slots."""

SMALL_SIZES = (4, 2, 1)
"""Assumed integers for kernels in which the first of SIZES exceeds the budget."""

ELSEWHERE: tuple[tuple[Dimensions, int | None], ...] = (((1, 0, 0), None), ((8, 0, 0), 300), ((8, 0, 0), 2000))
"""Other clusters that are run, each with the assumed integers, or those of the first run."""

FAR_GRID = 16
"""Clusters of the grid in which those far from the origin run."""

OTHER_SIZES = (29, 301)
"""Assumed integers under which a fault must show as well, where they reach it, to be certain; for a fault that large
ones show, so much more than those: a run with fewer trips has no say."""

SHORT_TABLES = (29, 7, 4)
"""Assumed integers under which loops that nothing synchronizes stay within the tables that they go through."""

FULL = 1 << 16
"""An integer that every number of threads divides, and every number of elements that one access moves."""

TILE = 1024
"""An integer that likely tiles and rows of threads divide, with fewer trips than FULL makes."""

LARGE = 100
"""The least of those large ones."""

LONG = 800
"""Assumed integers of a run that goes round long loops many times."""

LONG_STEPS = 5_000
"""Steps after which that run is cut: what happens at the end the others show."""

LAPS = 4
"""Phases of each mbarrier after which its accesses have shown who comes too early in that run."""

AHEAD = frozenset({Fault.OVERTAKE, Fault.OVER_ARRIVAL})
"""What a run shows where one side does not wait for the other."""

MOST_VARIED = 24
"""Parameter words that are varied one by one to reach more."""


class Choice:
    """Tries launch shapes and inputs of one kernel. `alternatives` holds, for shapes under which some inputs end in a
    fault, the run under others that reached most and went well; `overtaken` the long runs in which somebody runs ahead,
    unless the cluster is a guess; `in_vain` points from which no parameter word of 0 led to others.
    """

    def __init__(self, runner: Runner, cfg: Cfg) -> None:
        self.runner = runner
        self.cfg = cfg
        self.alternatives: dict[tuple[Dimensions, Dimensions], Run] = {}
        self.overtaken: dict[tuple[Dimensions, Dimensions], Run] = {}
        self.in_vain: set[frozenset[int]] = set()
        self.reads_position = any(
            slot.kind == "special" and slot.name.startswith(("%ctaid", "%clusterid"))
            for slot in runner.program.slots.index
        )
        self.of_clusters = frozenset(point for point in runner.seeds if concerns_cluster(cfg.body[point]))

    @property
    def is_exhausted(self) -> bool:
        """Whether no steps are left to look for more."""
        return self.runner.spent > ALL_STEPS

    def tried(self, shapes: Shapes) -> list[list[Run]]:
        """The runs under each shape, up to one that leaves nothing to wish for.

        Where all that is left concerns the cluster, no other block is tried in that cluster.
        """
        found: list[list[Run]] = []
        finished: set[Dimensions] = set()
        for block, cluster in shapes:
            if cluster in finished:
                continue
            found.append(self.under(block, cluster))
            if self._is_settled(found[-1]) or self.is_exhausted:
                break
            if self._leaves_cluster(found[-1]):
                finished.add(cluster)
        return found

    def under(self, block: Dimensions, cluster: Dimensions) -> list[Run]:
        """The runs under one shape."""
        return self.schedules(self._chosen(block, cluster))

    def merit(self, runs: Sequence[Run]) -> tuple[bool, bool, int]:
        """How much runs are worth: possible within budget and cluster, clean, reaching much."""
        possible = not runs[0].out_of_budget and not any(run.machine.left_cluster for run in runs)
        return possible, all(run.is_clean for run in runs), len(self.runner.covered(runs[0]))

    def schedules(self, first: Run) -> list[Run]:
        """The runs under the launch and inputs of the first: one for each schedule, fewer once the outcome is clear."""
        runs = [first]
        if first.out_of_budget:
            return runs
        self.runner.note_initializers(first.machine)
        for schedule in SCHEDULES[1:]:
            runs.append(self.runner.go(first.binding, schedule))
            if not runs[-1].is_clean and not first.is_clean:
                break
        runs += self._elsewhere(first)
        return [*runs, *self._varied(first, runs), *self._longer(first)]

    def _chosen(self, block: Dimensions, cluster: Dimensions) -> Run:
        """The run whose inputs reach the most synchronization points and phases within the budget."""
        best = self._first(block, cluster, SIZES[0])
        if best.out_of_budget:
            for steps, size in itertools.product((ENOUGH_STEPS, STEPS), SMALL_SIZES):
                best = self._first(block, cluster, size, steps)
                if not best.out_of_budget:
                    break
            return best
        faulty = None
        for size in SIZES[1:]:
            is_enough = not self._left(best.binding, self.runner.covered(best))
            if (is_enough and self.runner.reach(best)[1] == ENOUGH_PHASES) or self.is_exhausted:
                break
            run = self._first(block, cluster, size)
            if run.out_of_budget:
                break
            if run.is_clean and self.runner.reach(run) > self.runner.reach(best):
                best = run
            elif not run.is_clean and faulty is None:
                faulty = run
        if best.is_clean and faulty is not None:
            self.alternatives[block, cluster] = best
            return faulty
        return best

    def _first(self, block: Dimensions, cluster: Dimensions, size: int, steps: int = ENOUGH_STEPS) -> Run:
        return self.runner.go(self.runner.binding(block, cluster, size), SCHEDULES[0], steps=steps)

    def _elsewhere(self, first: Run) -> list[Run]:
        """Runs of other clusters of the grid, when roles go by the cluster, that reach something new.

        Those far from the origin, in a large grid, must also go well: under a causal mask they have the most tiles.
        """
        reached, added = self.runner.covered(first), list[Run]()
        for position, size in ELSEWHERE if self.reads_position else ():
            if not self._left(first.binding, reached) or self.is_exhausted:
                break
            binding = first.binding
            if size is not None:
                width = FAR_GRID * binding.cluster[0]
                binding = self.runner.binding(binding.block, binding.cluster, size)
                binding = replace(binding, grid=(width, *binding.grid[1:]))
            away = self.runner.go(replace(binding, position=position), SCHEDULES[0])
            is_wanted = away.is_clean if size is not None else not away.out_of_budget
            if is_wanted and not self.runner.covered(away) <= reached:
                added.append(away)
                reached |= self.runner.covered(away)
        return added

    def _varied(self, first: Run, runs: Sequence[Run]) -> list[Run]:
        """Runs with one parameter word of 0, by itself and with null pointers, that reach something new and go well.

        What they did not reach from the same beginning under one shape they will not under another.
        """
        reached = set().union(*map(self.runner.covered, runs))
        before = frozenset(reached)
        added: list[Run] = []
        if before in self.in_vain or not all(run.is_clean for run in runs):
            return added
        words = [(slot.name, slot.offset) for slot in self.runner.words()]
        null = dict.fromkeys(self.runner.pointers, 0)
        for word, others in itertools.product(words[:MOST_VARIED], ({}, null)):
            if not self._left(first.binding, reached) or self.is_exhausted:
                break
            run = self.runner.go(varied(first.binding, {**others, word: 0}), SCHEDULES[0])
            if run.is_clean and not self.runner.covered(run) <= reached:
                added.append(run)
                reached |= self.runner.covered(run)
        if not added:
            self.in_vain.add(before)
        return added

    def _longer(self, first: Run) -> list[Run]:
        """The beginning of a run with large integers, where it goes well and comes to later phases than the first; also
        where the first had to be small, for longer inner loops.

        Rings must come round to show who refills them too early; of all tiles of a persistent kernel no run sees the
        end.
        """
        if first.binding.inputs.size >= LONG or not first.is_clean:
            return []
        binding = self.runner.binding(first.binding.block, first.binding.cluster, LONG)
        run = self.runner.go(replace(binding, cut=LONG_STEPS), SCHEDULES[-1])
        enough = {address: min(b.phase, LAPS) for address, b in run.machine.mbarriers.items() if b.phase}
        run = replace(run, binding=replace(run.binding, enough=enough))
        is_guessed = not self.runner.launch.cluster and first.binding.cluster_size > 1
        is_ahead = not run.is_clean and {incident.fault for incident in run.machine.incidents} <= AHEAD
        if is_ahead and not is_guessed:
            self.overtaken[first.binding.block, first.binding.cluster] = run
        is_longer = first.binding.inputs.size in SMALL_SIZES or _phases(run) > _phases(first)
        return [run] if run.is_clean and is_longer else []

    def _left(self, binding: Binding, reached: Set[int]) -> Set[int]:
        """The synchronization points that were not reached, but for those that only another cluster may reach."""
        left = self.runner.seeds - reached
        is_one = self.runner.launch.cluster is None and binding.cluster_size == 1
        return left - self.of_clusters if is_one else left

    def _is_settled(self, runs: Sequence[Run]) -> bool:
        """Whether no other launch shape needs to be tried: all is well, and nothing that another shape may reach is
        left."""
        left = self.runner.seeds.difference(*map(self.runner.covered, runs))
        if not all(run.is_clean for run in runs):
            return False
        if self.runner.launch.block or self.cfg.function.directive("maxntid"):
            return not left & self.of_clusters
        return not left

    def _leaves_cluster(self, runs: Sequence[Run]) -> bool:
        """Whether all went well, and whatever was not reached concerns the cluster."""
        left = self.runner.seeds.difference(*map(self.runner.covered, runs))
        return left <= self.of_clusters and all(run.is_clean for run in runs)


def _phases(run: Run) -> int:
    """Completed phases of the busiest mbarrier."""
    return max((barrier.phase for barrier in run.machine.mbarriers.values()), default=0)


def other_sizes(size: int) -> Iterator[int]:
    """Integers that are assumed instead of one of them, to see whether a fault hinges on it."""
    return (other if size < LARGE else size + other for other in OTHER_SIZES)
