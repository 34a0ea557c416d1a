"""Fingerprints: the same finding keeps its own when registers, labels and lines are renumbered."""

from __future__ import annotations

import re
from collections import Counter

from ptxlint.ir import Instruction

_NUMBERED = re.compile(r"%[\w.]+|\$[\w$]+|\b(?:line|L|lines)\s*\d+(?:\s*(?:,|and|to|-)\s*\d+)*|:\d+(?::\d+)?")


class Fingerprints:
    """Gives the findings of one kernel their fingerprints; ask in the order of their lines."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.seen: Counter[str] = Counter()

    def next(self, rule: str, instruction: Instruction | None, message: str) -> str:
        """Sixteen hexadecimal digits: rule, kernel, instruction and message without numbers, and which of its like."""
        from hashlib import blake2b

        shape = "\n".join((rule, self.kernel, _shape(instruction), _NUMBERED.sub("_", message)))
        self.seen[shape] += 1
        return blake2b(f"{shape}\n{self.seen[shape]}".encode(), digest_size=8).hexdigest()


def _shape(instruction: Instruction | None) -> str:
    return _NUMBERED.sub("_", str(instruction)) if instruction else ""
