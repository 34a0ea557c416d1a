"""Ways of writing a protocol that are right and look unlike one another: the engine has nothing to say of them."""

from __future__ import annotations

import pytest

from .running import executed, initialized, told

TRIPS = "ld.param.u32 %r4, [trips]; mov.u32 %r5, 0;\n"
NEXT = "add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, %r4; @%p4 bra NEXT;\n"
TILE = ".shared .align 128 .b8 tile[4096]; ld.param.u64 %rd1, [source];\n"


def is_silent(snippet: str, threads: int = 64, cluster: int | None = 1) -> bool:
    execution = executed(snippet, threads, cluster)
    assert told(execution) == []
    assert [(conflict.failure, str(execution.body[conflict.second.point])) for conflict in execution.conflicts] == []
    assert execution.not_analysed is None
    return not execution.uncovered


class TestBarrierOfAllThreads:
    """cuda::barrier: every thread arrives and waits."""

    def test_by_tokens(self) -> None:
        assert is_silent(
            initialized(64)
            + TRIPS
            + """
        NEXT: mbarrier.arrive.shared::cta.b64 %rd9, [bars];
        W: mbarrier.try_wait.shared::cta.b64 %p5, [bars], %rd9; @!%p5 bra W;
        """
            + NEXT
        )

    def test_by_parity(self) -> None:
        assert is_silent(
            initialized(64)
            + TRIPS
            + """
        mov.u32 %r6, 0;
        NEXT: mbarrier.arrive.shared::cta.b64 _, [bars];
        W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], %r6; @!%p5 bra W; xor.b32 %r6, %r6, 1;
        """
            + NEXT
        )

    def test_who_leaves_drops_out(self) -> None:
        assert is_silent(
            initialized(64)
            + """
        setp.lt.u32 %p2, %r1, 32; @%p2 bra LEAVE;
        mov.u32 %r4, 6; mov.u32 %r5, 0; mov.u32 %r6, 0;
        NEXT: mbarrier.arrive.shared::cta.b64 _, [bars];
        W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bars], %r6; @!%p5 bra W; xor.b32 %r6, %r6, 1;
        """
            + NEXT
            + "bra DONE; LEAVE: mbarrier.arrive_drop.shared::cta.b64 _, [bars]; DONE:"
        )


RING = (
    initialized()
    + TILE
    + TRIPS
    + """
.shared .align 8 .b8 empties[16];
@%p1 mbarrier.init.shared.b64 [empties], 32; @%p1 mbarrier.init.shared.b64 [empties+8], 32;
bar.sync 0;
setp.ge.u32 %p2, %r1, 32; @%p2 bra CONSUMER;
PRODUCE:
    {stage}
    shl.b32 %r10, %r7, 3; mov.u32 %r11, bars; add.u32 %r11, %r11, %r10; mov.u32 %r12, empties; add.u32 %r12, %r12, %r10;
    shl.b32 %r13, %r7, 11; mov.u32 %r14, tile; add.u32 %r14, %r14, %r13;
    {produce}
    add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r4; @%p3 bra PRODUCE;
    bra DONE;
CONSUMER:
NEXT:
    {stage}
    shl.b32 %r10, %r7, 3; mov.u32 %r11, bars; add.u32 %r11, %r11, %r10; mov.u32 %r12, empties; add.u32 %r12, %r12, %r10;
    shl.b32 %r13, %r7, 11; mov.u32 %r14, tile; add.u32 %r14, %r14, %r13;
    F: mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r11], %r8; @!%p6 bra F;
    ld.shared.b32 %r15, [%r14];
    mbarrier.arrive.shared::cta.b64 _, [%r12];
    add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, %r4; @%p4 bra NEXT;
DONE: bar.sync 0;
"""
)
"""Two slots; %r7 is the slot and %r8 the parity of trip %r5."""

DIVISION = "rem.u32 %r7, %r5, 2; div.u32 %r8, %r5, 2; and.b32 %r8, %r8, 1;"
BITS = "and.b32 %r7, %r5, 1; shr.u32 %r8, %r5, 1; and.b32 %r8, %r8, 1;"
REGISTER_OF_BITS = (
    "and.b32 %r7, %r5, 1; shr.u32 %r8, %r20, %r7; and.b32 %r8, %r8, 1; mov.u32 %r21, 1; shl.b32 %r21, %r21, %r7;"
    "xor.b32 %r20, %r20, %r21;"
)

WAIT_EMPTY = "xor.b32 %r9, %r8, 1; E: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r12], %r9; @!%p5 bra E;\n"
EXPECT = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], 64;\n"
COPY = "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r14], [%rd1], 64, [%r11];\n"
HALVES = """
@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r14], [%rd1], 32, [%r11];
@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r14+32], [%rd1], 32, [%r11];
"""
GUARDED = "setp.lt.u32 %p7, %r5, 2; @%p7 bra FIRST;\n" + WAIT_EMPTY + "FIRST:\n"
PEEK = "xor.b32 %r9, %r8, 1; mbarrier.test_wait.parity.shared::cta.b64 %p5, [%r12], %r9; @%p5 bra READY;\n"


class TestRings:
    """Producers and consumers over two slots."""

    @pytest.mark.parametrize("stage", [DIVISION, BITS, REGISTER_OF_BITS], ids=["division", "bits", "register of bits"])
    def test_encodings_of_slot_and_parity(self, stage: str) -> None:
        assert is_silent(RING.format(stage=stage, produce=WAIT_EMPTY + EXPECT + COPY))

    @pytest.mark.parametrize(
        "produce",
        [
            WAIT_EMPTY + EXPECT + HALVES,
            WAIT_EMPTY + COPY + EXPECT,
            WAIT_EMPTY + HALVES + EXPECT,
            GUARDED + EXPECT + COPY,
            PEEK + WAIT_EMPTY + "READY:" + EXPECT + COPY,
        ],
        ids=["two copies", "expectation after the copy", "after two copies", "guarded first trips", "a peek first"],
    )
    def test_ways_to_produce(self, produce: str) -> None:
        assert is_silent(RING.format(stage=DIVISION, produce=produce))


