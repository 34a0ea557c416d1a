"""One PTX statement as text, taken apart so that a mutation can put it together otherwise."""

import re
from dataclasses import dataclass, replace

_HEAD = re.compile(r"(?P<guard>@!?[%\w$]+\s+)?(?P<opcode>[a-zA-Z][\w.:]*)(?P<blank>\s*)")
_OPENING, _CLOSING = "[{(", "]})"


@dataclass(frozen=True, slots=True)
class Statement:
    """`guard opcode operands;` without the semicolon. The guard includes its `@`, and is empty where there is none."""

    guard: str
    opcode: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.guard}{self.opcode} {', '.join(self.operands)};"

    def has(self, *words: str) -> bool:
        """Whether all of the words stand in the opcode, between dots."""
        return set(words) <= set(self.opcode.split("."))

    def without(self, word: str, operands: tuple[str, ...]) -> "Statement":
        """The statement with a word less in its opcode, and other operands."""
        words = [each for each in self.opcode.split(".") if each != word]
        return replace(self, opcode=".".join(words), operands=operands)

    def with_operand(self, index: int, text: str) -> "Statement":
        """The statement with another operand at the index."""
        return replace(self, operands=(*self.operands[:index], text, *self.operands[index + 1 :]))

    def address(self) -> int:
        """The index of the first operand in brackets, -1 when none is."""
        return next((index for index, operand in enumerate(self.operands) if operand.startswith("[")), -1)


def read_statement(text: str) -> Statement | None:
    """The statement, given without its semicolon; None when it is no instruction."""
    head = _HEAD.match(text)
    if head is None:
        return None
    operands = tuple(_split(text[head.end() :]))
    return Statement(" ".join((head["guard"] or "").split()) + " " * bool(head["guard"]), head["opcode"], operands)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
