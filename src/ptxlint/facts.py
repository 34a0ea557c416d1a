"""Everything that is known of one function: computed once, when a rule first asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, cast

from ptxlint import cfg, isa
from ptxlint.analyses.congruence import Congruences
from ptxlint.analyses.groups import handles_groups
from ptxlint.analyses.hazards import Cause, Consequence, Hazard, Hazards
from ptxlint.analyses.naming import object_name
from ptxlint.analyses.threads import Threads
from ptxlint.analyses.value import Constant
from ptxlint.analyses.values import Values, location
from ptxlint.cfg import Cfg
from ptxlint.dataflow import Analysis, Solution, solve
from ptxlint.execution.clash import Clash, contested
from ptxlint.execution.clash import clashes as clashes_of
from ptxlint.execution.conflict_kinds import CONTESTED, Mistake
from ptxlint.execution.engine import Execution, execute
from ptxlint.execution.reuse import Return
from ptxlint.execution.rows import reads_rows
from ptxlint.execution.story import Story, tell
from ptxlint.execution.trace import Fault
from ptxlint.ir import Function, Instruction, Module, Variable
from ptxlint.isa.row import Flow, Tracking
from ptxlint.launch import Launch
from ptxlint.source import Span

__all__ = ["Cause", "Clash", "Consequence", "Facts", "Fault", "Hazard", "Mistake", "Return", "Story"]

State = TypeVar("State")


UNKNOWN_ROWS = "launch: threads go by their row (%tid.y, %tid.z), and nobody states the extents of the block"
"""Why a kernel is not analysed whose accesses conflict under the extents that were tried."""


class Facts:
    """A function, its module and its launch, with what the analyses say about it.

    `not_analysed` says why an engine gave up on this function; None when none did.
    """

    def __init__(self, module: Module, function: Function, launch: Launch) -> None:
        self.module = module
        self.function = function
        self.launch = launch
        self.not_analysed: str | None = None
        self._congruences: dict[int, Congruences] = {}
        self._solutions: dict[type[Any], Solution[Any]] = {}

    @cached_property
    def cfg(self) -> Cfg:
        """The control-flow graph."""
        endless = (function.name for function in self.module.functions if function.directive("noreturn"))
        return cfg.build(self.function, frozenset(endless))

    @cached_property
    def variables(self) -> Mapping[str, Variable]:
        """The variables and parameters that the function can name; its own hide those of the module."""
        own = (*self.function.parameters, *self.function.results, *self.function.variables)
        return {variable.name: variable for variable in (*self.module.variables, *own)}

    @cached_property
    def values(self) -> Values:
        """What the integer and predicate registers hold."""
        return Values(self.cfg)

    @cached_property
    def execution(self) -> Execution:
        """What running the kernel's synchronization slice showed."""
        found = execute(self.module, self.function, self.launch)
        self.not_analysed = self.not_analysed or found.not_analysed
        return found

    @cached_property
    def _stories(self) -> Sequence[Story]:
        return tell(self.execution)

    def stories(self, *faults: Fault) -> Iterator[Story]:
        """What the run showed of these faults, one story for each place."""
        return (story for story in self._stories if story.fault in faults)

    @cached_property
    def _clashes(self) -> Sequence[Clash]:
        return clashes_of(self.execution, is_guessed=self._is_block_guessed)

    @cached_property
    def _contested_clashes(self) -> Sequence[Clash]:
        return contested(self.execution, is_guessed=self._is_block_guessed)

    @property
    def _is_block_guessed(self) -> bool:
        return self.threads.is_guessed or self._goes_by_unstated_rows

    @cached_property
    def _goes_by_unstated_rows(self) -> bool:
        """Whether threads go by their row, or layer, in a block of which nobody states the extents."""
        return self.launch.block is None and reads_rows(self.cfg)

    @property
    def has_unknown_rows(self) -> bool:
        """Whether under each of the likely extents of a block that goes by rows other accesses conflict.

        Addresses and copies may then mean other bytes than in the run: nothing is told of them, and the kernel is not
        analysed. Extents without conflicts are taken for the true ones.
        """
        return self._goes_by_unstated_rows and self.execution.has_unknown_rows

    def clashes(self, *mistakes: Mistake) -> Iterator[Clash]:
        """What the run showed of accesses that lack order, one clash for each mistake; see `has_unknown_rows`."""
        if self.has_unknown_rows:
            if self._clashes:
                self.not_analysed = self.not_analysed or UNKNOWN_ROWS
            return iter(())
        doubtful = () if CONTESTED.isdisjoint(mistakes) else self._contested_clashes
        return (clash for clash in (*self._clashes, *doubtful) if clash.mistake in mistakes)

    def misalignment(self, index: int, role: str, alignment: int, trusted_pointers: bool = False) -> int | None:
        """By how many bytes an operand certainly misses a multiple of `alignment`; None when it may be one.

        With `trusted_pointers` 64-bit kernel parameters are taken to be multiples of `alignment`.
        """
        value = self.values.role(index, role)
        if value is None:
            return None
        key = alignment if trusted_pointers else 1
        if key not in self._congruences:
            self._congruences[key] = Congruences(self.values, self.variables, key)
        return self._congruences[key].of(value).off(alignment)

    def place(self, index: int, role: str) -> tuple[str, int] | None:
        """The symbol and the offset in bytes that an operand addresses; None when that is not constant."""
        return location(self.values.role(index, role))

    def number(self, index: int, role: str) -> int | None:
        """The integer that an operand always is; None when it is none."""
        value = self.values.role(index, role)
        return value.value if isinstance(value, Constant) else None

    @cached_property
    def threads(self) -> Threads:
        """Which threads of a block satisfy a predicate; in rows as the run assumed them where nobody states them."""
        rows = self.execution.block if self._goes_by_unstated_rows else None
        return Threads(self.function, self.launch, rows)

    @cached_property
    def hazards(self) -> Sequence[Hazard]:
        """What goes wrong with copies that are tracked in groups; nothing where the rows of the block are unknown."""
        return () if self.has_unknown_rows else Hazards(self).found()

    @cached_property
    def functions_with_groups(self) -> frozenset[str]:
        """The functions of the module that issue, commit or wait for copies in groups, themselves or by a call."""
        bodies = {function.name: function.body for function in self.module.functions if function.body is not None}
        found = {name for name, body in bodies.items() if any(map(handles_groups, body))}
        callers = {name: {str(o) for i in body if _is_call(i) for o in i.operands} for name, body in bodies.items()}
        while grown := {name for name, callees in callers.items() if callees & found} - found:
            found |= grown
        return frozenset(found)

    def object_name(self, index: int, role: str) -> str:
        """What a message calls the object that an operand of an instruction addresses."""
        return object_name(self, index, role)

    def is_load(self, copy: int) -> bool:
        """Whether a group-tracked copy brings bytes into shared memory (cp.async) or takes them out (bulk)."""
        row = isa.row(self.cfg.body[copy])
        return row is not None and row.opens is Tracking.CP_ASYNC

    def span(self, index: int) -> Span:
        """Where the instruction with that index stands."""
        return self.cfg.body[index].span

    def text(self, index: int) -> str:
        """The instruction with that index, without its guard."""
        return str(replace(self.cfg.body[index], guard=None)).rstrip(";")

    def solve(self, analysis: type[Analysis[State]]) -> Solution[State]:
        """The states of an analysis at every point; the class is instantiated with these facts."""
        if analysis not in self._solutions:
            self._solutions[analysis] = solve(self.cfg, cast(Any, analysis)(self))
        return cast(Solution[State], self._solutions[analysis])


def _is_call(instruction: Instruction) -> bool:
    row = isa.row(instruction)
    return row is not None and row.flow is Flow.CALL
