"""Line numbers that LLVM makes up inside inline asm, taken out of PTX text."""

from __future__ import annotations

import re

_BEGIN = "// begin inline asm\n"
_END = "// end inline asm"
_LOC = re.compile(r"(?m)^[ \t]*\.loc[ \t][^\n]*$")


def uncounted(text: str) -> str:
    """The text without the `.loc` directives between the marks of inline asm, every line left where it was.

    LLVM counts on from the line of the statement, one for each line of the asm, as if the asm stood in the user's
    file; the `.loc` before the asm holds for all of it. Measured on Triton 3.9 and CuTe DSL: all of 16,010 such
    directives are that count, and what follows the asm is placed as if they were not there. nvcc writes none.
    """
    first, *pieces = text.split(_BEGIN)
    for index, piece in enumerate(pieces):
        end = piece.find(_END)
        if end > 0 and ".loc" in piece[:end]:
            pieces[index] = _LOC.sub("", piece[:end]) + piece[end:]
    return _BEGIN.join((first, *pieces))
