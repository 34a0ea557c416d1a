"""What belongs to the synchronization slice, and what is skipped."""

from __future__ import annotations

from ptxlint.execution.trace import Kind

from .running import happened, initialized, kernel, run

BAR = ".shared .align 8 .b64 bar; .shared .align 16 .b8 tile[256];\n"
INIT = "mbarrier.init.shared.b64 [bar], {};\n"


def texts(snippet: str) -> set[str]:
    """The instructions in the slice, as written."""
    found = kernel(BAR + snippet)
    return {str(found.cfg.body[point]) for point in found.slice.points}


class TestData:
    """Data dependences."""

    def test_operands_of_synchronization_are_in(self) -> None:
        inside = texts("mov.u32 %r1, 3; add.u32 %r2, %r1, 1; mov.u32 %r3, 9;" + INIT.format("%r2"))
        assert {"mov.u32 %r1, 3;", "add.u32 %r2, %r1, 1;"} <= inside
        assert "mov.u32 %r3, 9;" not in inside

    def test_addresses_of_barriers_are_in(self) -> None:
        assert "add.u32 %r2, %r1, 8;" in texts(
            "mov.u32 %r1, bar; add.u32 %r2, %r1, 8; mbarrier.arrive.shared::cta.b64 _, [%r2];"
        )

    def test_global_sources_of_copies_are_out_and_sizes_are_in(self) -> None:
        inside = texts("""
        ld.param.u64 %rd1, [p]; add.u64 %rd2, %rd1, 64; mov.u32 %r2, 32;
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd2], %r2, [bar];
        """)
        assert "mov.u32 %r2, 32;" in inside
        assert "add.u64 %rd2, %rd1, 64;" not in inside

    def test_shared_sources_of_copies_are_in(self) -> None:
        inside = texts("""
        mov.u32 %r3, tile; add.u32 %r2, %r3, 64;
        cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile], [%r2], 32, [bar];
        """)
        assert "add.u32 %r2, %r3, 64;" in inside

    def test_a_token_pulls_in_the_arrive_that_gives_it_and_no_more(self) -> None:
        inside = texts("""
        mov.u64 %rd9, 5;
        mbarrier.arrive.shared::cta.b64 %rd1, [bar]; mbarrier.test_wait.shared::cta.b64 %p1, [bar], %rd1;
        """)
        assert "mov.u64 %rd9, 5;" not in inside

    def test_a_control_word_in_shared_memory(self) -> None:
        inside = texts(
            """
        mov.u32 %r1, 4; st.shared.b32 [tile], %r1; bar.sync 0; ld.shared.b32 %r2, [tile];
        """
            + INIT.format("%r2")
        )
        assert "st.shared.b32 [tile], %r1;" in inside
        assert "mov.u32 %r1, 4;" in inside

    def test_data_stored_by_each_thread_is_no_control_word(self) -> None:
        inside = texts(
            """
        mov.u32 %r1, %tid.x; shl.b32 %r3, %r1, 2; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;
        st.shared.b32 [%r4], %r1; bar.sync 0; ld.shared.b32 %r2, [tile];
        """
            + INIT.format("%r2")
        )
        assert "st.shared.b32 [%r4], %r1;" not in inside

    def test_memory_of_another_space_is_out(self) -> None:
        inside = texts(
            """
        .local .align 4 .b8 own[8]; st.local.b32 [own], 7; st.shared.b32 [tile], 4; ld.shared.b32 %r2, [tile];
        """
            + INIT.format("%r2")
        )
        assert "st.local.b32 [own], 7;" not in inside
        assert "st.shared.b32 [tile], 4;" in inside


