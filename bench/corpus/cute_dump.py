"""PTX out of the CuTe DSL, which writes it to a folder while it compiles.

Runs inside the virtual environment of a project. The DSL reads its settings when it is first imported, so a recipe
calls ``prepare`` before it imports anything of CuTe.
"""

import importlib
import os
from dataclasses import dataclass
from pathlib import Path

_SETTINGS = {
    "CUTE_DSL_KEEP": "ptx",
    "CUTE_DSL_LINEINFO": "1",
    "CUTE_DSL_DISABLE_FILE_CACHING": "1",
    "CUDA_VISIBLE_DEVICES": "",
}


def prepare(arch: str, **settings: str) -> None:
    """Compile for ``arch`` (``sm_90a``) and leave the PTX in the current folder."""
    os.environ.update(_SETTINGS, CUTE_DSL_ARCH=arch, CUTE_DSL_DUMP_DIR=os.getcwd(), **settings)


@dataclass(frozen=True, slots=True)
class AssumedHardware:
    """Answers what a kernel's host code asks of the device, without a device."""

    device_id: int = 0

    def get_device_multiprocessor_count(self) -> int:
        """Of an H200."""
        return 132

    def get_max_active_clusters(self, cluster_size: int, stream: object = None) -> int:
        """As many as fit if every multiprocessor takes one CTA."""
        del stream
        return self.get_device_multiprocessor_count() // cluster_size

    def get_l2_cache_size_in_bytes(self) -> int:
        """Of an H200."""
        return 50 << 20


def assume_hardware() -> None:
    """Put ``AssumedHardware`` in the place of the class that would ask the CUDA driver."""
    utilities = importlib.import_module("cutlass.utils")
    setattr(utilities, "HardwareInfo", AssumedHardware)  # noqa: B010


def dumped(pick: str = "") -> str:
    """The PTX written so far whose file name contains ``pick``; the longest if there are several.

    Raises: LookupError
    """
    texts = [path.read_text(encoding="utf-8") for path in Path.cwd().glob("*.ptx") if pick in path.name]
    if not texts:
        raise LookupError(f"no PTX was written: {[path.name for path in Path.cwd().iterdir()]}")
    return max(texts, key=len)
