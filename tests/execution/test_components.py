"""Vector registers taken apart, and control words that st.async sends."""

from __future__ import annotations

from ptxlint.execution.components import scalars
from ptxlint.parse import parse
from ptxlint.testing import module_of

from .running import initialized, values

DECLARED = ".reg .v4 .b32 whole; .reg .v2 .b32 half;\n"


def body(snippet: str) -> list[str]:
    function = scalars(parse(module_of(DECLARED + snippet)).functions[0])
    return [str(instruction) for instruction in function.body or ()]


class TestScalars:
    """Each component is a register of its own."""

    def test_components_and_wholes(self) -> None:
        made = body("mov.b32 whole.y, %r1; st.shared.v4.b32 [%r2], whole;")
        assert made[0] == "mov.b32 whole.y, %r1;"
        assert made[1] == "st.shared.v4.b32 [%r2], {whole.x, whole.y, whole.z, whole.w};"

    def test_colors_are_other_names_for_them(self) -> None:
        assert body("mov.b32 %r1, half.g;")[0] == "mov.b32 %r1, half.y;"

    def test_a_function_without_vector_registers_comes_back_itself(self) -> None:
        (function,) = parse(module_of("mov.b32 %r1, 0;")).functions
        assert scalars(function) is function

    def test_components_keep_their_values_apart(self) -> None:
        snippet = DECLARED + "mov.b32 half.x, 3; mov.b32 half.y, 4; mad.lo.u32 %r9, half.x, 10, half.y;"
        assert values(snippet, "%r9", 1) == [34]


class TestControlWords:
    """What a scheduling warp sends to the CTAs of the cluster decides their loops."""

    SENT = (
        initialized()
        + DECLARED
        + """
    .shared .align 16 .b8 work[16];
    mapa.shared::cluster.u32 %r5, work, 0; mapa.shared::cluster.u32 %r6, bars, 0;
    mov.b32 whole.x, 7; mov.b32 whole.y, 8; mov.b32 whole.z, 9; mov.b32 whole.w, 1;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 16;
    @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r5], whole, [%r6];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bars], 0; @!%p2 bra W;
    """
    )

    def test_words_are_read_back(self) -> None:
        assert set(values(self.SENT + "ld.shared.b32 %r9, [work+8];", "%r9", 32)) == {9}
        assert set(values(self.SENT + "ld.shared.v2.b32 {%r8, %r9}, [work];", "%r9", 32)) == {8}

    def test_of_every_thread_that_sends(self) -> None:
        snippet = """
        .shared .align 16 .b8 words[128];
        mapa.shared::cluster.u32 %r6, bars, 0; shl.b32 %r4, %r1, 2; mov.u32 %r5, words; add.u32 %r5, %r5, %r4;
        mapa.shared::cluster.u32 %r5, %r5, 0; add.u32 %r7, %r1, 100;
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 128;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r5], %r7, [%r6];
        W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bars], 0; @!%p2 bra W;
        ld.shared.b32 %r9, [words+20];
        """
        assert set(values(initialized() + snippet, "%r9", 32)) == {105}
