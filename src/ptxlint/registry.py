"""Finds the rules: those in the `rules` folder, and those of installed packages that offer some.

A package offers rules through the entry point group `ptxlint.rules`; each entry names a module with one rule in it, or
a package of such modules.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from ptxlint.classes import dataclass
from ptxlint.rule import Rule

GROUP = "ptxlint.rules"


class RuleLoadError(Exception):
    """A rule that cannot be used: the file (or module) it is in, and why."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason


class UnknownSelectorError(Exception):
    """A selector that names no rule: the selector, and the names that look like it."""

    def __init__(self, selector: str, near: tuple[str, ...]) -> None:
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"no rule is called {selector!r}{hint}")
        self.selector = selector
        self.near = near


@dataclass(frozen=True, slots=True)
class Selection:
    """Rules by what selects them, as `select` takes it; `without` holds names. They are loaded when first asked for.

    Most kernels have nothing that a rule could be about, and the rules bring the engines with them.
    """

    chosen: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    extended: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()

    def rules(self) -> tuple[type[Rule], ...]:
        """The rules. Raises RuleLoadError."""
        return _selected(self)


@cache
def rules() -> tuple[type[Rule], ...]:
    """Every rule, ordered by code. Raises RuleLoadError when one of them cannot be loaded."""
    return unambiguous(found for name in (GROUP, *_offered()) for found in load(name))


def load(name: str) -> Iterator[type[Rule]]:
    """The rules in the module of that name, or in every module below it when it is a package."""
    module = _imported(name)
    if not hasattr(module, "__path__"):
        yield _only_rule(module)
        return
    for info in pkgutil.iter_modules(module.__path__):
        yield from load(f"{name}.{info.name}")


def unambiguous(found: Iterable[type[Rule]]) -> tuple[type[Rule], ...]:
    """The rules ordered by code. Raises RuleLoadError when two share a code or a name."""
    taken: dict[str, type[Rule]] = {}
    ordered = tuple(sorted(found, key=lambda rule: rule.code))
    for rule in ordered:
        for key in (rule.code, rule.name):
            if key in taken:
                raise RuleLoadError(file_of(rule), f"{key} is taken by {file_of(taken[key])}")
            taken[key] = rule
    return ordered


def named(name: str) -> type[Rule]:
    """The rule of that name or code. Raises UnknownSelectorError."""
    for rule in rules():
        if name in (rule.name, rule.code):
            return rule
    raise _unknown(name)


@cache
def _selected(selection: Selection) -> tuple[type[Rule], ...]:
    found = select(selection.chosen, selection.ignored, selection.extended)
    return tuple(rule for rule in found if rule.name not in selection.without)


def select(
    chosen: Iterable[str] = (), ignored: Iterable[str] = (), extended: Iterable[str] = ()
) -> tuple[type[Rule], ...]:
    """The rules that those selectors leave on: a name, a code, the beginning of one (`PTX4`), or `ALL`.

    Without `chosen`, the rules that are on by default; `extended` adds to either. The most specific selector decides,
    and `ignored` wins a tie. Raises UnknownSelectorError.
    """
    wanted, refused = (*chosen,), (*ignored,)
    added = (*extended,)
    expanded((*wanted, *refused, *added))
    return tuple(rule for rule in rules() if _is_on(rule, wanted, refused, added))


def expanded(selectors: Iterable[str]) -> frozenset[str]:
    """The names of the rules that any of the selectors means. Raises UnknownSelectorError."""
    names: set[str] = set()
    for selector in selectors:
        meant = {rule.name for rule in rules() if specificity(selector, rule)}
        if not meant:
            raise _unknown(selector)
        names |= meant
    return frozenset(names)


def specificity(selector: str, rule: type[Rule]) -> int:
    """How narrowly the selector means the rule: 0 when it does not, 1 for `ALL`, then by its length."""
    if selector in (rule.name, rule.code):
        return 1 + max(len(rule.name), len(rule.code))
    if selector == "ALL":
        return 1
    is_prefix = selector[-1:].isdigit() and rule.code.startswith(selector)
    return 1 + len(selector) if is_prefix or selector == rule.code.rstrip("0123456789") else 0


def file_of(rule: type[Rule]) -> str:
    """The file that the rule is written in."""
    return _file(_imported(rule.__module__))


def _is_on(rule: type[Rule], wanted: tuple[str, ...], refused: tuple[str, ...], added: tuple[str, ...]) -> bool:
    by_default = 1 if rule.default and not wanted else 0
    for_it = max([by_default, *(specificity(selector, rule) for selector in (*wanted, *added))])
    against_it = max([0, *(specificity(selector, rule) for selector in refused)])
    return for_it > against_it


def _only_rule(module: ModuleType) -> type[Rule]:
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise RuleLoadError(_file(module), f"holds {len(found)} rules; a rule's file holds one")
    stem = module.__name__.rpartition(".")[2]
    if found[0].name.replace("-", "_") != stem:
        raise RuleLoadError(_file(module), f"holds {found[0].__name__}; a rule's file is named like its class")
    return found[0]


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:
        raise RuleLoadError(_origin(name), f"{type(error).__name__}: {error}") from error


def _origin(name: str) -> str:
    """The file of a module that could not be imported, or its name when there is none."""
    package, _, stem = name.rpartition(".")
    for finder, found, _ in pkgutil.iter_modules(import_module(package).__path__ if package else None):
        if found == stem and (spec := finder.find_spec(stem, None)) and spec.origin:
            return spec.origin
    return name


def _file(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or module.__name__


def homes() -> Iterator[str]:
    """The folders of the rules that other packages offer, without loading them."""
    for name in _offered():
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            yield os.path.dirname(spec.origin)


def _offered() -> Iterator[str]:
    """The modules that installed packages offer. `importlib.metadata` costs 25 ms, so look whether it is needed."""
    if not any(map(_may_offer, sys.path)):
        return
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        yield entry.value


def _may_offer(folder: str) -> bool:
    """Whether a package in the folder may have entry points of the group. A zip archive on the path may."""
    if not os.path.isdir(folder):
        return os.path.isfile(folder)
    heading = f"[{GROUP}]".encode()
    with os.scandir(folder) as found:
        listings = (
            os.path.join(entry.path, "entry_points.txt")
            for entry in found
            if entry.name.endswith((".dist-info", ".egg-info")) and entry.is_dir()
        )
        return any(heading in Path(path).read_bytes() for path in listings if os.path.isfile(path))


def _unknown(selector: str) -> UnknownSelectorError:
    from difflib import get_close_matches

    known = [name for rule in rules() for name in (rule.name, rule.code)]
    return UnknownSelectorError(selector, tuple(get_close_matches(selector, known, n=2)))
