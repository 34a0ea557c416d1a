"""Slots and segments: the program that a slice becomes."""

from __future__ import annotations

import pytest

from ptxlint.execution.inputs import Assumed
from ptxlint.execution.program import Binding, Slot, Slots
from ptxlint.ir import Immediate, Label, Negated, Not, Register, Sink, SpecialRegister, Symbol

from .running import initialized, kernel, values


class TestSlots:
    """One number for everything that can be read or written."""

    def test_the_same_thing_has_the_same_number(self) -> None:
        slots = Slots()
        assert slots.register("%r1") == slots.register("%r1")
        assert slots.register("%r1") != slots.register("%r2")
        assert slots.constant(5) == slots.operand(Immediate(5, "5"))
        assert slots.operand(Register("%r1", "b32")) == slots.register("%r1")

    def test_constants_are_cut_to_the_width_that_is_read(self) -> None:
        slots = Slots()
        assert slots.operand(Immediate(-1, "-1"), 32) == slots.constant(0xFFFFFFFF)
        assert slots.operand(Immediate(-1, "-1"), 64) == slots.constant((1 << 64) - 1)

    def test_inverted_operands_are_those_of_the_register(self) -> None:
        slots = Slots()
        register = Register("%p1", "pred")
        assert slots.operand(Not(register)) == slots.operand(Negated(register)) == slots.register("%p1")

    def test_results_that_are_thrown_away(self) -> None:
        slots = Slots()
        assert slots.operand(Sink()) == slots.register("_")
        assert slots.operand(Label("L")) == slots.register("_")

    def test_symbols_and_special_registers(self) -> None:
        slots = Slots()
        assert slots.operand(Symbol("bar", 8)) == slots.of(Slot("symbol", "bar", 8))
        assert slots.operand(Symbol("bar")) != slots.operand(Symbol("bar", 8))
        assert slots.operand(SpecialRegister("%tid.x")) == slots.of(Slot("special", "%tid.x"))


BINDING = Binding((64, 1, 1), (2, 1, 1), (8, 1, 1), 512, Assumed(3))


class TestRegisters:
    """The slots at the entry of a CTA."""

    def test_symbols_are_addresses_of_the_own_cta(self) -> None:
        program = kernel(".shared .align 8 .b64 bar; mov.u32 %r1, bar; mbarrier.init.shared.b64 [%r1], 1;").program
        index = program.slots.of(Slot("symbol", "bar"))
        assert [program.registers(BINDING, rank)[index] for rank in (0, 1)] == [1024, 1 << 24 | 1024]

    def test_special_registers_differ_by_thread_only_where_they_do(self) -> None:
        program = kernel("mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; add.u32 %r1, %r1, %r2; bar.sync %r1, 64;").program
        values = program.registers(BINDING, 0)
        assert values[program.slots.of(Slot("special", "%tid.x"))] == tuple(range(64))
        assert values[program.slots.of(Slot("special", "%ntid.x"))] == 64

    def test_registers_begin_at_zero(self) -> None:
        program = kernel("bar.sync %r1;").program
        assert program.registers(BINDING, 0)[program.slots.register("%r1")] == 0

    def test_sizes_of_shared_memory(self) -> None:
        program = kernel(
            "mov.u32 %r1, %dynamic_smem_size; mov.u32 %r2, %total_smem_size; add.u32 %r1, %r1, %r2; bar.sync %r1;"
        ).program
        values = program.registers(BINDING, 0)
        assert values[program.slots.of(Slot("special", "%dynamic_smem_size"))] == 512
        assert values[program.slots.of(Slot("special", "%total_smem_size"))] >= 512


class TestBinding:
    """Extents of a launch."""

    @pytest.mark.parametrize(("block", "threads"), [((128, 1, 1), 128), ((32, 4, 2), 256)])
    def test_threads(self, block: tuple[int, int, int], threads: int) -> None:
        assert Binding(block, (2, 2, 1), (4, 4, 1), 0, Assumed(1)).threads == threads

    def test_ctas_of_a_cluster(self) -> None:
        assert Binding((32, 1, 1), (2, 2, 1), (4, 4, 1), 0, Assumed(1)).cluster_size == 4


class TestSegments:
    """Synchronization points stand alone, so that what precedes a wait is not done again."""

    def test_a_synchronization_point_has_its_own_segment(self) -> None:
        program = kernel("mov.u32 %r1, 1; add.u32 %r2, %r1, 1; bar.sync %r1; bar.sync %r2;").program
        sizes = [(segment.point, len(segment.steps)) for segment in program.segments]
        assert (0, 2) in sizes
        assert [size for point, size in sizes if point in (2, 3)] == [0, 0]

    def test_a_wait_that_is_tried_again_repeats_nothing(self) -> None:
        snippet = (
            initialized()
            + """
        mov.u32 %r9, 0; setp.lt.u32 %p2, %r1, 32; @%p2 bra ARRIVE;
        add.u32 %r9, %r9, 1; mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 0; bra DONE;
        ARRIVE: bar.sync 1, 32; @%p1 mbarrier.arrive.shared::cta.b64 _, [bars];
        DONE:
        """
        )
        assert values(snippet, "%r9", 64) == [0] * 32 + [1] * 32
