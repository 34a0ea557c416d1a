"""Where variables lie."""

from __future__ import annotations

from ptxlint.execution.layout import GLOBAL_BASE, LOCAL_WINDOW, OFFSET_MASK, PARAMETER_WINDOW, Layout, Place, lay_out
from ptxlint.parse import parse
from ptxlint.testing import module_of

from .running import kernel, run


def placed(snippet: str) -> Layout:
    return kernel(snippet).layout


THREE = """
.shared .align 4 .b8 first[6];
.shared .align 8 .b64 second;
.shared .align 128 .b8 third[256];
st.shared.b8 [first], 0; st.shared.b64 [second], 0; st.shared.b8 [third], 0;
"""


def _with(declarations: str, body: str) -> str:
    """A module with variables of its own."""
    head, entry, tail = module_of("BODY:").partition(".visible .entry")
    registers = ".reg .b32 %r<10>;\n"
    return head + declarations + "\n" + entry + tail.replace("BODY:", registers + body)


class TestShared:
    """Offsets in the window of a CTA."""

    def test_static_variables_lie_apart_and_aligned(self) -> None:
        layout = placed(THREE)
        assert layout.shared == {"first": 1024, "second": 1032, "third": 1152}
        assert layout.shared_end == 1152 + 256

    def test_variables_that_nobody_names_take_no_room(self) -> None:
        assert placed(THREE.replace("st.shared.b64 [second], 0;", "")).shared == {"first": 1024, "third": 1152}

    def test_the_dynamic_part_comes_last_on_1024_bytes(self) -> None:
        module = parse(
            _with(
                ".extern .shared .align 16 .b8 pool[]; .shared .align 4 .b8 fixed[40];",
                "st.shared.b8 [pool], 0; st.shared.b8 [fixed], 0;",
            )
        )
        layout = lay_out(module, module.functions[0])
        assert layout.shared == {"fixed": 1024, "pool": 2048}

    def test_no_variable_is_at_address_zero(self) -> None:
        assert all(offset > 0 for offset in placed(THREE).shared.values())


class TestElsewhere:
    """Local, global and parameter space."""

    SNIPPET = """
    .local .align 4 .b8 one[12]; .local .align 8 .b8 two[16];
    st.local.b32 [one], 0; st.local.b64 [two], 0; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
    """

    def test_each_space_has_its_window(self) -> None:
        layout = placed(self.SNIPPET)
        assert layout.elsewhere["one"] >> 32 == LOCAL_WINDOW >> 32
        assert layout.elsewhere["two"] >= layout.elsewhere["one"] + 12
        assert layout.elsewhere["two"] % 8 == 0
        assert layout.elsewhere["a"] >= PARAMETER_WINDOW
        assert layout.elsewhere["a"] != layout.elsewhere["b"]

    def test_global_variables_are_far_apart(self) -> None:
        module = parse(_with(".global .b32 x; .global .b32 y;", "ld.global.b32 %r1, [x]; ld.global.b32 %r2, [y];"))
        elsewhere = lay_out(module, module.functions[0]).elsewhere
        assert min(elsewhere.values()) > GLOBAL_BASE
        assert abs(elsewhere["x"] - elsewhere["y"]) >= 1 << 32


class TestPlaces:
    """From an address back to a name."""

    def test_the_variable_and_the_bytes_into_it(self) -> None:
        layout = placed(THREE)
        assert layout.place(1152) == Place(0, "third", 0)
        assert layout.place(1152 + 17) == Place(0, "third", 17)
        assert layout.place(1029) == Place(0, "first", 5)

    def test_the_rank_of_the_cta(self) -> None:
        assert placed(THREE).place(3 << 24 | 1032) == Place(3, "second", 0)

    def test_below_all_variables(self) -> None:
        assert placed(THREE).place(16) == Place(0, "", 16)

    def test_in_words(self) -> None:
        layout = placed(THREE)
        assert layout.describe(1152) == "third"
        assert layout.describe(1156) == "third+4"
        assert layout.describe(8) == "shared+8"

    def test_every_cta_of_a_cluster_has_its_own(self) -> None:
        machine = run(".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 1;", 1, 4)
        assert sorted(machine.mbarriers) == [rank << 24 | 1024 for rank in range(4)]
        assert {address & OFFSET_MASK for address in machine.mbarriers} == {1024}
