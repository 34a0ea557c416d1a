"""The fixture kernels: one CUDA C++ file with its variants, their markers and the PTX they compile to."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARKER = re.compile(r"expect\[(?P<variants>[\w, -]+)\]: (?P<rule>[a-z0-9-]+)")


@dataclass(frozen=True, slots=True)
class Marker:
    """A finding that one variant must give; among markers of one rule any line will do."""

    variant: str
    rule: str
    line: int


@dataclass(frozen=True, slots=True)
class TensorMap:
    """Shape (an expression, innermost extent first) and box of the tensor map over a buffer."""

    shape: str
    box: tuple[int, ...]
    swizzle: str = "none"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter: a buffer (`in`, `out`, `scratch`) or a scalar with its `value`.

    `count`, `fill` and `expect` are numpy expressions over the scalars and the buffers before them. With `tensormap`
    the kernel gets a tensor map by value, of the buffer itself or of the other parameter that `of` names.
    """

    name: str
    type: str
    role: str
    count: str = "1"
    fill: str = ""
    expect: str = ""
    value: int | float = 0
    tensormap: TensorMap | None = None
    of: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """Grid, block and cluster extents, and dynamic shared memory in bytes.

    `dependent` lets a kernel of the sequence start before the one before it has ended.
    """

    grid: tuple[int, ...] = (1, 1, 1)
    block: tuple[int, ...] = (32, 1, 1)
    cluster: tuple[int, ...] = (1, 1, 1)
    dynamic_smem: int = 0
    dependent: bool = False


@dataclass(frozen=True, slots=True)
class Variant:
    """One compiled form of a kernel.

    `also` names the rules that may fire beside the expected ones; `expect` replaces parameters' reference results.
    """

    kernel: str
    name: str
    about: str
    right: bool
    also: frozenset[str]
    expect: tuple[tuple[str, str], ...]
    markers: tuple[Marker, ...]
    source: Path
    ptx: Path

    @property
    def macro(self) -> str:
        """The preprocessor name that selects the variant."""
        return self.name.upper().replace("-", "_")

    @property
    def id(self) -> str:
        """Kernel and variant, as tests and records name them."""
        return f"{self.kernel}/{self.name}"


@dataclass(frozen=True, slots=True)
class Fixture:
    """A kernel file with everything its header says. `sequence` names the kernels that one run launches."""

    name: str
    arch: str
    sequence: tuple[str, ...]
    launch: Launch
    parameters: tuple[Parameter, ...]
    variants: tuple[Variant, ...]
    source: Path


def header(text: str) -> dict[str, Any]:
    """The TOML part of the leading comment: from its first table to the comment's end."""
    comment = text[: text.index("*/")]
    return tomllib.loads(comment[comment.index("\n[") :])


def markers(text: str) -> Iterator[Marker]:
    """Every `expect[variant]: rule` of a source, with its line counted from 1."""
    for number, line in enumerate(text.splitlines(), start=1):
        for match in MARKER.finditer(line):
            for variant in match["variants"].split(","):
                yield Marker(variant.strip(), match["rule"], number)


def load_fixture(source: Path) -> Fixture:
    """The fixture of one `.cu` file.

    Raises: ValueError where markers and variants do not agree.
    """
    text = source.read_text()
    table = header(text)
    kernel = table["kernel"]
    found = tuple(markers(text))
    variants = tuple(variant_of(source, name, entry, found) for name, entry in table["variant"].items())
    agree(source, variants, found)
    return Fixture(
        name=kernel["name"],
        arch=kernel["arch"],
        sequence=tuple(kernel.get("sequence", [kernel["name"]])),
        launch=Launch(**{key: as_tuple(value) for key, value in table.get("launch", {}).items()}),
        parameters=tuple(parameter_of(entry) for entry in table.get("parameter", ())),
        variants=variants,
        source=source,
    )


def variant_of(source: Path, name: str, entry: dict[str, Any], found: tuple[Marker, ...]) -> Variant:
    """The variant that one `[variant.NAME]` table describes."""
    return Variant(
        kernel=source.stem,
        name=name,
        about=entry["about"],
        right=entry.get("right", False),
        also=frozenset(entry.get("also", ())),
        expect=tuple(entry.get("expect", {}).items()),
        markers=tuple(marker for marker in found if marker.variant == name),
        source=source,
        ptx=source.with_suffix("") / f"{name}.ptx",
    )


def parameter_of(entry: dict[str, Any]) -> Parameter:
    """The parameter that one `[[parameter]]` table describes."""
    tensormap = entry.get("tensormap")
    return Parameter(
        **{
            "role": "scalar",
            **entry,
            "tensormap": TensorMap(**{key: as_tuple(value) for key, value in tensormap.items()}) if tensormap else None,
        }
    )


def as_tuple(value: Any) -> Any:
    """TOML arrays as tuples, other values as they are."""
    return tuple(value) if isinstance(value, list) else value


def agree(source: Path, variants: tuple[Variant, ...], found: tuple[Marker, ...]) -> None:
    """Every marker names a variant, wrong variants have one, right variants none."""
    unknown = {marker.variant for marker in found} - {variant.name for variant in variants}
    unmarked = {variant.name for variant in variants if variant.right == bool(variant.markers)}
    if unknown or unmarked:
        raise ValueError(
            f"{source}: unknown in markers {sorted(unknown)}, marked against their kind {sorted(unmarked)}"
        )


def load_fixtures(folder: Path) -> Iterator[Fixture]:
    """All fixtures of a folder, by name."""
    for source in sorted(folder.glob("*.cu")):
        yield load_fixture(source)
