"""Runs one variant on the GPU, in a process of its own: `python -m ptxlint.validate.trial FIXTURE VARIANT`.

Prints the outcome as one line of JSON. A process that met a hang or a trap is of no further use and ends.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ptxlint.validate import driver, poison
from ptxlint.validate.delay import delays, slowed
from ptxlint.validate.fixture import Fixture, Variant, load_fixture
from ptxlint.validate.problem import Problem, problem_of

SEED = 20251


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of some launches: `right`, `wrong`, `trap` or `hang`, how many gave what, and the error's name."""

    kind: str
    right: int = 0
    wrong: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Bench:
    """A problem set up on the device, ready to be launched again and again."""

    fixture: Fixture
    problem: Problem
    addresses: dict[str, int]
    arguments: driver.Arguments
    before: Callable[[], None]
    seconds: float

    def outcome(self, ptx: str, launches: int) -> Outcome:
        """What becomes of so many launches of the PTX, up to the first that hangs or traps."""
        right = wrong = 0
        try:
            functions = driver.load(ptx, self.fixture.sequence, self.fixture.launch.dynamic_smem)
            for _ in range(launches):
                is_right = self.run(functions)
                right += is_right
                wrong += not is_right
        except driver.HangError:
            return Outcome("hang", right, wrong)
        except driver.DeviceError as error:
            return Outcome("trap", right, wrong, str(error))
        return Outcome("wrong" if wrong else "right", right, wrong)

    def run(self, functions: tuple[object, ...]) -> bool:
        """Whether one launch gives the expected results."""
        for name, buffer in self.problem.buffers.items():
            if buffer.parameter.role != "in":
                driver.upload(self.addresses[name], buffer.initial)
        self.before()
        driver.start(functions, self.fixture.launch, self.arguments)
        driver.wait(self.seconds)
        return all(
            (driver.download(self.addresses[name], buffer.expected) == buffer.expected).all()
            for name, buffer in self.problem.buffers.items()
            if buffer.expected is not None
        )


def set_up(fixture: Fixture, variant: Variant, before: Callable[[], None], seconds: float) -> Bench:
    """Copies the inputs to the device. `before` is called ahead of every launch."""
    problem = problem_of(fixture, variant, SEED)
    addresses = {name: driver.allocate(buffer.initial) for name, buffer in problem.buffers.items()}
    for name, buffer in problem.buffers.items():
        driver.upload(addresses[name], buffer.initial)
    arguments = driver.arguments_of(fixture, problem, addresses)
    return Bench(fixture, problem, addresses, arguments, before, seconds)


def poisoner(device: driver.Device) -> Callable[[], None]:
    """Starts the kernel that overwrites all shared memory."""
    launch = poison.launch_on(device.multiprocessors)
    functions = driver.load(poison.PTX, ["poison"], launch.dynamic_smem)
    none = driver.Arguments(np.empty(0, np.uint64), ())
    return lambda: driver.start(functions, launch, none)


def nothing() -> None:
    """Leaves shared memory as it is."""


def slowed_outcome(bench: Bench, ptx: str, launches: int, seconds: float) -> dict[str, object]:
    """The first delay that makes a launch fail, or how many were tried within the time."""
    deadline = time.monotonic() + seconds
    tried = 0
    for delay in delays(ptx):
        outcome = bench.outcome(slowed(ptx, delay), launches)
        tried += 1
        if outcome.kind != "right":
            return {"tried": tried, "where": str(delay), "outcome": asdict(outcome)}
        if time.monotonic() > deadline:
            break
    return {"tried": tried}


def trial(fixture: Fixture, variant: Variant, options: argparse.Namespace) -> dict[str, object]:
    """The outcome of the plain launches and, where all were right, of the delayed ones."""
    device = driver.open_device()
    before = nothing if options.no_poison else poisoner(device)
    bench = set_up(fixture, variant, before, options.seconds)
    ptx = variant.ptx.read_text()
    plain = bench.outcome(ptx, options.launches)
    result: dict[str, object] = {"device": asdict(device), "outcome": asdict(plain)}
    if plain.kind == "right" and options.delayed:
        print(json.dumps(result), flush=True)
        result["delayed"] = slowed_outcome(bench, ptx, options.delayed, options.delayed_seconds)
    return result


def with_grid(fixture: Fixture, largest: int) -> Fixture:
    """The fixture with a grid of no more CTAs; what the others would have computed stays undone."""
    x, y, z = fixture.launch.grid
    return replace(fixture, launch=replace(fixture.launch, grid=(min(x, largest), y, z)))


def main() -> None:
    """Runs the variant that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fixture", type=Path)
    parser.add_argument("variant")
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=2, help="after which a launch counts as hung")
    parser.add_argument("--delayed", type=int, default=0, help="launches for each delay, 0 for none")
    parser.add_argument("--delayed-seconds", type=float, default=30)
    parser.add_argument("--no-poison", action="store_true", help="do not overwrite shared memory before each launch")
    parser.add_argument(
        "--largest-grid", type=int, default=1 << 20, help="launch no more CTAs: for tools that slow them"
    )
    options = parser.parse_args()
    fixture = with_grid(load_fixture(options.fixture), options.largest_grid)
    variant = next(variant for variant in fixture.variants if variant.name == options.variant)
    print(json.dumps(trial(fixture, variant, options)), flush=True)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
