"""The mutants of a module: every operator at every instruction, or the same sample of them each time."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from bench.mutants.operators import OPERATORS
from bench.mutants.statement import Statement, read_statement
from ptxlint.ir import Function, Instruction, Register
from ptxlint.parse import parse

_PARITY_STEPS = frozenset({"xor", "and", "not", "mov", "selp", "shr", "shl", "cvt", "add", "sub", "or"})


_REACH = 4000
"""Characters in which the instructions before a mutated one are looked for."""

OWN = "fixtures"
"""The origin of our own modules; every other is a project of the corpus."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module's text with one statement replaced; the lines keep their numbers.

    `begin` and `end` are where the statement stood in `source`, the module's text.
    """

    module: str
    operator: str
    line: int
    opcode: str
    begin: int
    end: int
    replacement: str
    source: str = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """The whole module, mutated."""
        return f"{self.source[: self.begin]}{self.replacement}{self.source[self.end :]}"

    @property
    def key(self) -> str:
        """What tells it from every other mutant of any module."""
        return _digest(f"{_source_digest(self.source)} {self.begin} {self.end} {self.replacement}").hex()

    def before(self, count: int) -> list[str]:
        """The instructions of the module before the mutated one, as many of them, without comments and labels."""
        return _instructions(self.source[max(0, self.begin - _REACH) : self.begin].split("\n")[:-1])[-count:]

    def behind(self, count: int) -> list[str]:
        """The instructions of the module behind the mutated one, likewise."""
        return _instructions(self.source[self.end : self.end + _REACH].split("\n"))[:count]

    @property
    def origin(self) -> str:
        """The project that the module was built from, or OWN."""
        return self.module.partition("/")[0]


def _instructions(lines: Sequence[str]) -> list[str]:
    stripped = (line.strip() for line in lines)
    return [line for line in stripped if line and line[0] not in "./{}$" and not line.endswith(":")]


def mutants(module: str, text: str) -> Iterator[Mutant]:
    """Every mutant of the module, by line and operator."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for function in parse(text).functions:
        parity = _parity_registers(function)
        for instruction in function.body or ():
            begin = starts[instruction.span.line - 1] + instruction.span.column - 1
            end = text.index(";", begin)
            statement = read_statement(text[begin:end])
            if statement is None:
                continue
            for operator, mutated in _mutations(statement, _writes(instruction, parity)):
                lines = "\n" * text.count("\n", begin, end)
                place = (instruction.span.line, statement.opcode, begin, end + 1)
                yield Mutant(module, operator, *place, f"{mutated}{lines}", text)


def sample(found: Sequence[Mutant], limit: int) -> list[Mutant]:
    """So many of the mutants of one module: operators in turn, in an order that differs from module to module."""
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in sorted(found, key=lambda mutant: mutant.key):
        by_operator.setdefault(mutant.operator, []).append(mutant)
    chosen: list[Mutant] = []
    while by_operator and len(chosen) < limit:
        for operator in sorted(by_operator, key=lambda operator: _digest(found[0].module + operator)):
            chosen.append(by_operator[operator].pop())
            if not by_operator[operator]:
                del by_operator[operator]
    return sorted(chosen[:limit], key=lambda mutant: (mutant.line, mutant.operator))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@lru_cache(maxsize=8)
def _source_digest(source: str) -> str:
    return _digest(source).hex()


def _mutations(statement: Statement, is_parity: bool) -> Iterator[tuple[str, str]]:
    for operator in OPERATORS:
        if operator.needs_parity and not is_parity:
            continue
        mutated = operator.mutate(statement)
        if mutated is not None:
            yield operator.name, mutated


def _writes(instruction: Instruction, registers: frozenset[str]) -> bool:
    return _destination(instruction) in registers


def _destination(instruction: Instruction) -> str | None:
    first = instruction.operands[0] if instruction.operands else None
    return first.name if isinstance(first, Register) else None


def _parity_registers(function: Function) -> frozenset[str]:
    """The registers from which the parities of waits are computed, by moves and bit operations alone."""
    body = function.body or ()
    waits = [each for each in body if each.opcode == "mbarrier" and "parity" in each.modifiers]
    known = {operand.name for wait in waits for operand in wait.operands[2:3] if isinstance(operand, Register)}
    steps = [each for each in body if each.opcode in _PARITY_STEPS]
    while True:
        grown = {
            operand.name
            for step in steps
            if _destination(step) in known
            for operand in step.operands[1:]
            if isinstance(operand, Register) and operand.type != "pred"
        }
        if grown <= known:
            return frozenset(known)
        known |= grown
