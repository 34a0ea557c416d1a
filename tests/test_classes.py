"""Our `dataclass` beside that of the standard library: both make classes that behave alike."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ptxlint import classes

Maker = Callable[..., Any]
MAKERS = {"ours": classes.dataclass, "standard": dataclasses.dataclass}


@classes.dataclass(frozen=True, slots=True)
class Kept:
    """A class that can be found by its name."""

    name: str
    numbers: tuple[int, ...] = ()


def made(maker: Maker, **settings: Any) -> Any:
    @maker(**settings)
    class Thing:
        """A thing."""

        first: int
        second: str = "x"
        third: dict[str, int] = dataclasses.field(default_factory=dict, compare=False, repr=False)

        def __str__(self) -> str:
            return "thing"

    return Thing


def single(maker: Maker) -> Any:
    @maker(frozen=True, slots=True)
    class Single:
        """A class of one field."""

        only: int

    return Single


def empty(maker: Maker) -> Any:
    @maker(frozen=True, slots=True)
    class Empty:
        """A class without fields."""

    return Empty


def outcome(action: Callable[[], Any]) -> Any:
    """What the action gives, or the kind of what it raises."""
    try:
        return action()
    except (AttributeError, TypeError) as error:
        return type(error)


SETTINGS: tuple[dict[str, bool], ...] = (
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "order": True},
)
ACTIONS: dict[str, Callable[[Any], Any]] = {
    "repr": lambda thing: repr(thing(1, "a")),
    "str": lambda thing: str(thing(1, "a")),
    "defaults": lambda thing: (thing(1).second, thing(1).third),
    "own default": lambda thing: thing(1).third is thing(1).third,
    "by name": lambda thing: repr(thing(second="b", first=2)),
    "too few": lambda thing: thing(),
    "too many": lambda thing: thing(1, "a", {}, 4),
    "equal": lambda thing: (thing(1, "a", {"n": 1}) == thing(1, "a"), thing(1) == thing(2), thing(1) == 1),
    "hash": lambda thing: len(set(map(hash, [thing(1, "a"), thing(1, "a", {"n": 1})]))),
    "less": lambda thing: (thing(1) < thing(2), thing(1, "b") < thing(1, "a"), thing(1) >= thing(1)),
    "less than another kind": lambda thing: thing(1) < 1,
    "set": lambda thing: setattr(thing(1), "first", 2),
    "delete": lambda thing: delattr(thing(1), "first"),
    "replace": lambda thing: repr(dataclasses.replace(thing(1), second="c")),
    "fields": lambda thing: [field.name for field in dataclasses.fields(thing)],
    "as dictionary": lambda thing: dataclasses.asdict(thing(1, "a")),
    "match": lambda thing: thing.__match_args__,
    "dictionary": lambda thing: hasattr(thing(1), "__dict__"),
    "documentation": lambda thing: (thing.__doc__, thing.__name__, thing.__module__),
}


@pytest.mark.parametrize("settings", SETTINGS, ids=" ".join)
@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
def test_both_behave_alike(settings: dict[str, bool], action: Callable[[Any], Any]) -> None:
    ours, standard = (outcome(partial(action, made(maker, **settings))) for maker in MAKERS.values())
    assert ours == standard


@pytest.mark.parametrize("kind", [single, empty])
def test_few_fields(kind: Callable[[Maker], Any]) -> None:
    values = (1,) if kind is single else ()
    for make in (kind(maker) for maker in MAKERS.values()):
        assert make(*values) == make(*values)
        assert hash(make(*values)) == hash(make(*values))
        assert repr(make(*values)) == f"{make.__qualname__}({'only=1' if values else ''})"


def test_pickled_and_back() -> None:
    thing = Kept("a", (1, 2))
    assert pickle.loads(pickle.dumps(thing)) == thing


def test_what_runs_after_the_fields_are_set() -> None:
    @classes.dataclass(slots=True)
    class Counted:
        """A class that completes itself."""

        number: int

        def __post_init__(self) -> None:
            self.number += 1

    assert Counted(1).number == 2
