"""Everything that is known of one function: computed once, when a rule first asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

from ptxlint import cfg
from ptxlint.analyses.values import Values
from ptxlint.cfg import Cfg
from ptxlint.dataflow import Analysis, Solution, solve
from ptxlint.ir import Function, Module, Variable
from ptxlint.launch import Launch

State = TypeVar("State")


class Facts:
    """A function, its module and its launch, with what the analyses say about it.

    `not_analysed` says why an engine gave up on this function; None when none did.
    """

    def __init__(self, module: Module, function: Function, launch: Launch) -> None:
        self.module = module
        self.function = function
        self.launch = launch
        self.not_analysed: str | None = None
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

    def solve(self, analysis: type[Analysis[State]]) -> Solution[State]:
        """The states of an analysis at every point; the class is instantiated with these facts."""
        if analysis not in self._solutions:
            self._solutions[analysis] = solve(self.cfg, cast(Any, analysis)(self))
        return cast(Solution[State], self._solutions[analysis])
