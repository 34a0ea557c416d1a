"""The one way of saying that an input gives no PTX."""

from __future__ import annotations

from ptxlint.result import Problem


class UnreadableError(Exception):
    """An input that gives no text, and why; line and column from 1, or 0 when it is about the whole file."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.problem = Problem(message, line, column)
