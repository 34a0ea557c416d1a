"""Named barriers whose uses gather other warps in other schedules."""

from __future__ import annotations

from ptxlint.execution.trace import Fault

from .running import executed, told

WARPS = "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;\n"


def faults(snippet: str, threads: int) -> set[Fault]:
    return {fault for fault, _ in told(executed(WARPS + snippet, threads, 1))}


PAIRS = """
setp.lt.u32 %p1, %r2, 2; @%p1 bra FIRST;
bar.sync {second}, 64; bra DONE;
FIRST: bar.sync 1, 64;
DONE:
"""


class TestDisputes:
    """One number for two groups of warps."""

    def test_two_pairs_of_warps_with_one_number(self) -> None:
        assert faults(PAIRS.format(second=1), 128) == {Fault.SHARED_BARRIER}

    def test_two_pairs_with_a_number_each(self) -> None:
        assert faults(PAIRS.format(second=2), 128) == set()

    def test_a_count_that_leaves_out_who_arrives(self) -> None:
        """Two warps arrive and one waits, but the count is that of two: whoever comes first completes it."""
        snippet = "setp.lt.u32 %p1, %r2, 2; @%p1 bar.arrive 1, 64; @!%p1 bar.sync 1, 64; bar.sync 2, 96;"
        assert faults(snippet.replace("bar.sync 2, 96;", ""), 96) & {Fault.BARRIER_COUNT, Fault.STUCK_BARRIER}

    def test_one_after_the_other_is_no_dispute(self) -> None:
        snippet = "setp.lt.u32 %p1, %r2, 2; @%p1 bar.sync 1, 64; bar.sync 0; @!%p1 bar.sync 1, 64;"
        assert faults(snippet, 128) == set()