class TestPipelines:
    """cp.async with groups."""

    LOADS = "cp.async.ca.shared.global [%r14], [%rd1], 4; cp.async.commit_group;\n"
    SLOT = "rem.u32 %r7, {trip}, 4; shl.b32 %r13, %r7, 10; shl.b32 %r16, %r1, 2; mov.u32 %r14, tile;"
    SLOT += "add.u32 %r14, %r14, %r13; add.u32 %r14, %r14, %r16;\n"

    def test_a_pipeline_of_four_slots(self) -> None:
        ahead = "mov.u32 %r6, {};" + self.SLOT.format(trip="%r6") + self.LOADS
        load = "add.u32 %r6, %r5, 3;" + self.SLOT.format(trip="%r6") + self.LOADS
        read = "rem.u32 %r7, %r5, 4; shl.b32 %r13, %r7, 10; mov.u32 %r14, tile; add.u32 %r14, %r14, %r13;"
        read += "ld.shared.b32 %r15, [%r14+4];"
        prologue = "".join(ahead.format(i) for i in range(3))
        body = "NEXT: cp.async.wait_group 2; bar.sync 0;" + read + load + NEXT + "cp.async.wait_all; bar.sync 0;"
        assert is_silent(initialized() + TILE + TRIPS + prologue + body)


class TestRoles:
    """Warp specialization."""

    def test_a_state_word_and_a_table_of_roles(self) -> None:
        """The default warp leaves the number of a role in shared memory; the others fetch it between two barriers."""
        assert is_silent("""
        .shared .align 4 .b8 state[4]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra MAIN;
        NEXT: barrier.sync 1; ld.shared.b8 %r2, [state]; barrier.sync 1;
        ROLES: .branchtargets WORK, LEAVE; brx.idx %r2, ROLES;
        WORK: bar.sync 2, 32; bra NEXT;
        LEAVE: bra DONE;
        MAIN: mov.u32 %r3, 0; st.shared.b8 [state], %r3; barrier.sync 1; barrier.sync 1;
        mov.u32 %r3, 1; bar.warp.sync -1; st.shared.b8 [state], %r3; barrier.sync 1; barrier.sync 1;
        DONE:
        """)

    def test_two_groups_in_turn(self) -> None:
        """Flash attention's order of warp groups: each hands the turn on to the other."""
        assert is_silent(
            """
        mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r4, 5; mov.u32 %r5, 0;
        add.u32 %r6, %r2, 1; xor.b32 %r7, %r2, 1; add.u32 %r7, %r7, 1;
        setp.eq.u32 %p2, %r2, 1; @!%p2 bra NEXT; bar.arrive %r7, 64;
        NEXT: bar.sync %r6, 64; bar.arrive %r7, 64;
        """
            + NEXT
            + "setp.eq.u32 %p2, %r2, 0; @!%p2 bra DONE; bar.sync %r6, 64; DONE:"
        )


class TestClusters:
    """Several CTAs."""

    def test_every_cta_releases_the_slot_of_the_leader(self) -> None:
        assert is_silent(
            initialized(1, 2)
            + TILE
            + TRIPS
            + """
        mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p2, %r2, 0; and.pred %p3, %p1, %p2; mov.u16 %rs1, 3;
        mov.u32 %r6, 0; mapa.shared::cluster.u32 %r20, bars, 0;
        barrier.cluster.arrive; barrier.cluster.wait;
        NEXT: @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;
        @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r20+8];
        @!%p3 bra WAIT;
        E: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [bars+8], %r6; @!%p5 bra E;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [tile], [%rd1], 64, [bars], %rs1;
        WAIT: W: mbarrier.try_wait.parity.shared::cta.b64 %p6, [bars], %r6; @!%p6 bra W;
        ld.shared.b32 %r15, [tile]; bar.sync 0; xor.b32 %r6, %r6, 1;
        """
            + NEXT
            + "barrier.cluster.arrive; barrier.cluster.wait;",
            32,
            2,
        )


class TestBarrierOfTheGrid:
    """One thread asks a word of global memory until the other CTAs have counted it up; the others learn of it."""

    @pytest.mark.parametrize("enough", ["setp.ge.u32 %p5, %r7, 132", "setp.eq.u32 %p5, %r7, 3"])
    def test_ends(self, enough: str) -> None:
        assert is_silent(
            f"""
        .shared .align 4 .b8 seen[4]; ld.param.u64 %rd1, [source]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
        @%p1 red.release.gpu.global.add.u32 [%rd1], 1;
        AGAIN: bar.sync 0;
        @%p1 ld.acquire.gpu.global.u32 %r7, [%rd1];
        @%p1 st.shared.u32 [seen], %r7;
        bar.sync 0;
        ld.shared.u32 %r7, [seen];
        {enough};
        @!%p5 bra AGAIN;
        """
        )


class TestAlignedBarriers:
    """Lanes that part may come to one aligned barrier by two ways: what counts is that all of the warp run it."""

    def test_lanes_come_by_two_ways(self) -> None:
        assert is_silent(
            """
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.lt.u32 %p1, %r2, 16; setp.gt.u32 %p2, %r1, 100;
        @%p1 bra LOW;
        @%p2 bra OUT;
        bra MEET;
        LOW: add.u32 %r3, %r1, 1;
        MEET: bar.sync 0;
        OUT:
        """
        )
