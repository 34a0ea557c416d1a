"""Finding rules: in folders, from other packages, and what is said when one cannot be loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from ptxlint import registry
from ptxlint.registry import RuleLoadError, UnknownSelectorError
from ptxlint.rule import Rule

RULES = Path(__file__).parent.parent / "rules"
RULE = '''
from ptxlint.rule import IsaRef, Rule, Severity


class {name}(Rule):
    """A summary."""

    code = "{code}"
    severity = Severity.WARNING
    isa = IsaRef("Initializers", since="1.0")
    good = ("ret;",)
    bad = ("ret;  // expect: x",)
    default = {default}
'''


class Package:
    """A package of rules in a temporary folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("")

    def add(self, path: str, text: str) -> Path:
        file = self.folder / self.name / path
        file.parent.mkdir(exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(text)
        return file

    def rule(self, name: str, code: str, *, folder: str = "", default: bool = True) -> Path:
        stem = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
        return self.add(f"{folder}{stem}.py", RULE.format(name=name, code=code, default=default))

    def load(self) -> tuple[type[Rule], ...]:
        invalidate_caches()
        return registry.unambiguous(registry.load(self.name))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"rules_of_{tmp_path.name}"
    yield Package(tmp_path, name)
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


def test_every_file_in_rules_is_a_rule() -> None:
    files = {path.stem for path in RULES.glob("**/*.py") if path.stem != "__init__"}
    assert {rule.name.replace("-", "_") for rule in registry.rules()} == files


def test_rules_are_ordered_by_code_across_folders(package: Package) -> None:
    package.rule("LaterRule", "PTX902")
    package.rule("EarlierRule", "PTX901", folder="family/")
    assert [rule.name for rule in package.load()] == ["earlier-rule", "later-rule"]


def test_a_rule_that_does_not_import_stops_with_its_file(package: Package) -> None:
    file = package.add("broken.py", "import no_such_module_anywhere")
    with pytest.raises(RuleLoadError, match="no_such_module_anywhere") as caught:
        package.load()
    assert caught.value.file == str(file)


def test_a_rule_with_a_missing_field_stops_with_its_file(package: Package) -> None:
    file = package.rule("HalfRule", "PTX901")
    file.write_text(file.read_text().replace("severity =", "gravity ="))
    with pytest.raises(RuleLoadError, match="half-rule lacks severity") as caught:
        package.load()
    assert caught.value.file == str(file)


def test_a_file_without_a_rule_is_an_error(package: Package) -> None:
    package.add("nothing.py", "")
    with pytest.raises(RuleLoadError, match="holds 0 rules"):
        package.load()


def test_a_file_named_unlike_its_class_is_an_error(package: Package) -> None:
    package.add("another_name.py", RULE.format(name="OneName", code="PTX901", default=True))
    with pytest.raises(RuleLoadError, match="named like its class"):
        package.load()


def test_a_code_is_taken_once(package: Package) -> None:
    package.rule("OneRule", "PTX901")
    package.rule("OtherRule", "PTX901")
    with pytest.raises(RuleLoadError, match=r"PTX901 is taken by .*one_rule\.py"):
        package.load()


def test_an_installed_package_offers_rules(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    package.rule("ForeignRule", "ACME001")
    metadata = package.folder / "acme_rules-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[ptxlint.rules]\nacme = {package.name}\n")
    monkeypatch.setattr(registry, "rules", registry.rules.__wrapped__)
    assert "foreign-rule" in {rule.name for rule in registry.rules()}


class TestSelect:
    """Selectors over four rules, one of them off by default."""

    @pytest.fixture(autouse=True)
    def _rules(self, package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
        package.rule("FirstRule", "PTX201")
        package.rule("SecondRule", "PTX202")
        package.rule("ThirdRule", "PTX401")
        package.rule("QuietRule", "PTX402", default=False)
        loaded = package.load()
        monkeypatch.setattr(registry, "rules", lambda: loaded)

    @pytest.mark.parametrize(
        ("chosen", "ignored", "extended", "expected"),
        [
            ((), (), (), "201 202 401"),
            (("ALL",), (), (), "201 202 401 402"),
            (("PTX2",), (), (), "201 202"),
            (("PTX",), (), (), "201 202 401 402"),
            (("third-rule",), (), (), "401"),
            ((), ("PTX2",), (), "401"),
            (("PTX201",), ("PTX2",), (), "201"),
            (("PTX2",), ("PTX201",), (), "202"),
            (("PTX201",), ("first-rule",), (), ""),
            ((), (), ("quiet-rule",), "201 202 401 402"),
            (("PTX2",), (), ("PTX401",), "201 202 401"),
            ((), ("ALL",), (), ""),
        ],
    )
    def test_the_most_specific_decides(
        self, chosen: tuple[str, ...], ignored: tuple[str, ...], extended: tuple[str, ...], expected: str
    ) -> None:
        selected = registry.select(chosen, ignored, extended)
        assert [rule.code.removeprefix("PTX") for rule in selected] == expected.split()

    @pytest.mark.parametrize("selector", ["first-rul", "PTX9", "PTX2O1", "P"])
    def test_an_unknown_selector_is_an_error(self, selector: str) -> None:
        with pytest.raises(UnknownSelectorError, match="no rule is called"):
            registry.select([selector])

    def test_an_unknown_name_suggests_one(self) -> None:
        with pytest.raises(UnknownSelectorError, match="did you mean first-rule"):
            registry.named("frist-rule")


def test_rules_live_where_the_package_says() -> None:
    assert Path(str(import_module("ptxlint.rules").__file__)).parent == RULES
