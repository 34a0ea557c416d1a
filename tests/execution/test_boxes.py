"""What a run says of the bytes of tensor boxes: their room, and what the same tensor map brings elsewhere."""

from __future__ import annotations

import pytest

from ptxlint.execution.schedule import SCHEDULES, Schedule
from ptxlint.execution.trace import Fault

from .running import faults, initialized, run

TILES = """
.shared .align 128 .b8 tiles[4096];
.local .align 64 .b8 maps[256];
mov.b64 %rd1, maps;
add.s64 %rd2, %rd1, 128;
"""


def expect(size: int, barrier: str = "bars") -> str:
    return f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [{barrier}], {size};\n"


def copy(place: int, tensor_map: str = "%rd1", barrier: str = "bars") -> str:
    mechanism = "shared::cta.global.mbarrier::complete_tx::bytes"
    return f"@%p1 cp.async.bulk.tensor.1d.{mechanism} [tiles+{place}], [{tensor_map}, {{%r1}}], [{barrier}];\n"


def wait(parity: int, barrier: str = "bars") -> str:
    label = f"L{len(barrier)}{parity}"
    return f"{label}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [{barrier}], {parity};\n@!%p5 bra {label};\n"


def found(snippet: str, schedule: Schedule = SCHEDULES[0]) -> set[Fault]:
    return faults(run(TILES + initialized() + snippet, 64, schedule=schedule))


class TestRoom:
    """Copies in flight at the same time fill different bytes."""

    @pytest.mark.parametrize("schedule", SCHEDULES)
    @pytest.mark.parametrize(("size", "expected"), [(1024, set()), (1008, set()), (1040, {Fault.BOXES})])
    def test_up_to_the_next_box_in_flight(self, size: int, expected: set[Fault], schedule: Schedule) -> None:
        ring = expect(size) + copy(0) + expect(512, "bars+8") + copy(1024, "%rd2", "bars+8")
        assert found(ring + wait(0) + wait(0, "bars+8"), schedule) == expected

    def test_a_box_that_has_landed_is_no_bound(self) -> None:
        after = expect(2048) + copy(0) + wait(0) + expect(512, "bars+8") + copy(1024, "%rd2", "bars+8")
        assert not found(after + wait(0, "bars+8"))

    @pytest.mark.parametrize(("size", "expected"), [(1024, set()), (1040, {Fault.BOXES})])
    def test_up_to_the_end_of_the_variable(self, size: int, expected: set[Fault]) -> None:
        assert found(expect(size) + copy(3072) + wait(0)) == expected

    def test_what_one_box_of_a_map_shows_holds_for_all(self) -> None:
        last = expect(2048, "bars+8") + copy(0, barrier="bars+8")
        first = expect(1024) + copy(3072) + wait(0)
        assert found(first + last + wait(0, "bars+8")) == {Fault.BOXES}
        assert not found(first + last.replace("%rd1", "%rd2") + wait(0, "bars+8"))

    def test_bytes_of_known_size_count(self) -> None:
        bulk = "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tiles], [%rd9], 512, [bars];\n"
        assert not found(expect(1536) + bulk + copy(3072) + wait(0))
        assert found(expect(1552) + bulk + copy(3072) + wait(0)) == {Fault.BOXES}


class TestMaps:
    """Phases that are filled through the same maps bring the same bytes."""

    @pytest.mark.parametrize(("sizes", "expected"), [((512, 512, 512), set()), ((512, 528, 512), {Fault.BOXES})])
    @pytest.mark.parametrize("tensor_map", ["%rd1", "%rd2"])
    def test_one_phase_that_expects_other_bytes(
        self, sizes: tuple[int, int, int], expected: set[Fault], tensor_map: str
    ) -> None:
        phases = (expect(size) + copy(0, tensor_map) + wait(n % 2) for n, size in enumerate(sizes))
        text = "".join(phase.replace("L", f"L{n}") for n, phase in enumerate(phases))
        assert found(text) == expected

    def test_other_maps_may_bring_other_bytes(self) -> None:
        phases = [expect(512) + copy(0) + wait(0), expect(528) + copy(0, "%rd2") + wait(1), expect(512) + copy(0)]
        assert not found("".join(phases))

    @pytest.mark.parametrize(("move", "expected"), [("", {Fault.BOXES}), ("add.s64 %rd5, %rd5, 128;", set())])
    def test_a_map_that_depends_on_the_trip_is_not_known(self, move: str, expected: set[Fault]) -> None:
        loop = "mov.u32 %r5, 0; mov.b64 %rd5, maps;\nLOOP:\nshr.u32 %r6, %r5, 1; mad.lo.u32 %r6, %r6, 16, 512;\n"
        loop += "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], %r6;\n" + copy(0, "%rd5")
        loop += "and.b32 %r7, %r5, 1;\n" + wait(0).replace(", 0;", ", %r7;")
        loop += f"{move}\nadd.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 3; @%p3 bra LOOP;"
        assert found(loop) == expected

    def test_a_kernel_that_changes_boxes_is_left_alone(self) -> None:
        phases = [expect(size) + copy(0) + wait(n).replace("L", f"L{n}") for n, size in enumerate((512, 528))]
        text = "".join([*phases, expect(512) + copy(0)])
        change = "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 0, %r9;\n"
        assert not found(change + text)
