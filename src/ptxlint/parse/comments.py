"""Comments taken out of PTX text, with every line and column left where it was."""

from __future__ import annotations

import re

from ptxlint.source import PtxSyntaxError, Span

_COMMENT = re.compile(
    r'"[^"\n]*"|//[^\n]*|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/|/\*|(?m:^[ \t]*(?:#|@@DWARF)[^\n]*)',
)


def blanked(text: str) -> str:
    """The text without comments, `#` lines and `@@DWARF` lines (PTX 1.x). Raises PtxSyntaxError for an open comment."""
    if "//" not in text and "/*" not in text and "#" not in text and "@@" not in text:
        return text
    if "/*" in text or "#" in text or "@@" in text or text.count("//") > text.count("\n"):
        return _COMMENT.sub(_blank, text)
    first, *pieces = text.split("//")
    kept = [first]
    for piece in pieces:
        if '"' in kept[-1] and '"' in kept[-1][kept[-1].rfind("\n") + 1 :]:
            return _COMMENT.sub(_blank, text)
        newline = piece.find("\n")
        kept.append(piece[newline:] if newline >= 0 else "")
    return "".join(kept)


def _blank(matched: re.Match[str]) -> str:
    comment = matched[0]
    if comment[0] == '"':
        return comment
    if comment[:2] != "/*":
        return ""
    if comment == "/*":
        before = matched.string[: matched.start()]
        span = Span(before.count("\n") + 1, matched.start() - before.rfind("\n"))
        raise PtxSyntaxError(span, "a comment is opened and never closed; expected '*/'")
    return re.sub(r"[^\n]", " ", comment)
