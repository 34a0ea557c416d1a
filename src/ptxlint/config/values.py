"""Readers of configuration values: each takes what TOML gave and returns what is meant, or says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from ptxlint.launch import Dimensions

Reader = Callable[[Any], Any]


class WrongValueError(Exception):
    """A value of the wrong kind, or a key that nobody knows; `path` leads to it through the tables."""

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"{'.'.join(path)} {message}".strip())
        self.message = message
        self.path = path


def string(value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise WrongValueError("must be a string")
    return value


def strings(value: Any) -> tuple[str, ...]:
    """A list of strings."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise WrongValueError("must be a list of strings")
    return tuple(value)


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise WrongValueError("must be true or false")
    return value


def integer(value: Any) -> int:
    """An integer."""
    if type(value) is not int:
        raise WrongValueError("must be an integer")
    return value


def count(value: Any) -> int:
    """An integer from 0."""
    if integer(value) < 0:
        raise WrongValueError("must be an integer from 0")
    return integer(value)


def extents(value: Any) -> Dimensions:
    """One to three positive integers, alone or in a list; those left out are 1."""
    listed = value if isinstance(value, list) else [value]
    if not 1 <= len(listed) <= 3 or not all(type(extent) is int and extent > 0 for extent in listed):
        raise WrongValueError("must be one to three positive integers, such as [32, 4]")
    x, y, z = (*listed, 1, 1)[:3]
    return (x, y, z)


def choice(kind: type[StrEnum]) -> Reader:
    """A member of the enumeration."""

    def read(value: Any) -> StrEnum:
        if value not in list(kind):
            raise WrongValueError(f"must be one of {', '.join(kind)}")
        return kind(value)

    return read


def sequence(reader: Reader) -> Reader:
    """A list, each item read by `reader`."""

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise WrongValueError("must be a list")
        return tuple(_within(str(number), reader, item) for number, item in enumerate(value))

    return read


def mapping(reader: Reader) -> Reader:
    """A table with any keys, each value read by `reader`."""

    def read(value: Any) -> dict[str, Any]:
        return {key: _within(key, reader, item) for key, item in _table(value).items()}

    return read


def table(readers: Mapping[str, tuple[str, Reader]]) -> Reader:
    """A table with those keys and no others; the result has the names that stand beside the readers."""

    def read(value: Any) -> dict[str, Any]:
        values = {}
        for key, item in _table(value).items():
            if key not in readers:
                raise WrongValueError(f"is not a known key{_suggestion(key, readers)}", (key,))
            name, reader = readers[key]
            values[name] = _within(key, reader, item)
        return values

    return read


def _within(key: str, reader: Reader, value: Any) -> Any:
    try:
        return reader(value)
    except WrongValueError as error:
        raise WrongValueError(error.message, (key, *error.path)) from error


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongValueError("must be a table")
    return value


def _suggestion(key: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(sorted(known))}"
