"""Names of one function: which declaration each means, and the unique name it has once scopes are flattened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ptxlint.ir import Element, Immediate, Label, Operand, Register, SpecialRegister, Symbol
from ptxlint.parse.constants import WARP_SIZE, number
from ptxlint.parse.drafts import register

NAME = re.compile(r"(?:[a-zA-Z][\w$]*|[_$%][\w$]+)(?:(?:\.|::)[\w$]+)*", re.ASCII)
NUMBER = re.compile(
    r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?"
    r"|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d{1,400}U?",
    re.ASCII,
)
"""The grammar's WORD and NUMBER (a test compares them with ptx.lark)."""

_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,9})", re.ASCII)
# Source: PTX ISA, *Special Registers*.
_SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyzw])?"
    r"|cluster_ctarank|cluster_nctarank|is_explicit_cluster"
    r"|laneid|warpid|nwarpid|smid|nsmid|gridid|lanemask_(?:eq|le|lt|ge|gt)"
    r"|clock|clock_hi|clock64|globaltimer(?:_lo|_hi)?|pm[0-7](?:_64)?|envreg[0-9]+"
    r"|reserved_smem_offset_(?:begin|end|cap|[0-9]+)|total_smem_size|aggr_smem_size|dynamic_smem_size"
    r"|current_graph_exec)"
)


class UndeclaredError(Exception):
    """A name without a declaration in reach."""


class RedeclaredError(Exception):
    """A second declaration of a name in one scope."""


