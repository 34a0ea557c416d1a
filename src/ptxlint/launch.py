"""Launch facts: what the PTX or the user says about how a kernel is launched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ptxlint.classes import dataclass
from ptxlint.ir import Function

Dimensions = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch as far as it is known: None where nobody said. Extents in threads, CTAs; memory in bytes.

    `parameters` maps a kernel parameter, by name or by index, to its integer value.
    """

    block: Dimensions | None = None
    cluster: Dimensions | None = None
    grid: Dimensions | None = None
    dynamic_shared: int | None = None
    parameters: Mapping[str | int, int] = field(default_factory=dict)

    def completed(self, other: Launch) -> Launch:
        """This launch, and where it says nothing the other one."""
        return Launch(
            self.block or other.block,
            self.cluster or other.cluster,
            self.grid or other.grid,
            other.dynamic_shared if self.dynamic_shared is None else self.dynamic_shared,
            {**other.parameters, **self.parameters},
        )


def stated(function: Function, user: Launch) -> Launch:
    """The user's launch, completed by `.reqntid` and `.reqnctapercluster`. The user's word comes first."""
    block = user.block or _extents(function, "reqntid")
    cluster = user.cluster or _extents(function, "reqnctapercluster")
    return Launch(block, cluster, user.grid, user.dynamic_shared, user.parameters)


def _extents(function: Function, directive: str) -> Dimensions | None:
    found = function.directive(directive)
    if found is None:
        return None
    values = (*found.integers(), 1, 1)[:3]
    return (values[0], values[1], values[2])
