"""Which modules are mutated: the right variants of the fixture kernels, and modules of the corpus."""

import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from bench.corpus.cache import Cache
from bench.mutants.mutant import OWN
from ptxlint.validate.fixture import load_fixtures

CHOSEN = Path(__file__).with_name("modules.toml")
_KERNELS = Path(__file__).resolve().parents[2] / "fixtures/kernels"


def modules(cache: Cache, chosen: str, pattern: str) -> Iterator[tuple[str, Path]]:
    """Name and file of each module of a set whose name (`project/module`) matches the glob."""
    table = tomllib.loads(CHOSEN.read_text(encoding="utf-8"))[chosen]
    for name, path in (*(_fixtures() if table.pop(OWN, False) else ()), *_corpus(cache, table)):
        if fnmatchcase(name, pattern):
            yield name, path


def _fixtures() -> Iterator[tuple[str, Path]]:
    for fixture in load_fixtures(_KERNELS):
        for variant in fixture.variants:
            if variant.right:
                yield f"{OWN}/{fixture.name}.{variant.name}", variant.ptx


def _corpus(cache: Cache, table: dict[str, list[str]]) -> Iterator[tuple[str, Path]]:
    for project, names in table.items():
        folder = cache.ptx(project)
        for path in sorted(folder.glob("*.ptx")):
            if any(fnmatchcase(path.stem, name) for name in names):
                yield f"{project}/{path.stem}", path
