"""The record of a hardware run: per variant what testing and the sanitizer saw. JSON, committed beside the fixtures."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ptxlint.validate.fixture import Variant

NOT_RUN = "not run: needs compute capability"


def digest(variant: Variant) -> str:
    """Names the PTX that was run, so that a stale record shows."""
    return hashlib.sha256(variant.ptx.read_bytes()).hexdigest()[:16]


def read(path: Path) -> dict[str, Any]:
    """The record of a file; an empty one where there is no file."""
    return json.loads(path.read_text()) if path.exists() else {"machine": {}, "variants": {}}


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Writes the record, variants in the order of their names."""
    ordered = {**record, "variants": dict(sorted(record["variants"].items()))}
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def described(entry: Mapping[str, Any]) -> str:
    """What testing saw of a variant, in a few words."""
    outcome = entry["outcome"]
    total = outcome["right"] + outcome["wrong"]
    match outcome["kind"]:
        case "right":
            seen = f"passes {outcome['right']}/{total}"
        case "wrong":
            seen = f"wrong {outcome['wrong']}/{total}"
        case "trap":
            seen = f"trap ({outcome['detail'].removeprefix('CUDA_ERROR_').lower()}) at launch {total + 1}"
        case "hang":
            seen = f"hang at launch {total + 1}"
        case kind:
            seen = kind
    delayed = entry.get("delayed", {})
    return f"{seen}; {delayed['outcome']['kind']} with a delay: {delayed['where']}" if "where" in delayed else seen
