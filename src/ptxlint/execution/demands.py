"""What two accesses to common bytes need between them, and whether a clock says that it is there.

Sources: PTX ISA, *Memory Consistency Model* (Causality order), *Async Proxy*, *membar/fence*, *Memory Consistency Model
for 5th generation of TensorCore operations*.
"""

from __future__ import annotations

from ptxlint.execution.clock import PIPELINED, TENSOR_CORE, Clock
from ptxlint.execution.conflict import Access, Failure, Space
from ptxlint.isa import Proxy


def missing(first: Access, second: Access, clock: Clock) -> Failure | None:
    """What is missing between two accesses to common bytes, one of them a write; `clock` is the second's warp's."""
    if first.space is Space.GLOBAL:
        return _of_maps(first, second, clock)
    line, time = first.moment.line, first.moment.time
    is_over = clock.known.get(line, 0) >= time
    crosses = first.proxy is Proxy.GENERIC and second.proxy is Proxy.ASYNC
    if is_over and not crosses and first.space is Space.SHARED and clock.whole.get(line, 0) >= time:
        return None
    if (first.is_atomic and second.is_atomic) or _is_exempt(first, second):
        return None
    if not first.is_write and clock.issued.get(line, 0) >= time:
        return None
    if not is_over:
        return None if _is_pipelined(first, second, clock) else Failure.UNORDERED
    if clock.whole.get(line, 0) < time:
        return Failure.LANES
    if crosses and first.is_write and not second.is_write:
        if clock.fenced.get(line, 0) < time:
            return Failure.UNFENCED
        if clock.strict.get(line, 0) < time:
            return Failure.FENCED_LATE
    return _contested(first, second, clock)


def _of_maps(first: Access, second: Access, clock: Clock) -> Failure | None:
    """What is missing between a change of a tensor map and its use, in either order.

    A change needs a release, and after it an acquire of this map, on the way to the use; the acquire may be another
    thread's, with a barrier after it.
    """
    if first.proxy is second.proxy:
        return None
    if not clock.knows(first.moment) and not (first.otherwise and clock.knows(first.otherwise)):
        return Failure.UNORDERED
    if not first.is_write:
        return None
    line, time = first.moment.line, first.moment.time
    if clock.mapped.get(line, 0) < time:
        return Failure.UNRELEASED
    return Failure.UNACQUIRED if clock.acquired.get((line, second.interval[0]), 0) < time else None


def _is_pipelined(first: Access, second: Access, clock: Clock) -> bool:
    """Whether an MMA comes after an operation of another thread that may still be under way, in the same pipeline.

    Both have fences towards the synchronization between them. Source: PTX ISA, *Pipelined instructions, different
    thread*; version 9.4 keeps pipelines within a warp.
    """
    if first.space is not Space.TENSOR or first.moment.line[0] != TENSOR_CORE or second.what != "tcgen05.mma":
        return False
    line, time = first.moment.line, first.moment.time
    return clock.sent.get(line, 0) >= time and clock.taken.get(line, 0) >= time


def _contested(first: Access, second: Access, clock: Clock) -> Failure | None:
    """What more is asked for between two accesses of which the first is known to be over."""
    line, time = first.moment.line, first.moment.time
    if first.space is Space.TENSOR:
        is_own = line[0] != TENSOR_CORE and line[1:] == (second.agent.rank, second.warp)
        if is_own or line[0] not in PIPELINED or second.moment.line[0] not in PIPELINED:
            return None
        if clock.sent.get(line, 0) < time:
            return Failure.NOT_SENT
        return Failure.NOT_TAKEN if clock.taken.get(line, 0) < time else None
    is_back = first.proxy is Proxy.GENERIC and second.proxy is Proxy.ASYNC and not first.is_write and second.is_write
    return Failure.OVERWRITTEN if is_back and clock.fenced.get(line, 0) < time else None


def _is_exempt(first: Access, second: Access) -> bool:
    """Whether a conflict is none: warps that run one instruction for the same time, and so write the same value where
    they write to the same place; MMAs of one thread, and loads and stores of one warp, which are pipelined.

    Source: PTX ISA, *Pipelined tcgen05 Instructions*; that replicated writes agree is observed in Triton's output.
    """
    if first.point == second.point and first.turn == second.turn:
        return True
    if first.space is not Space.TENSOR or second.space is not Space.TENSOR:
        return False
    one, other = first.moment.line, second.moment.line
    are_mmas = (one[0] == TENSOR_CORE) + (other[0] == TENSOR_CORE)
    return one[0] in PIPELINED and other[0] in PIPELINED and one[1:] == other[1:] and are_mmas != 1
