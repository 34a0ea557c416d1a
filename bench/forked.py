"""Work on many items, each in a process of its own: a time limit for each, and a crash costs one item."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an item has no result: the last line of the traceback, or that its time was up."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Running(Generic[Item]):
    item: Item
    process: ForkProcess
    deadline: float


def each(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, seconds: float
) -> Iterator[tuple[Item, Result | Failure]]:
    """Items with what `work` made of them, as they end; at most `jobs` at a time, each for at most `seconds`."""
    waiting = iter(items)
    running: dict[Connection, _Running[Item]] = {}
    while True:
        while len(running) < jobs and (item := next(waiting, None)) is not None:
            ours, theirs = _FORK.Pipe(duplex=False)
            process = _FORK.Process(target=_child, args=(work, item, theirs))
            process.start()
            theirs.close()
            running[ours] = _Running(item, process, time.monotonic() + seconds)
        if not running:
            return
        ready = wait(list(running), timeout=max(0.0, min(one.deadline for one in running.values()) - time.monotonic()))
        late = [pipe for pipe, one in running.items() if pipe not in ready and time.monotonic() > one.deadline]
        for pipe in [*ready, *late]:
            assert isinstance(pipe, Connection)
            one = running.pop(pipe)
            yield one.item, _ended(one, pipe, pipe in late, seconds)


def _child(work: Callable[[Item], Result], item: Item, pipe: Connection) -> None:
    try:
        pipe.send(work(item))
    except Exception:  # noqa: BLE001 - whatever went wrong is this item's result
        pipe.send(Failure(traceback.format_exc().strip().splitlines()[-1]))
    pipe.close()
    os._exit(0)


def _ended(one: _Running[Item], pipe: Connection, is_late: bool, seconds: float) -> Result | Failure:
    if is_late:
        one.process.kill()
    try:
        result = Failure(f"no answer within {seconds:g} s") if is_late else pipe.recv()
    except EOFError:
        result = Failure("the process died")
    pipe.close()
    one.process.join()
    return result
