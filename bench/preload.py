"""Import all of ptxlint at once, so that forked processes share one and the same code."""

import importlib
import pkgutil

import ptxlint
from ptxlint import registry


def import_everything() -> None:
    """Import every module of ptxlint that is not a program, and every rule."""
    for found in pkgutil.walk_packages(ptxlint.__path__, "ptxlint."):
        if not found.name.startswith(("ptxlint.validate", "ptxlint.__main__")):
            importlib.import_module(found.name)
    registry.rules()
