"""`dataclass`, as in the standard library and made in a third of its time.

The standard library writes up to ten methods of each class as text and compiles them: for our 120 classes that took a
quarter of a run of `ptxlint check` over one kernel. Here only `__init__` is compiled, and classes share the rest.
Fields are given by position or name; there are no keyword-only ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter, ge, gt, le, lt
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass"]

Made = TypeVar("Made", bound=type)

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False
    ) -> Callable[[Made], Made]:
        """The decorator that makes a class of fields."""

        def make(cls: Made) -> Made:
            made: Any = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
            made.__init__ = _initializer(made, is_frozen=frozen)
            if "__repr__" not in made.__dict__:
                made.__repr__ = _shown
            if eq:
                _compare(made, is_frozen=frozen, is_ordered=order)
            if frozen:
                made.__setattr__, made.__delattr__ = _refuse, _refuse
            if frozen and slots:
                made.__getstate__, made.__setstate__ = _state, _set_state
            return made

        return make


def _initializer(cls: Any, *, is_frozen: bool) -> Callable[..., None]:
    """An `__init__` that takes the fields in their order."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    parameters, lines = ["self"], []
    for field in dataclasses.fields(cls):
        name = value = field.name
        default = ""
        if field.default is not dataclasses.MISSING:
            known[f"_{name}"] = field.default
            default = f"=_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_{name}"] = field.default_factory
            default = "=_missing"
            value = f"_{name}() if {name} is _missing else {name}"
        parameters.append(name + default)
        lines.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n {body}", known)
    initializer: Callable[..., None] = known["__init__"]
    initializer.__qualname__ = f"{cls.__qualname__}.__init__"
    return initializer


def _compare(cls: Any, *, is_frozen: bool, is_ordered: bool) -> None:
    """Compare objects of the class, and hash those that do not change, by the values of their fields."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    get = attrgetter(*names) if names else bool

    def equals(self: Any, other: Any) -> Any:
        return get(self) == get(other) if other.__class__ is self.__class__ else NotImplemented

    def comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda self, other: (
            compare(get(self), get(other)) if other.__class__ is self.__class__ else NotImplemented
        )

    cls.__eq__ = equals
    cls.__hash__ = (lambda self: hash(get(self))) if is_frozen else None
    if is_ordered:
        for name, compare in (("__lt__", lt), ("__le__", le), ("__gt__", gt), ("__ge__", ge)):
            setattr(cls, name, comparison(compare))


def _shown(self: Any) -> str:
    values = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(values)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r} of a {self.__class__.__qualname__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, values: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), values, strict=True):
        object.__setattr__(self, field.name, value)
