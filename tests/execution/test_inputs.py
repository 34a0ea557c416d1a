"""What a kernel is assumed to be given."""

from __future__ import annotations

import pytest

from ptxlint import cfg as graphs
from ptxlint.execution.inputs import Assumed, parameter_indices, pointer_parameters
from ptxlint.execution.layout import GLOBAL_BASE
from ptxlint.parse import parse
from ptxlint.testing import module_of


def pointers(snippet: str, declared: str | None = None) -> set[tuple[str, int]]:
    text = module_of(snippet)
    if declared is not None:
        head, _, tail = text.partition("kernel(")
        text = f"{head}kernel({declared}){tail.partition(')')[2]}"
    return set(pointer_parameters(graphs.build(parse(text).functions[0])))


class TestPointers:
    """Which parameter words are addresses."""

    @pytest.mark.parametrize(
        "use",
        [
            "ld.global.u32 %r1, [%rd1];",
            "ld.global.u32 %r1, [%rd1+16];",
            "cvta.to.global.u64 %rd2, %rd1; st.global.u32 [%rd2], 0;",
            "mad.wide.u32 %rd2, %r5, 4, %rd1; ld.global.u32 %r1, [%rd2];",
            "mul.wide.u32 %rd3, %r5, 4; add.s64 %rd2, %rd1, %rd3; ld.global.u32 %r1, [%rd2];",
            "mov.u64 %rd2, %rd1; prefetch.tensormap [%rd2];",
            "cvta.to.global.u64 %rd2, %rd1;",
        ],
    )
    def test_used_as_an_address(self, use: str) -> None:
        assert pointers(f"ld.param.u64 %rd1, [p]; {use}") == {("p", 0)}

    @pytest.mark.parametrize(
        "use", ["add.u64 %rd2, %rd1, 1;", "cvt.u32.u64 %r1, %rd1; mbarrier.init.shared.b64 [%r2], %r1;"]
    )
    def test_used_as_a_number(self, use: str) -> None:
        assert pointers(f"ld.param.u64 %rd1, [n]; {use}") == set()

    def test_an_index_into_an_array_is_no_pointer(self) -> None:
        snippet = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [n]; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r1, [%rd3];"
        assert pointers(snippet) == {("p", 0)}

    def test_a_field_of_a_structure(self) -> None:
        snippet = "ld.param.u64 %rd1, [args+8]; ld.param.u64 %rd2, [args+16]; ld.global.u32 %r1, [%rd1];"
        assert pointers(snippet, ".param .align 8 .b8 args[64]") == {("args", 8)}

    def test_the_elements_of_a_vector_load(self) -> None:
        snippet = "ld.param.v2.u64 {%rd1, %rd2}, [args+16]; ld.global.u32 %r1, [%rd2];"
        assert pointers(snippet, ".param .align 16 .b8 args[64]") == {("args", 24)}

    def test_a_field_that_is_read_through_the_address_of_the_structure(self) -> None:
        begin = "ld.param.u64 %rd4, [args]; mov.b64 %rd5, args; add.s64 %rd6, %rd5, 24;"
        snippet = begin + "ld.param.u64 %rd1, [%rd6+-16]; ld.param.u64 %rd2, [%rd5+16]; ld.global.u32 %r1, [%rd1];"
        assert pointers(snippet, ".param .align 8 .b8 args[64]") == {("args", 8)}

    def test_an_address_of_the_structure_that_moves_on_names_no_field(self) -> None:
        begin = "ld.param.u64 %rd4, [args]; mov.b64 %rd5, args;"
        loop = "L: ld.param.u64 %rd1, [%rd5+8]; ld.global.u32 %r1, [%rd1]; add.s64 %rd5, %rd5, 8; @%p1 bra L;"
        assert pointers(begin + loop, ".param .align 8 .b8 args[64]") == set()

    def test_a_declared_pointer(self) -> None:
        assert pointers("ld.param.u64 %rd1, [p];", ".param .u64 .ptr .global .align 4 p") == {("p", 0)}


ASSUMED = Assumed(
    13,
    pointers=frozenset({("p", 0), ("q", 0), ("args", 8), ("args", 32)}),
    indices={"p": 0, "q": 1, "n": 2, "args": 3},
    given={"n": 40, 3: 9},
    special={("args", 16): 0},
)


class TestAssumed:
    """Values of parameters and memory."""

    def test_a_stated_parameter_by_name_and_by_position(self) -> None:
        assert ASSUMED.parameter("n", 0, 4) == 40
        assert ASSUMED.parameter("args", 0, 4) == 9

    def test_a_stated_value_is_not_that_of_later_fields(self) -> None:
        assert ASSUMED.parameter("args", 4, 4) == 13

    def test_a_negative_value(self) -> None:
        assert Assumed(1, given={"n": -1}).parameter("n", 0, 4) == 0xFFFFFFFF
        assert Assumed(1, given={"n": -1}).parameter("n", 0, 8) == (1 << 64) - 1

    def test_pointers_are_apart(self) -> None:
        places = [ASSUMED.parameter(*field, 8) for field in sorted(ASSUMED.pointers)]
        assert len(set(places)) == 4
        assert all(place >= GLOBAL_BASE for place in places)
        assert all(abs(a - b) >= 1 << 32 for a in places for b in places if a != b)

    def test_other_fields_hold_the_assumed_integer(self) -> None:
        assert ASSUMED.parameter("args", 24, 4) == 13
        assert Assumed(0x1FF).parameter("n", 0, 1) == 0xFF

    def test_a_field_that_a_run_varies(self) -> None:
        assert ASSUMED.parameter("args", 16, 4) == 0

    def test_memory_is_the_same_for_every_reader(self) -> None:
        assert Assumed(5).load(GLOBAL_BASE + 64, 4) == Assumed(5).load(GLOBAL_BASE + 64, 4) == 5

    def test_neighbouring_words_count_up(self) -> None:
        counting = Assumed(5, step=3)
        begin, end = (counting.load(GLOBAL_BASE + offset, 4) for offset in (64, 68))
        assert end - begin == 3

    def test_positions_of_parameters(self) -> None:
        function = parse(module_of("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];")).functions[0]
        assert parameter_indices(function) == {"a": 0, "b": 1}
