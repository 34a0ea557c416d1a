"""The command line as a user meets it: what is printed, and the exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ptxlint import __version__, cli, registry
from ptxlint.facts import Facts
from ptxlint.rule import Finding

DEMO = Path(str(files("ptxlint.demo") / "tile_store.ptx"))
CLEAN = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the program in an empty folder: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("PTXLINT_CACHE_DIR", str(tmp_path / ".cache"))

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        status = cli.run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return call


def write(path: str, content: str | bytes) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


class TestCheck:
    """`ptxlint check`."""

    def test_clean(self, run: Run) -> None:
        write("k.ptx", CLEAN)
        status, out, err = run("check", "k.ptx")
        assert (status, err) == (0, "")
        assert out == "No findings in 1 kernel of 1 file (1 clean).\n"

    def test_findings(self, run: Run) -> None:
        status, out, _ = run("check", DEMO)
        assert status == 1
        assert "--> tile_store.cu:24:13\n24 |             tile[i] = " in out
        assert "= tile_store.cu:29 > tile_store.cu:13: " in out
        assert "in kernel double_tiles" in out
        assert "\x1b" not in out

    def test_a_path_alone_is_checked(self, run: Run) -> None:
        assert run(DEMO) == run("check", DEMO)

    def test_quiet(self, run: Run) -> None:
        write("k.ptx", CLEAN)
        assert run("check", "-q", "k.ptx") == (0, "", "")
        assert run("check", "-q", DEMO)[1] == run("check", DEMO)[1]

    def test_exit_zero(self, run: Run) -> None:
        assert run("check", "--exit-zero", DEMO)[0] == 0

    def test_fail_on(self, run: Run) -> None:
        write("k.ptx", CLEAN)
        severities = {finding["severity"] for finding in checked(run, DEMO)["files"][0]["findings"]}
        assert run("check", "--fail-on", "error", DEMO)[0] == int("error" in severities)
        assert run("check", "--fail-on", "info", DEMO)[0] == 1

    def test_select_and_ignore(self, run: Run) -> None:
        found = {finding["code"] for finding in checked(run, DEMO)["files"][0]["findings"]}
        assert run("check", "--ignore", ",".join(found), DEMO)[0] == 0
        assert run("check", "--ignore", "ALL", "--format", "concise", DEMO) == (0, "", "")
        one = sorted(found)[0]
        assert {f["code"] for f in checked(run, "--select", one, DEMO)["files"][0]["findings"]} == {one}

    @pytest.mark.parametrize("option", ["--select", "--ignore", "--extend-select"])
    def test_an_unknown_rule(self, run: Run, option: str) -> None:
        status, out, err = run("check", option, "no-such-rule", DEMO)
        assert (status, out) == (2, "")
        assert "no rule is called 'no-such-rule'" in err

    def test_statistics(self, run: Run) -> None:
        shown = run("check", "--statistics", DEMO)[1]
        assert shown == "     1  PTX405  source-refilled-before-read\n"
        counts = json.loads(run("check", "--statistics", "--format", "json", DEMO)[1])
        assert counts == [{"code": "PTX405", "rule": "source-refilled-before-read", "count": 1}]

    def test_output_file(self, run: Run) -> None:
        shown = run("check", "--format", "concise", DEMO)[1]
        assert run("check", "--format", "concise", "--output-file", "out", DEMO) == (1, "", "")
        assert Path("out").read_text() == shown
        refused = "Error: nowhere/out cannot be written: No such file or directory\n"
        assert run("check", "-o", "nowhere/out", DEMO) == (2, "", refused)

    def test_a_folder_is_walked(self, run: Run) -> None:
        write("a/b/k.ptx", CLEAN)
        write("a/k.ptx", CLEAN)
        write("a/notes.txt", "not PTX")
        write("a/.hidden/k.ptx", "not PTX")
        assert [file["path"] for file in checked(run, "a")["files"]] == ["a/b/k.ptx", "a/k.ptx"]

    def test_without_a_path_the_working_folder(self, run: Run) -> None:
        write("k.ptx", CLEAN)
        assert [file["path"] for file in checked(run)["files"]] == ["./k.ptx"]

    def test_a_file_named_twice_is_linted_once(self, run: Run) -> None:
        write("k.ptx", CLEAN)
        assert len(checked(run, "k.ptx", "k.ptx")["files"]) == 1

    def test_colours_only_when_asked_for(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "\x1b[" in run("check", "--color", "always", DEMO)[1]
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert "\x1b[" in run("check", DEMO)[1]
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b[" not in run("check", DEMO)[1]


class TestLaunch:
    """The options that describe a launch reach the facts of the kernel."""

    def test_they_arrive(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[Facts] = []

        def recorded(self: object, facts: Facts) -> Iterator[Finding]:  # noqa: ARG001
            seen.append(facts)
            yield from ()

        for rule in registry.rules():
            monkeypatch.setattr(rule, "check", recorded)
        options = "--block 64,2 --cluster 2 --grid 8,8,2 --dynamic-smem 4096 --param n=0x10 --param 3=-1"
        assert run("check", *options.split(), DEMO)[0] == 0
        launch = seen[0].launch
        assert (launch.block, launch.cluster, launch.grid) == ((64, 2, 1), (2, 1, 1), (8, 8, 2))
        assert (launch.dynamic_shared, launch.parameters) == (4096, {"n": 16, 3: -1})

    @pytest.mark.parametrize(
        "options", ["--block 0", "--block 1,2,3,4", "--block x", "--param n", "--param n=x", "--dynamic-smem -1"]
    )
    def test_nonsense_is_refused(self, run: Run, options: str) -> None:
        status, _, err = run("check", *options.split(), DEMO)
        assert status == 2
        assert options.split()[0] in err


class TestBadInput:
    """What is not PTX gets one clear line and status 2; the other files are linted."""

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b" \n\t\n", "is empty"),
            (b"\x7fELF\x02\x01\x01\x00", "holds no PTX"),
            (b"PK\x03\x04rest", "is not a zip archive that can be read"),
            (b".version 8.0\n\x00\x01\x02 stuff", "is binary"),
            (CLEAN.encode() + b"// \xff\n", "is not UTF-8 text: byte 0xff"),
            (b"hello world\n", "expected"),
            (CLEAN[:-3].encode(), "expected"),
        ],
    )
    def test_content(self, run: Run, content: bytes, message: str) -> None:
        write("bad.ptx", content)
        write("good.ptx", CLEAN)
        status, out, _ = run("check", "bad.ptx", "good.ptx")
        assert status == 2
        assert "error: bad.ptx" in out
        assert message in out
        assert "1 clean" in out
        assert "Traceback" not in out

    def test_the_position_of_a_bad_byte(self, run: Run) -> None:
        write("bad.ptx", b"ok\nab" + b"\xff")
        assert checked(run, "bad.ptx")["files"][0]["problem"]["line"] == 2
        assert checked(run, "bad.ptx")["files"][0]["problem"]["column"] == 3

    def test_a_missing_file(self, run: Run) -> None:
        status, out, _ = run("check", "nowhere.ptx")
        assert status == 2
        assert "nowhere.ptx: does not exist" in out

    def test_a_folder_without_ptx(self, run: Run) -> None:
        Path("empty").mkdir()
        status, out, _ = run("check", "empty")
        assert status == 2
        assert "empty: is a folder without any .ptx file" in out

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_an_unreadable_file(self, run: Run) -> None:
        write("k.ptx", CLEAN).chmod(0)
        assert "permission denied" in run("check", "k.ptx")[1]

    def test_a_pipe(self, run: Run) -> None:
        os.mkfifo("pipe.ptx")
        assert "is not a regular file" in run("check", "pipe.ptx")[1]

    def test_a_file_that_is_too_large(self, run: Run) -> None:
        write("k.ptx", CLEAN + "//" + "x" * (1 << 20))
        assert "is larger than 1 MiB" in run("check", "--max-size", "1", "k.ptx")[1]
        assert run("check", "--max-size", "2", "k.ptx")[0] == 0

    def test_a_name_that_is_not_text(self, run: Run) -> None:
        name = os.fsdecode(b"\xff.ptx")
        assert run("check", name)[0] == 2

    def test_usage(self, run: Run) -> None:
        status, out, err = run("check", "--no-such-option")
        assert (status, out) == (2, "")
        assert "No such option" in err
        assert run("no-such-command")[0] == 2


class TestInternalErrors:
    """A mistake of ours: one line that says where and how to report it, and status 3."""

    def test_in_a_rule(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        write("k.ptx", CLEAN)
        rule = registry.select()[0]

        def broken(self: object, facts: Facts) -> Any:  # noqa: ARG001
            raise RuntimeError("a bug")

        monkeypatch.setattr(rule, "check", broken)
        status, out, err = run("check", DEMO, "k.ptx")
        assert status == 3
        assert f"kernel double_tiles, rule {rule.name}: RuntimeError: a bug" in out
        assert "Please report" in out
        assert "1 clean" in out
        assert "Traceback" not in out + err
        assert "Traceback" in run("check", "--debug", DEMO)[2]

    def test_anywhere_else(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry.Selection, "rules", lambda _: 1 // 0)
        status, out, err = run("check", "--no-cache", DEMO)
        assert (status, out) == (3, "")
        assert "ptxlint itself failed in `ptxlint check" in err
        assert "ZeroDivisionError" in err
        assert "Please report" in err
        assert f"ptxlint {__version__}" in err
        assert "Traceback" not in err
        assert "Traceback" in run("check", "--no-cache", "--debug", DEMO)[2]

    def test_a_rule_that_cannot_be_loaded(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(_: registry.Selection) -> Any:
            raise registry.RuleLoadError("/some/rule.py", "SyntaxError: no")

        monkeypatch.setattr(registry.Selection, "rules", broken)
        status, _, err = run("check", "--no-cache", DEMO)
        assert status == 3
        assert "/some/rule.py: SyntaxError: no" in err


class TestJson:
    """The stable document."""

    def test_it_matches_the_schema(self, run: Run) -> None:
        write("bad.ptx", "nonsense")
        write("k.ptx", CLEAN)
        document = checked(run, DEMO, "bad.ptx", "k.ptx", "nowhere.ptx")
        schema = json.loads((files("ptxlint.schema") / "check.json").read_text())
        jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
        assert document["ptxlint"] == __version__
        assert document["summary"]["problems"] == 2

    def test_a_finding(self, run: Run) -> None:
        finding = checked(run, DEMO)["files"][0]["findings"][0]
        assert list(finding) == (
            [
                "rule",
                "code",
                "severity",
                "message",
                "kernel",
                "line",
                "column",
                "source",
                "related",
                "witness",
                "assumptions",
                "help",
                "fingerprint",
            ]
        )
        assert finding["source"] == {
            "file": "tile_store.cu",
            "line": 24,
            "column": 13,
            "function": None,
            "inlined_at": [],
        }
        assert finding["related"][0]["source"]["inlined_at"][0]["line"] == 29


def checked(run: Run, *arguments: str | Path) -> dict[str, Any]:
    return dict(json.loads(run("check", "--format", "json", *arguments)[1]))


class TestOtherCommands:
    """`rules`, `explain`, `show`, `demo` and the options of the program itself."""

    def test_rules(self, run: Run) -> None:
        status, out, _ = run("rules")
        assert status == 0
        assert [line.split()[0] for line in out.splitlines()] == [rule.code for rule in registry.rules()]
        listed = json.loads(run("rules", "--format", "json")[1])
        assert [entry["name"] for entry in listed] == [rule.name for rule in registry.rules()]

    @pytest.mark.parametrize("rule", registry.rules(), ids=lambda rule: rule.name)
    def test_explain(self, run: Run, rule: Any) -> None:
        status, out, _ = run("explain", rule.name)
        assert status == 0
        assert out == run("explain", rule.code)[1]
        assert rule.isa.section in out
        assert all(line.strip() in out for example in (*rule.good, *rule.bad) for line in example.splitlines())

    def test_explain_an_unknown_rule(self, run: Run) -> None:
        assert run("explain", "no-such-rule")[0] == 2

    def test_demo(self, run: Run) -> None:
        status, out, _ = run("demo")
        assert status == 0
        assert "tile_store.cu:" in out

    def test_config(self, run: Run) -> None:
        write("ptxlint.toml", 'ignore = ["PTX204"]\n[[launch]]\nkernel = "gemm*"\nblock = [128, 3]\n')
        status, out, _ = run("config")
        lines = [line.split() for line in out.splitlines()]
        assert (status, lines[0]) == (0, ["file:", str(Path("ptxlint.toml").resolve())])
        assert ["ignore", "[PTX204]", "(file)"] in lines
        assert ["fail-on", "warning", "(default)"] in lines
        assert "launch               [[gemm*, {block: [128, 3, 1]}]]          (file)" in out

    def test_show_ir(self, run: Run) -> None:
        status, out, _ = run("show", "ir", DEMO)
        assert status == 0
        assert ".entry double_tiles" in out

    def test_show_cfg(self, run: Run) -> None:
        assert run("show", "cfg", DEMO)[1].startswith("double_tiles")
        assert run("show", "cfg", "--dot", DEMO)[1].startswith("digraph")

    def test_show_a_kernel_that_is_not_there(self, run: Run) -> None:
        status, _, err = run("show", "cfg", "--kernel", "nope*", DEMO)
        assert status == 2
        assert "it has double_tiles" in err

    @pytest.mark.parametrize("view", ["ir", "cfg"])
    def test_show_what_cannot_be_read(self, run: Run, view: str) -> None:
        write("bad.ptx", "nonsense")
        assert run("show", view, "bad.ptx")[0] == 2
        assert run("show", view, "nowhere.ptx")[0] == 2

    def test_version(self, run: Run) -> None:
        assert run("--version") == (0, f"ptxlint, version {__version__}\n", "")

    @pytest.mark.parametrize("command", ["", "check", "explain", "rules", "show", "demo"])
    def test_help(self, run: Run, command: str) -> None:
        status, out, _ = run(*command.split(), "--help")
        assert status == 0
        assert out.startswith("Usage: ptxlint")


class TestProcess:
    """The installed program, through a real process."""

    def program(self, *arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ptxlint", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **settings)

    def test_standard_input(self) -> None:
        done = self.program("check", "-", "--format", "concise", input=DEMO.read_text())
        assert done.returncode == 1
        assert done.stdout.startswith("<stdin>:")

    def test_a_reader_that_goes_away(self) -> None:
        done = subprocess.run(
            f"'{sys.executable}' -m ptxlint explain {registry.rules()[0].name} | head -c 1",
            shell=True,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""

    def imported(self, path: Path) -> set[str]:
        """The modules that are there after `check`."""
        script = "import sys; from ptxlint import cli; cli.run(['check', '-q', sys.argv[1]]); print(*sys.modules)"
        command = [sys.executable, "-c", script, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return set(done.stdout.splitlines()[-1].split())

    def test_only_what_a_command_needs_is_imported(self) -> None:
        assert not {"rich", "json", "asyncio", "tomllib"} & self.imported(DEMO)

    def test_rules_are_loaded_only_when_something_must_be_analysed(self, tmp_path: Path) -> None:
        """Neither for a kernel that has nothing any rule is about, nor for a result that is kept."""
        idle = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
        paths = {name: tmp_path / f"{name}.ptx" for name in ("idle", "kept", "new")}
        for path, text in zip(paths.values(), (idle, DEMO.read_text(), DEMO.read_text()), strict=True):
            path.write_text(f"{text}// {tmp_path}\n")
        self.program("check", paths["kept"])
        self.program("check", paths["idle"])
        for name, text in (("idle", idle), ("new", DEMO.read_text())):
            paths[name].write_text(f"{text}// again {tmp_path}\n")
        needed = {name: {"ptxlint.facts", "lark"} & self.imported(path) for name, path in paths.items()}
        assert needed == {"idle": set(), "kept": set(), "new": {"ptxlint.facts"}}
