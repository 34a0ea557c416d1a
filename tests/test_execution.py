"""The execution engine on whole kernels: the right fault on the right line of each wrong one, silence on right ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ptxlint.execution.engine import Execution, execute
from ptxlint.execution.judgement import Defect
from ptxlint.execution.story import tell
from ptxlint.execution.trace import Fault, Kind
from ptxlint.launch import Dimensions, Launch, stated
from ptxlint.parse import parse
from ptxlint.testing import module_of
from ptxlint.validate.fixture import Fixture, Variant, load_fixtures

KERNELS = Path(__file__).parent.parent / "fixtures" / "kernels"

FAULTS = {
    "missing-phase-toggle": {Fault.PARITY_CONSTANT},
    "parity-slot-mismatch": {Fault.PARITY_OF_OTHER_SLOT},
    "wrong-initial-parity": {Fault.PARITY_INITIAL},
    "phase-restart": {Fault.PARITY_RESTARTED},
    "barrier-reinit": {Fault.REINIT},
    "wait-without-arrival": {Fault.NO_ARRIVAL, Fault.STUCK},
    "arrival-count-mismatch": {Fault.ARRIVALS_MISSING, Fault.BAD_COUNT},
    "over-arrival": {Fault.OVER_ARRIVAL},
    "expect-tx-mismatch": {Fault.BYTES, Fault.UNEXPECTED_COPY},
    "expect-tx-without-arrival": {Fault.EXPECT_WITHOUT_ARRIVAL},
    "unpublished-barrier-init": {Fault.UNPUBLISHED},
    "barrier-before-init": {Fault.BEFORE_INIT},
    "barrier-after-inval": {Fault.AFTER_INVAL},
    "phase-overtake": {Fault.OVERTAKE},
    "cyclic-wait": {Fault.CYCLE},
    "barrier-thread-count": {Fault.BARRIER_COUNT, Fault.STUCK_BARRIER},
    "barrier-in-role-branch": {Fault.ROLE_BARRIER},
    "arrive-run-ahead": {Fault.RUN_AHEAD},
    "aligned-under-divergence": {Fault.DIVERGENT},
    "unpaired-cluster-barrier": {
        Fault.CLUSTER_TWICE,
        Fault.CLUSTER_UNARRIVED,
        Fault.CLUSTER_UNWAITED,
        Fault.STUCK_CLUSTER,
    },
    "remote-access-before-cluster-sync": {Fault.REMOTE_EARLY},
    "cluster-exit-unsynced": {Fault.REMOTE_LATE},
    "misaligned-mbarrier": {Fault.MISALIGNED},
}
"""The faults behind each rule that rests on the engine alone."""


def _variants(*, right: bool) -> Iterator[object]:
    for fixture in load_fixtures(KERNELS):
        for variant in fixture.variants:
            rules = {marker.rule for marker in variant.markers}
            if variant.ptx.exists() and (variant.right if right else rules & FAULTS.keys()):
                yield pytest.param(fixture, variant, id=variant.id)


@cache
def _execution(path: Path, name: str, launch: Dimensions | None, cluster: Dimensions | None) -> Execution:
    module = parse(path.read_text())
    function = module.function(name)
    assert function is not None
    return execute(module, function, stated(function, Launch(launch, cluster)))


def _as_launched(fixture: Fixture, variant: Variant) -> list[Execution]:
    block, cluster = ((*extents, 1, 1) for extents in (fixture.launch.block, fixture.launch.cluster))
    shapes = (block[0], block[1], block[2]), (cluster[0], cluster[1], cluster[2])
    return [_execution(variant.ptx, name, *shapes) for name in dict.fromkeys(fixture.sequence)]


def _lines(execution: Execution, defect: Defect) -> set[int]:
    """The source lines of the place that a defect blames, callers included."""
    loc = execution.body[defect.incident.point].loc
    lines = set()
    while loc is not None:
        lines.add(loc.line)
        loc = loc.inlined_at
    return lines


def _told(execution: Execution) -> list[str]:
    return [f"{defect.fault.name} at {sorted(_lines(execution, defect))}" for defect in execution.defects]


@pytest.mark.parametrize(("fixture", "variant"), list(_variants(right=False)))
def test_fault_and_line(fixture: Fixture, variant: Variant) -> None:
    """One of the variant's markers is met by fault and line, and whatever else is found may fire beside it."""
    executions = _as_launched(fixture, variant)
    told = [line for execution in executions for line in _told(execution)]
    expected = [marker for marker in variant.markers if marker.rule in FAULTS]
    rules = {marker.rule for marker in expected} | variant.also
    allowed = {fault for rule in rules for fault in FAULTS.get(rule, ())}
    found = {defect.fault for execution in executions for defect in execution.defects}
    assert found <= allowed, f"stray: {told}"
    assert any(
        defect.fault in FAULTS[marker.rule] and marker.line in _lines(execution, defect)
        for marker in expected
        for execution in executions
        for defect in execution.defects
    ), f"expected {[(marker.rule, marker.line) for marker in expected]}, found {told}"