class Names(dict[str, Operand]):
    """What each word of an operand means here: a lookup that works out, and keeps, what it has not met before.

    A parameterised register `%r<100>` is one entry of `families`; its members come into being when they are read.
    """

    def __init__(self, globals_: Mapping[str, Symbol]) -> None:
        super().__init__()
        self._globals = globals_
        self._families: dict[str, list[tuple[int, int, str, str]]] = {}
        self._used: set[str] = set()
        self._numbered: set[str] = set()
        self._used_families: dict[str, int] = {}
        self._suffixes: dict[str, int] = {}
        self._has_odd_family = False
        self._undo: list[dict[str, Operand | None]] = []
        self._opened_families: list[list[str]] = []
        self._declared: list[set[str]] = [set()]

    def __missing__(self, word: str) -> Operand:
        operand = self._member(word)
        if operand is not None:
            return operand
        operand = self._predefined(word) or self._globals.get(word)
        if operand is not None:
            self[word] = operand
            return operand
        base, dot, component = word.rpartition(".")
        whole = self[base] if dot and NAME.fullmatch(word) else None
        if isinstance(whole, Register):
            return Element(whole, component)
        if isinstance(whole, Element):
            return Element(whole.register, f"{whole.component}.{component}")
        raise UndeclaredError(word)

    def open(self) -> None:
        """Enter a scope."""
        self._undo.append({})
        self._opened_families.append([])
        self._declared.append(set())

    def close(self) -> None:
        """Leave the scope: its names mean again what they meant before."""
        for name, before in self._undo.pop().items():
            if before is None:
                self.pop(name, None)
            else:
                self[name] = before
        for prefix in self._opened_families.pop():
            self._families[prefix].pop()
        self._declared.pop()

    def declare_register(self, name: str, type_: str) -> str:
        """The unique name of a register declared here. Raises RedeclaredError."""
        unique = self._claim(name)
        self._remember(name, Register(unique, type_))
        return unique

    def declare_label(self, name: str) -> str:
        """The unique name of a label or list of labels declared here. Raises RedeclaredError."""
        unique = self._claim(name)
        self._remember(name, Label(unique))
        return unique

    def declare_variable(self, name: str) -> str:
        """The unique name of a variable declared here. Raises RedeclaredError."""
        unique = self._claim(name)
        self._remember(name, Symbol(unique))
        return unique

    def keep(self, name: str) -> None:
        """Make a parameter known under its own name. Raises RedeclaredError."""
        self._claim_once(name)
        self._used.add(name)
        self[name] = Symbol(name)

    def declare_family(self, prefix: str, type_: str, count: int) -> str:
        """The unique prefix of `prefix<count>` declared here. Raises RedeclaredError."""
        self._claim_once(f"{prefix}<")
        unique = prefix
        while self._is_family_taken(unique, count):
            self._suffixes[prefix] = suffix = self._suffixes.get(prefix, 1) + 1
            unique = f"{prefix}${suffix}_"
        self._used_families[unique] = max(count, self._used_families.get(unique, 0))
        self._hide(prefix, count)
        self._has_odd_family = self._has_odd_family or prefix[-1].isdigit()
        self._families.setdefault(prefix, []).append((len(self._undo), count, unique, type_))
        if self._opened_families:
            self._opened_families[-1].append(prefix)
        return unique

    def _remember(self, word: str, operand: Operand) -> None:
        if self._undo:
            self._undo[-1].setdefault(word, self.get(word))
        self[word] = operand

    def _member(self, word: str) -> Operand | None:
        prefix = word.rstrip("0123456789")
        while len(prefix) < len(word):
            index = word[len(prefix) :]
            if prefix in self._families and len(index) < 11 and (index[0] != "0" or index == "0"):
                return self._member_of(prefix, word, int(index))
            if not self._has_odd_family:
                break
            prefix = word[: len(prefix) + 1]
        return None

    def _member_of(self, prefix: str, word: str, index: int) -> Operand | None:
        for depth, count, unique, type_ in reversed(self._families[prefix]):
            if index < count:
                member = register(f"{unique}{index}", type_)
                if depth == 0:
                    self[word] = member
                else:
                    self._remember(word, member)
                return member
        return None

    def _predefined(self, word: str) -> Operand | None:
        if word[0].isdigit() or word[0] == ".":
            return _immediate(word) if NUMBER.fullmatch(word) else None
        if word == "WARP_SZ":
            return Immediate(WARP_SIZE, word)
        return SpecialRegister(word) if word[0] == "%" and _SPECIAL.fullmatch(word) else None

    def _hide(self, prefix: str, count: int) -> None:
        """Forget the members of outer families that the new one stands before."""
        if count <= 64:
            hidden = [name for name in (f"{prefix}{index}" for index in range(count)) if name in self]
        else:
            hidden = [name for name in self if name.startswith(prefix) and _is_member(name, prefix, count)]
        for name in hidden:
            if self._undo:
                self._undo[-1].setdefault(name, self[name])
            del self[name]

    def _claim_once(self, name: str) -> None:
        if name in self._declared[-1]:
            raise RedeclaredError(name)
        self._declared[-1].add(name)

    def _claim(self, name: str) -> str:
        self._claim_once(name)
        unique = name
        while self._is_taken(unique):
            self._suffixes[name] = suffix = self._suffixes.get(name, 1) + 1
            unique = f"{name}${suffix}"
        self._used.add(unique)
        if matched := _NUMBERED.fullmatch(unique):
            self._numbered.add(matched[1])
        return unique

    def _is_taken(self, name: str) -> bool:
        if name in self._used or name in self._globals:
            return True
        matched = _NUMBERED.fullmatch(name)
        return matched is not None and int(matched[2]) < self._used_families.get(matched[1], 0)

    def _is_family_taken(self, prefix: str, count: int) -> bool:
        if prefix in self._used_families:
            return True
        if prefix not in self._numbered:
            return False
        return any(_is_member(name, prefix, count) for name in self._used)


def _is_member(name: str, prefix: str, count: int) -> bool:
    matched = _NUMBERED.fullmatch(name)
    return matched is not None and matched[1] == prefix and int(matched[2]) < count


@lru_cache(maxsize=100_000)
def _immediate(word: str) -> Immediate:
    return Immediate(number(word), word)
