"""The waits of a run: which belong together, and what led to an incident."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ptxlint.execution.machine import Machine
from ptxlint.execution.trace import Agent, Event, Fault, Incident, Kind
from ptxlint.execution.waits import history, involved, is_touched, run_lengths, unflipped, wait_groups

from .running import happened, initialized, run

THREE = (
    initialized(1, 1)
    + """
@%p1 mbarrier.init.shared.b64 [bars+16], 1;
A: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 1; @!%p5 bra A;
mov.u32 %r5, bars; B: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r5], 1; @!%p5 bra B;
C: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r5+8], 1; @!%p5 bra C;
D: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r5+16], 0; @!%p5 bra D;
"""
)


def _barriers(machine: Machine) -> list[set[int]]:
    return sorted((set(group.barriers) for group in wait_groups(machine)), key=min)


class TestGroups:
    """Waits on common barriers belong together."""

    def test_two_places_on_one_barrier(self) -> None:
        groups = wait_groups(run(THREE, 1))
        assert sorted(len(group.points) for group in groups) == [1, 1, 2]

    def test_the_barrier_that_an_agent_is_stuck_at(self) -> None:
        assert _barriers(run(THREE, 1)) == [{1024}, {1032}, {1040}]

    def test_a_place_that_goes_round_a_ring(self) -> None:
        snippet = (
            initialized()
            + """
        mov.u32 %r5, bars; mov.u32 %r6, 0;
        L: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r5], 1; @!%p5 bra L;
        add.u32 %r5, %r5, 8; add.u32 %r6, %r6, 1; setp.lt.u32 %p6, %r6, 2; @%p6 bra L;
        """
        )
        assert _barriers(run(snippet, 1)) == [{1024, 1032}]

    def test_whether_anything_but_waits_happened(self) -> None:
        machine = run(THREE.replace("mov.u32 %r5, bars;", "mbarrier.arrive.shared::cta.b64 _, [bars+8];", 1), 1)
        assert is_touched(machine, [1032])
        assert not is_touched(machine, [1024])
        assert not is_touched(machine, [4096])


WHO, OTHER = Agent(0, (0, 1)), Agent(0, (5,))


def _events(*steps: tuple[Kind, Agent, int, int]) -> list[Event]:
    return [
        Event(order, kind, agent, 7, target, amount=amount) for order, (kind, agent, target, amount) in enumerate(steps)
    ]


class TestHistory:
    """What an agent asked a barrier for, one after the other."""

    def test_the_waits_of_the_agent_on_the_barrier(self) -> None:
        events = _events(
            (Kind.WAIT, WHO, 8, 0),
            (Kind.ARRIVE, WHO, 16, 1),
            (Kind.WAIT, OTHER, 8, 1),
            (Kind.WAIT, WHO, 16, 1),
            (Kind.WAIT, WHO, 8, 1),
        )
        assert [event.order for event in history(events, events[0])] == [0, 4]

    def test_a_look_and_the_wait_after_it_are_one(self) -> None:
        events = _events(
            (Kind.WAIT, WHO, 8, 0),
            (Kind.WAIT, WHO, 8, 0),
            (Kind.ARRIVE, WHO, 16, 1),
            (Kind.WAIT, WHO, 8, 0),
        )
        assert [event.order for event in history(events, events[0])] == [0, 3]

    def test_threads_of_an_agent_that_has_parted(self) -> None:
        part = Agent(0, (0,))
        events = _events((Kind.WAIT, WHO, 8, 0), (Kind.ARRIVE, part, 16, 1), (Kind.WAIT, part, 8, 1))
        assert [event.amount for event in history(events, events[0])] == [0, 1]


class TestWitness:
    """The events that lead to an incident."""

    def test_those_of_its_barrier_and_of_its_agent(self) -> None:
        machine = run(THREE, 33)
        stuck = happened(machine, Kind.WAIT)[-1].agent
        incident = Incident(Fault.STUCK, 0, stuck, 1040, len(machine.events), {})
        events = involved(incident, machine)
        assert any(event.kind is Kind.INIT and event.object == 1040 for event in events)
        assert not any(event.kind is Kind.INIT and event.object == 1024 and event.agent != stuck for event in events)
        assert [event.order for event in events] == sorted(event.order for event in events)

    def test_no_more_than_a_few_and_nothing_later(self) -> None:
        machine = run(THREE, 1)
        early = Incident(Fault.STUCK, 0, Agent(0, (0,)), 1040, 2, {})
        assert all(event.order <= 2 for event in involved(early, machine))
        late = Incident(Fault.STUCK, 0, Agent(0, (0,)), 1040, 99, {})
        assert len(involved(late, machine, limit=3)) == 3


class TestRunLengths:
    """Runs of equal values."""

    @given(st.lists(st.integers(0, 2)))
    def test_they_add_up(self, values: list[int]) -> None:
        lengths = run_lengths(values)
        assert sum(lengths) == len(values)
        starts = [sum(lengths[:i]) for i in range(len(lengths))]
        assert all(len(set(values[s : s + n])) == 1 for s, n in zip(starts, lengths, strict=True))
        assert all(values[s - 1] != values[s] for s in starts[1:])


def _asked(*waits: tuple[int, int]) -> list[Event]:
    """Waits at points for parities."""
    return [Event(order, Kind.WAIT, WHO, point, 1024, 0, parity) for order, (point, parity) in enumerate(waits)]


class TestUnflipped:
    """Which of two waits is to blame for a parity that is asked for twice."""

    def test_the_one_that_nothing_right_follows(self) -> None:
        asked = _asked((7, 0), (7, 1), (9, 0), (7, 0), (7, 1))
        assert unflipped(asked, asked[3]) == asked[2]

    def test_the_second_when_nothing_leads_to_it_rightly(self) -> None:
        asked = _asked((7, 0), (7, 1), (9, 1), (7, 0))
        assert unflipped(asked, asked[2]) is None

    def test_a_wait_that_comes_back_to_itself(self) -> None:
        asked = _asked((7, 0), (7, 0), (7, 0))
        assert unflipped(asked, asked[1]) is None
