"""Who may import whom, who may name an opcode, and who may name a rule."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from ptxlint import isa, registry

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "ptxlint"

LAYERS = (
    ("classes",),
    ("__init__", "source", "cmake", "containers", "grammar", "graph", "demangle", "demo", "schema", "storage"),
    ("ir",),
    ("isa", "launch", "printer"),
    ("parse", "cfg"),
    ("dataflow", "rule"),
    ("execution",),
    ("analyses",),
    ("facts",),
    ("rules", "fault", "fingerprint"),
    ("registry", "result", "explanation"),
    ("config", "excerpt", "lint", "unreadable"),
    ("embedded",),
    ("binary", "compile"),
    ("compiler_caches",),
    ("inputs",),
    ("cache", "report", "suppression", "testing"),
    ("baseline", "merge", "run"),
    ("api",),
    ("cli", "integrations", "validate"),
    ("__main__",),
)
"""From the bottom up: a module imports from lower layers and from its own package. Type-checking imports are free."""

LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}

OUTSIDE = {"lark": {"parse"}, "click": {"cli"}, "rich": {"cli", "report"}, "pytest": {"integrations"}}
"""Third-party packages and the only phases that import them."""

RULE_IMPORTS = {"analyses", "facts", "ir", "isa", "rule", "source"}


def _files() -> list[Path]:
    return [path for root in ("src/ptxlint", "grammar", "rules") for path in sorted((ROOT / root).glob("**/*.py"))]


def _phase(path: Path) -> str:
    if path.is_relative_to(SOURCE):
        return path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return path.relative_to(ROOT).parts[0]


def _imports(path: Path) -> Iterator[str]:
    """The dotted names that a file imports when it runs."""
    free: set[ast.AST] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                free.update(ast.walk(node))
            case ast.Import() if node not in free:
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str() as module) if node not in free:
                yield from (f"{module}.{alias.name}" for alias in node.names)


def _phases_imported(path: Path) -> set[str]:
    names = (name.split(".") for name in _imports(path))
    return {
        parts[1] if parts[1:] and (parts[1] in LAYER or _exists(parts[1])) else "__init__"
        for parts in names
        if parts[0] == "ptxlint"
    }


def _exists(phase: str) -> bool:
    return (SOURCE / phase).is_dir() or (SOURCE / f"{phase}.py").exists()


def test_every_module_has_a_layer() -> None:
    homeless = {_phase(path) for path in _files()} - set(LAYER)
    assert not homeless, f"name the layer of {sorted(homeless)} in LAYERS"


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    phase = _phase(path)
    upward = {name for name in _phases_imported(path) - {phase} if LAYER[name] >= LAYER[phase]}
    assert not upward, f"{phase} imports {sorted(upward)}"


@pytest.mark.parametrize("package", OUTSIDE)
def test_third_party_packages_stay_where_they_belong(package: str) -> None:
    users = {_phase(path) for path in _files() if any(name.split(".")[0] == package for name in _imports(path))}
    assert users <= OUTSIDE[package]


@pytest.mark.parametrize("rule", registry.rules(), ids=lambda rule: rule.name)
def test_a_rule_imports_facts_and_no_other_rule(rule: type) -> None:
    assert _phases_imported(Path(registry.file_of(rule))) <= RULE_IMPORTS


def test_the_engine_names_no_rule() -> None:
    names = {name for rule in registry.rules() for name in (rule.name, rule.__name__, rule.code)}
    named = {
        (str(path.relative_to(ROOT)), value)
        for path in _files()
        if path.is_relative_to(SOURCE)
        for value in _strings(path)
        if value in names
    }
    assert not named


def test_only_the_isa_table_lists_opcodes() -> None:
    """A collection that names two instructions says something about opcodes that belongs into their rows.

    To compare a row's name with one, or to name one in a message, is fine. The execution engine may keep such lists,
    since it gives each row its meaning; `validate` analyses nothing.
    """
    opcodes = {row.name for row in isa.ROWS if row.is_asynchronous_machinery or "." in row.name}
    lists = {
        (str(path.relative_to(ROOT)), ", ".join(sorted(listed)))
        for path in _files()
        if _phase(path) not in ("isa", "execution", "validate")
        for listed in (opcodes.intersection(strings) for strings in _collections(path))
        if len(listed) > 1
    }
    assert not lists


def _strings(path: Path) -> Iterator[str]:
    return _constants(ast.walk(ast.parse(path.read_text())))


def _collections(path: Path) -> Iterator[list[str]]:
    """The strings of each set, list, tuple, dictionary and `match` alternative in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Set() | ast.List() | ast.Tuple() | ast.Dict():
                yield list(_constants(ast.iter_child_nodes(node)))
            case ast.MatchOr():
                yield list(
                    _constants(pattern.value for pattern in node.patterns if isinstance(pattern, ast.MatchValue))
                )


def _constants(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
