"""Control flow: branches, calls, returns, the ends of a thread, and the debugger's traps."""

from __future__ import annotations

from ptxlint.isa.row import Flow, Row

_CONTROL = "Control Flow Instructions: "
_MISCELLANEOUS = "Miscellaneous Instructions: "
_CALL = "=results?:arguments callee arguments?:arguments prototype?"

ROWS: tuple[Row, ...] = (
    Row("bra", "target", _CONTROL + "bra", flow=Flow.BRANCH),
    Row("brx.idx", "index table", _CONTROL + "brx.idx", (6, 0), 30, flow=Flow.TABLE),
    Row("call", _CALL, _CONTROL + "call", flow=Flow.CALL),
    Row("ret", "", _CONTROL + "ret", flow=Flow.RETURN),
    Row("exit", "", _CONTROL + "exit", flow=Flow.EXIT),
    Row("trap", "", _MISCELLANEOUS + "trap", flow=Flow.EXIT, aborts=True),
    Row("brkpt", "", _MISCELLANEOUS + "brkpt", (1, 0), 11, aborts=True),
    Row("pmevent", "a", _MISCELLANEOUS + "pmevent", (1, 4)),
)
