"""Which modules are mutated: the right variants of the fixture kernels, and modules of the corpus."""

import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from bench.corpus.cache import Cache
from ptxlint.validate.fixture import load_fixtures

CHOSEN = Path(__file__).with_name("modules.toml")
_KERNELS = Path(__file__).resolve().parents[2] / "fixtures/kernels"


def modules(cache: Cache, pattern: str) -> Iterator[tuple[str, Path]]:
    """Name and file of each chosen module whose name (`project/module`) matches the glob."""
    for name, path in (*_fixtures(), *_corpus(cache)):
        if fnmatchcase(name, pattern):
            yield name, path


def _fixtures() -> Iterator[tuple[str, Path]]:
    for fixture in load_fixtures(_KERNELS):
        for variant in fixture.variants:
            if variant.right:
                yield f"fixtures/{fixture.name}.{variant.name}", variant.ptx


def _corpus(cache: Cache) -> Iterator[tuple[str, Path]]:
    chosen = tomllib.loads(CHOSEN.read_text(encoding="utf-8"))
    for project, names in chosen.items():
        folder = cache.ptx(project)
        for path in sorted(folder.glob("*.ptx")):
            if any(fnmatchcase(path.stem, name) for name in names):
                yield f"{project}/{path.stem}", path