@pytest.mark.parametrize(("fixture", "variant"), list(_variants(right=True)))
def test_right_kernels_are_silent(fixture: Fixture, variant: Variant) -> None:
    for execution in _as_launched(fixture, variant):
        assert not execution.defects, _told(execution)
        assert execution.not_analysed is None
        assert len(execution.uncovered) <= len(execution.points) // 10


@pytest.mark.parametrize(("fixture", "variant"), list(_variants(right=True)))
def test_right_kernels_are_silent_without_a_launch(fixture: Fixture, variant: Variant) -> None:
    for name in dict.fromkeys(fixture.sequence):
        execution = _execution(variant.ptx, name, None, None)
        assert not execution.defects, _told(execution)
        assert execution.not_analysed is None


def _ring(variant: str) -> Execution:
    return _execution(KERNELS / "ring" / f"{variant}.ptx", "ring", (160, 1, 1), (1, 1, 1))


class TestRing:
    """What the engine says of the plain ring, in numbers."""

    def test_every_phase_of_every_slot_is_waited_for_in_turn(self) -> None:
        execution = _ring("right")
        for run in execution.runs:
            for address, barrier in run.machine.mbarriers.items():
                waits = [e for e in run.machine.events if e.kind is Kind.WAIT and e.object == address]
                threads = {event.agent.threads[0] for event in waits if event.agent}
                for thread in threads:
                    phases = [e.phase for e in waits if e.agent and e.agent.threads[0] == thread]
                    assert phases == list(range(phases[0], phases[0] + len(phases)))
                    assert phases[0] == (-1 if barrier.expected == 128 else 0)

    def test_it_runs_under_five_schedules(self) -> None:
        assert len({str(run.schedule) for run in _ring("right").runs}) == 5

    def test_a_count_too_large_names_both_counts(self) -> None:
        (defect,) = _ring("init-count-2").defects
        assert (defect.incident.details["expected"], defect.incident.details["arrivals"]) == (2, 1)

    def test_bytes_too_many_name_both_numbers(self) -> None:
        (defect,) = _ring("expect-tx-plus-16").defects
        assert (defect.incident.details["expected"], defect.incident.details["copied"]) == (528, 512)

    def test_the_missing_toggle_shows_in_the_second_visit(self) -> None:
        (defect,) = _ring("no-toggle").defects
        assert (defect.incident.details["parity"], defect.incident.details["visit"]) == (0, 2)

    def test_a_fault_of_every_slot_is_one_story(self) -> None:
        execution = _ring("no-sync-after-init")
        stories = tell(execution)
        assert len(execution.defects) == 8
        assert sorted(story.barrier for story in stories) == [
            "empty[0-3]",
            "full[0-3]",
        ]

    def test_a_story_carries_the_events_that_led_to_the_fault(self) -> None:
        (story,) = tell(_ring("no-toggle"))
        finding = story.finding("message", "fix")
        assert story.agent == "warps 1-3"
        assert story.visit == "2nd"
        assert any("waits on full[0] for parity 0" in step.message for step in finding.witness)
        assert finding.severity is None


class TestNames:
    """What barriers are called."""

    @staticmethod
    def _of(declaration: str, address: str) -> str:
        snippet = f"""
{declaration}
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
mbarrier.init.shared.b64 [{address}], 1;
mbarrier.init.shared.b64 [{address}], 1;
DONE:
"""
        module = parse(module_of(snippet))
        function = module.functions[0]
        (story,) = tell(execute(module, function, stated(function, Launch((32, 1, 1), (1, 1, 1)))))
        return story.barrier

    def test_a_variable_of_one_barrier(self) -> None:
        assert self._of(".shared .align 8 .b64 ready;", "ready") == "ready"

    def test_a_variable_of_a_function(self) -> None:
        assert self._of(".shared .align 8 .b64 _ZZ4ringE5ready;", "_ZZ4ringE5ready") == "ready"

    def test_a_slot_of_an_array(self) -> None:
        assert self._of(".shared .align 8 .b8 ready[16];", "ready+8") == "ready[1]"

    def test_memory_with_other_contents(self) -> None:
        assert self._of(".shared .align 16 .b8 global_smem[131072];", "global_smem+65536") == "global_smem+65536"
