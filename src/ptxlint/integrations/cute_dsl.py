"""CuTe DSL: every kernel that `cutlass.cute.compile` compiles.

The DSL offers no hook, so the call operator of `cute.compile` is wrapped. It keeps PTX only if its environment says so
when it is first imported: call `watch` before `import cutlass`. A `@cute.jit` function that is called without
`cute.compile` is not seen.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from ptxlint.config import Config
from ptxlint.integrations.watch import Reaction, Seen, Watch
from ptxlint.launch import Launch

KEEP = "CUTE_DSL_KEEP"
DUMP_FOLDER = "CUTE_DSL_DUMP_DIR"


def watch(reaction: Reaction = "warn", config: Config | None = None, launch: Launch | None = None) -> Watch:
    """Lint what CuTe DSL compiles from now on. Raises RuntimeError when it was imported without keeping PTX."""
    return Watch(_attach, reaction, config, launch)


def _attach(seen: Seen) -> Callable[[], None]:
    if "ptx" not in os.environ.get(KEEP, "").split(","):
        if "cutlass" in sys.modules:
            raise RuntimeError(f"watch CuTe DSL before `import cutlass`, or set {KEEP}=ptx")
        os.environ[KEEP] = ",".join(filter(None, (os.environ.get(KEEP), "ptx")))
    if DUMP_FOLDER not in os.environ:
        os.environ[DUMP_FOLDER] = tempfile.mkdtemp(prefix="ptxlint-cute-")
    from cutlass import cute

    kind: Any = type(cute.compile)
    before = kind.__call__

    def compile_and_lint(self: Any, *arguments: Any, **settings: Any) -> Any:
        compiled = before(self, *arguments, **settings)
        text = getattr(compiled, "__ptx__", None)
        if text:
            seen(f"{compiled.function_name}.ptx", text.rstrip("\0"))
        return compiled

    def detach() -> None:
        kind.__call__ = before

    kind.__call__ = compile_and_lint
    return detach
