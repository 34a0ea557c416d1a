"""PTX made slower at one place, to bring out faults that the usual timing hides."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

NANOSECONDS = 20_000
POINT = re.compile(
    r"^\s*(?:@!?%?\w+\s+)?(?P<opcode>(?:mbarrier\.|cp\.|cp\b|fence\.|bar(?:rier)?\.|wgmma\.|griddep|"
    r"tensormap\.|(?:ld|st)\.(?:shared|async))[\w.:]*)"
)

SLEEPERS = {
    "every thread": "",
    "threads of the first warp": "mov.u32 delay_word, %tid.x; set.lt.u32.u32 delay_word, delay_word, 32;",
    "threads of odd warps": "mov.u32 delay_word, %tid.x; and.b32 delay_word, delay_word, 32;",
    "CTAs of odd number": "mov.u32 delay_word, %ctaid.x; and.b32 delay_word, delay_word, 1;",
}
"""Who sleeps, and the code that makes a word non-zero for them."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A place before which some threads sleep: an opcode and its line in the PTX, from 1."""

    line: int
    opcode: str
    sleepers: str

    def __str__(self) -> str:
        return f"{self.sleepers} {NANOSECONDS // 1000} us before {self.opcode} (PTX line {self.line})"


def delays(ptx: str) -> Iterator[Delay]:
    """Every place of the PTX at which a delay may bring out a fault, with every choice of sleepers."""
    for number, line in enumerate(ptx.splitlines(), start=1):
        if match := POINT.match(line):
            for sleepers in SLEEPERS:
                yield Delay(number, match["opcode"], sleepers)


def slowed(ptx: str, delay: Delay) -> str:
    """The PTX with the delay in it."""
    lines = ptx.splitlines()
    lines.insert(delay.line - 1, sleep(SLEEPERS[delay.sleepers]))
    return "\n".join([*lines, ""])


def sleep(choose: str) -> str:
    """Code that sleeps where the chosen word is not zero, everywhere where nothing is chosen."""
    if not choose:
        return f"nanosleep.u32 {NANOSECONDS};"
    return (
        "{ .reg .pred delay_here; .reg .b32 delay_word; "
        f"{choose} setp.ne.u32 delay_here, delay_word, 0; @delay_here nanosleep.u32 {NANOSECONDS}; }}"
    )
