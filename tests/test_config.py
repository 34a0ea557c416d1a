"""Configuration files: where they are found, what they may say, and what the command line adds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ptxlint import config, registry
from ptxlint.config import Config, ConfigError
from ptxlint.launch import Launch
from ptxlint.rule import Severity
from ptxlint.run import Plan

EVERYTHING = """
select = ["ALL"]
ignore = ["{first}"]
extend-select = []
fail-on = "error"
strict = true
extend-include = ["*.so", "jit/*.txt"]
exclude = ["third_party/", "*.gen.ptx"]
baseline = "known.json"
cache = false
jobs = 2

[severity]
"{second}" = "info"

[per-file-ignores]
"legacy/*.ptx" = ["{second}"]

[per-kernel-ignores]
"*warmup*" = ["ALL"]

[[launch]]
kernel = "gemm*"
block = [128, 2]
cluster = 2
dynamic-smem = 4096
params = {{ n = 64, 3 = 7 }}

[[launch]]
block = 32
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything() -> Config:
    first, second = registry.rules()[:2]
    Path("ptxlint.toml").write_text(EVERYTHING.format(first=first.code, second=second.name))
    return config.discover()


def test_every_setting_is_read(folder: Path) -> None:
    found = everything()
    assert found.file == str(folder / "ptxlint.toml")
    assert (found.fail_on, found.strict, found.cache, found.jobs) == (Severity.ERROR, True, False, 2)
    assert found.launches == (
        ("gemm*", Launch((128, 2, 1), (2, 1, 1), None, 4096, {"n": 64, 3: 7})),
        ("*", Launch((32, 1, 1))),
    )


class TestPlan:
    """What the settings do."""

    def names(self, path: str) -> set[str]:
        return {rule.name for rule in Plan(everything(), Launch()).job(path).options.rules}

    def test_per_file_ignores(self) -> None:
        first, second = (rule.name for rule in registry.rules()[:2])
        every = {rule.name for rule in registry.rules()}
        assert self.names("a.ptx") == every - {first}
        assert self.names("legacy/a.ptx") == every - {first, second}
        assert self.names("legacy/sub/a.ptx") == every - {first}

    def test_excluded_files(self) -> None:
        for path in ("a.ptx", "b.gen.ptx", "third_party/x/c.ptx"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).touch()
        plan = Plan(everything(), Launch())
        assert plan.files(["."]) == ["./a.ptx"]
        assert plan.files(["b.gen.ptx"]) == ["b.gen.ptx"]

    def test_included_files(self) -> None:
        for path in ("lib.so", "lib.a", "jit/k.txt", "other/k.txt", "third_party/lib.so"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).touch()
        assert Plan(everything(), Launch()).files(["."]) == ["./jit/k.txt", "./lib.so"]
        assert Plan(Config(), Launch()).files(["."]) == ["."]

    def test_globs_that_no_shell_expanded(self) -> None:
        for path in ("a/b/k.ptx", "a/k.ptx", "a/k.gen.ptx", "a/[k].ptx"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).touch()
        plan = Plan(everything(), Launch())
        assert plan.files(["a/**/k*.ptx"]) == ["a/b/k.ptx", "a/k.ptx"]
        assert plan.files(["?", "a/[k].ptx"]) == ["a/[k].ptx", "a/b/k.ptx", "a/k.ptx"]
        assert plan.files(["*.none"]) == ["*.none"]

    def test_per_kernel_ignores_see_demangled_names(self) -> None:
        options = Plan(everything(), Launch()).options
        assert options.rules_of("_ZN3lib6warmupEv") == ()
        assert options.rules_of("_ZN3lib4gemmEv") == options.rules

    def test_the_first_launch_that_matches_completes_the_command_line(self) -> None:
        options = Plan(everything(), Launch(cluster=(4, 1, 1), parameters={"n": 1})).options
        assert options.launch_of("gemm_64") == Launch((128, 2, 1), (4, 1, 1), None, 4096, {"n": 1, 3: 7})
        assert options.launch_of("other") == Launch((32, 1, 1), (4, 1, 1), parameters={"n": 1})

    def test_an_unknown_rule(self) -> None:
        with pytest.raises(registry.UnknownSelectorError):
            Plan(Config(severity={"no-such-rule": Severity.INFO}), Launch())


class TestDiscovery:
    """Which file applies."""

    def test_none(self) -> None:
        assert config.discover() == Config()

    def test_the_nearest_folder_wins(self) -> None:
        Path("ptxlint.toml").write_text("jobs = 1")
        Path("sub/deep").mkdir(parents=True)
        assert config.discover("sub/deep").jobs == 1
        Path("sub/pyproject.toml").write_text("[tool.ptxlint]\njobs = 2")
        assert config.discover("sub/deep").jobs == 2

    def test_a_pyproject_without_the_table_is_passed_over(self) -> None:
        Path("ptxlint.toml").write_text("jobs = 1")
        Path("sub").mkdir()
        Path("sub/pyproject.toml").write_text("[project]\nname = 'uses-ptxlint'\n")
        assert config.discover("sub").jobs == 1

    def test_ptxlint_toml_comes_before_pyproject(self) -> None:
        Path("ptxlint.toml").write_text("jobs = 1")
        Path("pyproject.toml").write_text("[tool.ptxlint]\njobs = 2")
        assert config.discover().jobs == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", "selct is not a known key; did you mean select?"),
        ("xyz = 1", "xyz is not a known key; known are baseline, cache"),
        ("select = 'PTX4'", "select must be a list of strings"),
        ("fail-on = 'fatal'", "fail-on must be one of error, warning, info"),
        ("strict = 1", "strict must be true or false"),
        ("jobs = -1", "jobs must be an integer from 0"),
        ("jobs = true", "jobs must be an integer"),
        ("severity = []", "severity must be a table"),
        ("severity = {x = 'loud'}", "severity.x must be one of"),
        ("[per-file-ignores]\n'a' = 'b'", "per-file-ignores.a must be a list of strings"),
        ("[launch]\nblock = 1", "launch must be a list"),
        ("[[launch]]\nblok = 1", "launch.0.blok is not a known key; did you mean block?"),
        ("[[launch]]\n[[launch]]\ngrid = [0]", "launch.1.grid must be one to three positive integers"),
        ("[[launch]]\nparams = {n = 1.5}", "launch.0.params.n must be an integer"),
        ("select = [", "Invalid value"),
    ],
)
def test_a_mistake_is_named_with_its_file(text: str, message: str) -> None:
    Path("ptxlint.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.discover()
    assert "ptxlint.toml: " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.exists, "No such file"),
        (Path.mkdir, "Is a directory"),
        (lambda file: file.write_bytes(b"\xff"), "is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read(make: Callable[[Path], Any], message: str) -> None:
    make(Path("other.toml"))
    with pytest.raises(ConfigError, match=message):
        config.load("other.toml")


def test_a_pyproject_that_is_named_must_have_the_table() -> None:
    Path("pyproject.toml").write_text("")
    with pytest.raises(ConfigError, match="has no"):
        config.load("pyproject.toml")
