"""Text -> IR."""

from __future__ import annotations

from ptxlint.ir import Module
from ptxlint.parse.build import ModuleBuilder
from ptxlint.parse.comments import blanked
from ptxlint.parse.inline_asm import uncounted
from ptxlint.parse.scan import scan
from ptxlint.source import PtxSyntaxError, Span

__all__ = ["parse", "parse_bytes", "parse_plainly"]


def parse(text: str) -> Module:
    """The module that the text holds. Raises PtxSyntaxError."""
    return scan(_cleaned(text))


def parse_plainly(text: str) -> Module:
    """The same module, the grammar applied to the whole text at once: slow, and what `parse` is measured against."""
    from ptxlint.parse.syntax import read_module

    builder = ModuleBuilder()
    builder.read(read_module(_cleaned(text)))
    return builder.finish()


def parse_bytes(data: bytes) -> Module:
    """The module that a file holds. Raises PtxSyntaxError, also for what is not text."""
    return parse(decoded(data))


def decoded(data: bytes) -> str:
    """The text of a file; bytes that are not UTF-8 do no harm in comments and strings. Raises PtxSyntaxError."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    data = data.removesuffix(b"\0")
    if b"\0" in data:
        before = data[: data.index(b"\0")]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        raise PtxSyntaxError(Span(line, column), "a NUL byte: this is a binary file, not PTX text")
    return data.decode("utf-8", "surrogateescape")


def _cleaned(text: str) -> str:
    return blanked(uncounted(text.replace("\r\n", "\n")))