class TestControl:
    """Control dependences."""

    LOOP = """
    mov.u32 %r5, 0; mov.f32 %f1, 0f00000000;
    L: add.f32 %f1, %f1, %f1; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 1000000; @%p2 bra L;
    """

    def test_a_loop_of_data_alone_is_skipped(self) -> None:
        snippet = initialized() + self.LOOP + "mbarrier.arrive.shared::cta.b64 _, [bars];"
        machine = run(snippet, 1)
        assert machine.steps < 50
        assert len(happened(machine, Kind.ARRIVE)) == 1

    def test_a_loop_that_synchronizes_is_run(self) -> None:
        loop = self.LOOP.replace("add.f32", "mbarrier.arrive.shared::cta.b64 _, [bars]; add.f32", 1)
        machine = run(initialized(100) + loop.replace("1000000", "7"), 1)
        assert len(happened(machine, Kind.ARRIVE)) == 7

    def test_a_branch_around_data_alone_is_skipped(self) -> None:
        inside = texts("""
        ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 5; @%p1 bra D; st.shared.b32 [tile], %r1; D: bar.sync 0;
        """)
        assert inside == {"bar.sync 0;"}

    def test_the_branch_that_decides_about_a_barrier_is_in(self) -> None:
        inside = texts("ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 5; @%p1 bra D; bar.sync 0; D: ret;")
        assert {"ld.param.u32 %r1, [n];", "setp.eq.u32 %p1, %r1, 5;", "@%p1 bra D;"} <= inside

    def test_the_guard_of_a_barrier_is_in(self) -> None:
        assert "setp.eq.u32 %p1, %r1, 5;" in texts("ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 5; @%p1 bar.sync 0;")

    def test_a_branch_decides_about_what_is_computed_in_it(self) -> None:
        inside = texts(
            """
        ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 5; mov.u32 %r2, 1; @%p1 bra D; mov.u32 %r2, 2; D:
        """
            + INIT.format("%r2")
        )
        assert {"mov.u32 %r2, 2;", "@%p1 bra D;"} <= inside

    def test_an_early_return_decides_about_what_follows(self) -> None:
        inside = texts("ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 5; @%p1 ret; bar.sync 0;")
        assert "@%p1 ret;" in inside


class TestAssertions:
    """Paths that can only end in trap."""

    CHECK = "ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 5; @%p1 bra OK; trap; OK: bar.sync 0;"

    def test_a_failed_assertion_is_no_way_on(self) -> None:
        assert texts(self.CHECK) == {"bar.sync 0;"}

    def test_nobody_traps(self) -> None:
        machine = run(self.CHECK, size=4)
        assert not machine.trapped
        assert len(happened(machine, Kind.SYNC)) == 1

    def test_a_way_through_several_blocks_to_a_trap(self) -> None:
        snippet = """
        ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 5; @%p1 bra OK;
        setp.eq.u32 %p2, %r1, 6; @%p2 bra OTHER; trap; OTHER: st.shared.b32 [tile], 0; trap;
        OK: bar.sync 0;
        """
        assert texts(snippet) == {"bar.sync 0;"}

    def test_a_guarded_trap(self) -> None:
        assert texts("ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 5; @%p1 trap; bar.sync 0;") == {"bar.sync 0;"}

    def test_a_timeout_loop_may_end_otherwise(self) -> None:
        """A bounded wait that traps at the end: the loop goes on, the trap does not happen."""
        snippet = (
            initialized()
            + """
        mov.u32 %r5, 0;
        L: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], 1; @%p5 bra DONE;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p6, %r5, 100; @%p6 bra L; trap;
        DONE: bar.sync 0;
        """
        )
        machine = run(snippet)
        assert not machine.trapped
        assert not machine.blocked


class TestVarying:
    """Registers that threads of one agent may hold different values of."""

    def test_what_depends_on_the_thread(self) -> None:
        found = kernel(
            BAR
            + """
        mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; mov.u32 %r3, %ctaid.x; add.u32 %r4, %r2, %r3;
        mbarrier.init.shared.b64 [bar], %r4;
        """
        )
        assert {"%r1", "%r2", "%r4"} <= found.slice.varying
        assert "%r3" not in found.slice.varying

    def test_what_is_computed_where_threads_part(self) -> None:
        found = kernel(
            BAR
            + """
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; mov.u32 %r2, 1; @%p1 bra D; mov.u32 %r2, 2; D:
        mbarrier.init.shared.b64 [bar], %r2;
        """
        )
        assert "%r2" in found.slice.varying
