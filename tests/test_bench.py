"""The proof commands: mutations of a statement, triage, the tables, work in processes of its own."""

from __future__ import annotations

import fnmatch
import sys
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.corpus.lint_table import condemned, figures, merged  # noqa: E402
from bench.corpus.linted import Found, Linted, Task, lint, unanswered  # noqa: E402
from bench.corpus.triage import Judgement, TriageError, judgement, read_triage  # noqa: E402
from bench.evidence import page  # noqa: E402
from bench.forked import Failure, each  # noqa: E402
from bench.mutants import table  # noqa: E402
from bench.mutants.campaign import Campaign, contradicts, excused  # noqa: E402
from bench.mutants.journal import Journal  # noqa: E402
from bench.mutants.modules import CHOSEN  # noqa: E402
from bench.mutants.mutant import Mutant, mutants, sample  # noqa: E402
from bench.mutants.operators import OPERATORS  # noqa: E402
from bench.mutants.redundant import Entry, argument, read_redundant  # noqa: E402
from bench.mutants.sets import SETS  # noqa: E402
from bench.mutants.statement import read_statement  # noqa: E402
from bench.mutants.trial import FOUND, ILLEGAL, MISSED, REDUNDANT, Outcome, judge, original  # noqa: E402
from bench.percentile import percentile  # noqa: E402
from ptxlint import registry  # noqa: E402
from ptxlint.lint import Options  # noqa: E402

RING = (ROOT / "fixtures/kernels/ring/right.ptx").read_text()

MUTATIONS = [
    ("drop-arrive", "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r1]", ""),
    ("drop-arrive", "mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2", None),
    (
        "drop-expect-tx",
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r1+8], 1024",
        "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1+8];",
    ),
    ("expect-tx-more", "mbarrier.expect_tx.shared.b64 [a], 0x10", "mbarrier.expect_tx.shared.b64 [a], 32;"),
    (
        "expect-tx-more",
        "mbarrier.expect_tx.shared.b64 [a], %r9",
        "{ .reg .b32 mutated; add.s32 mutated, %r9, 16; mbarrier.expect_tx.shared.b64 [a], mutated; }",
    ),
    ("init-count-less", "mbarrier.init.shared.b64 [%r1], 128", "mbarrier.init.shared.b64 [%r1], 127;"),
    ("init-count-less", "mbarrier.init.shared.b64 [%r1], 0", None),
    ("drop-wait", "@p mbarrier.try_wait.parity.shared.b64 q, [a], 1, 0x989680", "@p setp.eq.u32 q, 0, 0;"),
    (
        "flip-parity",
        "mbarrier.try_wait.parity.shared.b64 q, [a], 1, 0x989680",
        "{ .reg .b32 mutated; xor.b32 mutated, 1, 1; mbarrier.try_wait.parity.shared.b64 q, [a], mutated, 0x989680; }",
    ),
    ("flip-parity", "mbarrier.try_wait.shared.b64 q, [a], %rd1", None),
    ("drop-toggle", "xor.b32 %r1, %r2, 1", "mov.b32 %r1, %r2;"),
    ("drop-toggle", "and.b32 %r1, %r2, 1", "mov.b32 %r1, 0;"),
    ("drop-toggle", "and.b32 %r1, %r2, 7", None),
    (
        "arrive-next-slot",
        "mbarrier.arrive.shared.b64 _, [%r1 + 16], 2",
        "mbarrier.arrive.shared.b64 _, [%r1+24], 2;",
    ),
    ("misplace-barrier", "mbarrier.init.shared.b64 [bars], 1", "mbarrier.init.shared.b64 [bars+4], 1;"),
    ("weaken-group-wait", "cp.async.wait_group 0", "cp.async.wait_group 1;"),
    ("weaken-group-wait", "cp.async.wait_all", None),
    ("wait-for-reads-only", "cp.async.bulk.wait_group 0", "cp.async.bulk.wait_group.read 0;"),
    ("wait-for-reads-only", "cp.async.bulk.wait_group.read 0", None),
    ("elect-all", "elect.sync _|%p1, -1", "setp.eq.u32 %p1, 0, 0;"),
    ("elect-all", "elect.sync %r1|%p1, -1", "mov.b32 %r1, 0; setp.eq.u32 %p1, 0, 0;"),
    ("drop-cta-barrier", "bar.sync 0", ""),
    ("drop-cta-barrier", "bar.warp.sync 0xffffffff", None),
    ("drop-fence", "fence.proxy.async", None),
    ("drop-tcgen05-wait", "tcgen05.wait::ld.sync.aligned", ""),
    ("drop-tcgen05-fence", "tcgen05.fence::before_thread_sync", ""),
    ("drop-init", "mbarrier.inval.shared.b64 [a]", None),
    ("drop-fence", "fence.acq_rel.gpu", ""),
]


@pytest.mark.parametrize(("operator", "text", "expected"), MUTATIONS)
def test_mutation(operator: str, text: str, expected: str | None) -> None:
    statement = read_statement(text)
    assert statement is not None
    [meant] = [each for each in OPERATORS if each.name == operator]
    assert meant.mutate(statement) == expected


def test_statement_keeps_brackets_and_braces() -> None:
    statement = read_statement(
        "@!%p1  cp.async.bulk.tensor.2d.global.shared::cta.bulk_group\t[%rd1, {%r1, %r2}], [%r3]"
    )
    assert statement is not None
    assert statement.operands == ("[%rd1, {%r1, %r2}]", "[%r3]")
    assert statement.guard == "@!%p1 "
    assert read_statement("{ .reg .b32 x") is None


def test_mutants_keep_lines() -> None:
    found = list(mutants("ring", RING))
    assert {mutant.text.count("\n") for mutant in found} == {RING.count("\n")}
    assert len({mutant.key for mutant in found}) == len(found)
    changed = [
        (
            mutant,
            [
                n
                for n, pair in enumerate(zip(RING.split("\n"), mutant.text.split("\n"), strict=True), 1)
                if pair[0] != pair[1]
            ],
        )
        for mutant in found
    ]
    assert all(lines == [mutant.line] for mutant, lines in changed)


def test_toggles_are_those_of_a_parity() -> None:
    toggles = [mutant for mutant in mutants("ring", RING) if mutant.operator == "drop-toggle"]
    assert toggles
    unrelated = RING.replace("mbarrier.try_wait.parity", "mbarrier.try_wait")
    assert not [mutant for mutant in mutants("ring", unrelated) if mutant.operator == "drop-toggle"]


def test_sample_is_fair_and_stable() -> None:
    found = list(mutants("ring", RING))
    operators = {mutant.operator for mutant in found}
    chosen = sample(found, len(operators))
    assert {mutant.operator for mutant in chosen} == operators
    assert sample(list(reversed(found)), len(operators)) == chosen
    assert len(sample(found, 10_000)) == len(found)


def a_mutant(module: str, operator: str, line: int, opcode: str = "fence", text: str = "") -> Mutant:
    return Mutant(module, operator, line, opcode, 0, 0, text, "")


def test_judge_finds_a_dropped_arrive_and_no_harmless_change() -> None:
    options = Options(registry.select())
    assert not original(RING, options).blemish
    mutant = next(mutant for mutant in mutants("ring", RING) if mutant.operator == "drop-arrive")
    outcome = judge(mutant, options)
    assert outcome.state == FOUND
    assert any(rule.endswith(":error") for rule in outcome.rules)
    assert judge(a_mutant("ring", "none", 1, text=RING), options) == Outcome(MISSED)
    assert "at line" in original(mutant.text, options).blemish


def test_journal_survives(tmp_path: Path) -> None:
    path = tmp_path / "deep/journal.jsonl"
    Journal(path).put("a", Outcome(FOUND, ("cyclic-wait:error",), "why"))
    Journal(path).put("b", Outcome(MISSED))
    again = Journal(path)
    assert again.get("a") == Outcome(FOUND, ("cyclic-wait:error",), "why")
    assert again.get("b") == Outcome(MISSED)
    assert again.get("c") is None


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts come from the journals the second time; nothing in them says where the files lay."""
    chosen = [mutant for mutant in mutants("ring", RING) if mutant.operator in ("drop-arrive", "drop-init")][:3]
    campaign = Campaign(tmp_path, 2, 60, Options(registry.select()))
    first = dict(campaign.outcomes(chosen))
    assert {outcome.state for outcome in first.values()} == {FOUND}

    def fail(*_: object) -> None:
        raise AssertionError("tried again")

    monkeypatch.setattr("bench.mutants.campaign.judge", fail)
    assert dict(campaign.outcomes(chosen)) == first
    kept = "".join(path.read_text() for path in tmp_path.iterdir())
    assert str(ROOT) not in kept
    assert str(tmp_path) not in kept


def test_redundant_entries() -> None:
    mutant = a_mutant("fixtures/ring.right", "drop-fence", 12, "fence.acq_rel.gpu")
    assert argument(mutant, [Entry("why\n so", "drop-fence", "fixtures/ring.*")]) == "why so"
    assert argument(mutant, [Entry("why", "drop-fence", lines=(12,))])
    assert not argument(mutant, [Entry("why", "drop-fence", lines=(13,))])
    assert not argument(mutant, [Entry("why", "drop-*", opcode="membar*")])
    known = {operator.name for operator in OPERATORS}
    for entry in read_redundant():
        assert fnmatch.filter(known, entry.operator), entry.operator
        assert entry.reason.strip()


def test_an_argument_may_name_what_stands_around() -> None:
    source = (
        "mbarrier.init.b64 [a], 1;\n\t// a comment\n\t.loc 1 2 3\nL:\n\tfence.proxy.async;\n\tbar.sync 0;\n\tret;\n"
    )
    begin, end = source.index("fence"), source.index("\n\tbar")
    mutant = Mutant("m", "drop-proxy-fence", 5, "fence.proxy.async", begin, end, "", source)
    assert mutant.before(4) == ["mbarrier.init.b64 [a], 1;"]
    assert mutant.behind(1) == ["bar.sync 0;"]
    assert argument(mutant, [Entry("why", "drop-proxy-fence", then="ret")])
    assert not argument(mutant, [Entry("why", "drop-proxy-fence", after="init", then="exit")])
    assert argument(mutant, [Entry("why", "drop-proxy-fence", after=r"^mbarrier\.init")])
    assert not argument(mutant, [Entry("why", "drop-proxy-fence", after="mbarrier.inval")])


def test_an_argument_excuses_what_was_missed_and_is_refuted_by_what_was_found() -> None:
    mutant, entries = a_mutant("m", "drop-fence", 1), [Entry("why", "drop-fence")]
    assert excused(mutant, Outcome(MISSED), entries) == Outcome(REDUNDANT, reason="why")
    assert excused(mutant, Outcome(MISSED), []) == Outcome(MISSED)
    found = Outcome(FOUND, ("a:error",))
    assert excused(mutant, found, entries) == found
    assert contradicts(mutant, found, entries)
    assert not contradicts(mutant, Outcome(MISSED), entries)


def test_sets_name_operators_and_modules() -> None:
    known = {operator.name for operator in OPERATORS}
    tables = tomllib.loads(CHOSEN.read_text())
    assert set(tables) == set(SETS)
    assert all(chosen.operators <= known for chosen in SETS.values())


def test_mutant_table() -> None:
    outcomes = {
        a_mutant("fixtures/m", "drop-wait", 1, "mbarrier.try_wait"): Outcome(FOUND, ("a:error", "b:warning")),
        a_mutant("fixtures/m", "drop-wait", 2, "mbarrier.try_wait"): Outcome(MISSED, (), "budget"),
        a_mutant("p/n", "drop-fence", 3): Outcome(REDUNDANT, reason="why"),
        a_mutant("p/n", "drop-fence", 4): Outcome(ILLEGAL),
        a_mutant("p/n", "drop-arrive", 5): Outcome(FOUND, ("b:warning",)),
    }
    summary = table.figures(outcomes)
    assert (summary["modules"], summary["mutants"], summary["share"]) == (2, 4, 66.7)
    assert summary["operators"]["fixtures"] == {"drop-wait": {"error": 1, MISSED: 1}}
    assert summary["operators"][table.REAL]["drop-arrive"] == {"warning": 1}
    assert summary["origins"]["p"] == summary["origins"][table.REAL]
    assert summary["origins"]["fixtures"] == {"modules": 1, "mutants": 2, "error": 1, MISSED: 1, "share": 50.0}
    assert summary["rules"] == {
        "a": {"error": 1, "fixtures": 1},
        "b": {"fixtures": 1, table.REAL: 1, "warning": 2},
    }
    assert table.redundant_lines(outcomes) == [
        {"module": "p/n", "operator": "drop-fence", "lines": [3], "reason": "why"}
    ]
    text = table.render(summary, outcomes)
    assert "missed drop-wait fixtures/m.ptx:2 mbarrier.try_wait (budget)" in text


FINDING = Found("k", "cyclic-wait", "error", 3, ("a.py:7", "b.py:9"), "text", (), "0123456789abcdef")
MODULE = Linted(Path("/c/gluon/ring_s3.ptx"), (("k", "findings", ""), ("l", "clean", "")), (FINDING,), (), 1.5, 3.0)


def entry(folder: Path, **keys: str) -> Path:
    path = folder / "triage.toml"
    lines = [f'{key} = "{text}"' for key, text in {"judgement": "true", "reason": "r", "rule": "*", **keys}.items()]
    path.write_text("\n".join(["[[finding]]", *lines]))
    return path


@pytest.mark.parametrize(
    ("keys", "covers"),
    [
        ({}, True),
        ({"project": "gluon", "module": "ring_*", "source": "b.py:9"}, True),
        ({"source": "b.py:10"}, False),
        ({"project": "other"}, False),
        ({"fingerprint": "0123456789abcdef", "rule": "cyclic-wait", "kernel": "k"}, True),
        ({"rule": "cyclic"}, False),
    ],
)
def test_triage_covers(tmp_path: Path, keys: dict[str, str], covers: bool) -> None:
    entries = read_triage(entry(tmp_path, **keys))
    assert judgement(entries, MODULE, FINDING) == (Judgement.TRUE if covers else None)


@pytest.mark.parametrize("keys", [{"judgement": "perhaps"}, {"reason": " "}, {"line": "3"}])
def test_triage_refuses(tmp_path: Path, keys: dict[str, str]) -> None:
    with pytest.raises(TriageError):
        read_triage(entry(tmp_path, **keys))


def test_triage_of_the_corpus_is_sound() -> None:
    rules = {rule.name for rule in registry.rules()}
    assert {entry.rule for entry in read_triage()} <= rules


@pytest.mark.parametrize(("verdict", "is_bad"), [("true", False), ("contested", False), ("false", True)])
def test_errors_must_be_judged(tmp_path: Path, verdict: str, is_bad: bool) -> None:
    assert condemned([MODULE], ()) == [(MODULE, FINDING, "not judged")]
    entries = read_triage(entry(tmp_path, judgement=verdict))
    assert bool(condemned([MODULE], entries)) is is_bad


def test_each_kernel_of_a_module_without_an_answer_is_not_analysed(tmp_path: Path) -> None:
    module = tmp_path / "many.ptx"
    module.write_text(
        ".version 9.0\n.visible .entry first(\n)\n{ ret; }\n\t.weak .entry _Z6secondv()\n{ ret; }\n.entry $third(){}\n"
        "// .entry none(\n.func helper()\n{ ret; }\n"
    )
    linted = unanswered(module, "no answer within 3 s", 3)
    assert linted.kernels == tuple(
        (n, "not-analysed", "no answer within 3 s") for n in ("first", "_Z6secondv", "$third")
    )
    assert figures("some", [linted], [])["not analysed"] == 3


def test_a_module_is_linted_once_by_the_same_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    module = tmp_path / "a" / "late.ptx"
    module.write_text(".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry late()\n{ ret; }\n")
    options = Options(())
    first = lint(Task(module, is_timed=False), options, tmp_path / "kept")
    assert first.kernels == (("late", "clean", ""),)
    monkeypatch.setattr("bench.corpus.linted.lint_module", None)
    assert lint(Task(module, is_timed=False), options, tmp_path / "kept") == first
    module.write_text(module.read_text() + "// changed\n")
    with pytest.raises(TypeError):
        lint(Task(module, is_timed=False), options, tmp_path / "kept")


def test_corpus_figures() -> None:
    row = figures("gluon", [MODULE], ())
    assert (row["modules"], row["kernels"], row["clean"], row["findings"], row["not analysed"]) == (1, 2, 1, 1, 0)
    assert row["rules"] == {"error cyclic-wait not judged": 1}
    assert (row["seconds beside ptxas"], row["ptxas seconds"]) == (1.5, 3.0)


def test_a_record_keeps_the_rows_of_other_projects() -> None:
    first, second = figures("gluon", [MODULE], (), "a1"), figures("triton", [MODULE, MODULE], (), "a1")
    again = figures("gluon", [], (), "b2")
    rows = merged(merged([], [first, second]), [again])
    assert [(row["project"], row["kernels"], row["code"]) for row in rows] == [
        ("gluon", 0, "b2"),
        ("triton", 4, "a1"),
        ("all", 4, None),
    ]
    assert rows[-1]["rules"] == {"error cyclic-wait not judged": 2}


def test_percentile() -> None:
    assert percentile([3, 1, 2], 90) == 3
    assert percentile(range(1, 11), 50) == 5
    assert percentile([7], 1) == 7


def work(item: int) -> int:
    if item == 2:
        raise ValueError("two")
    if item == 3:
        time.sleep(60)
    return item * 10


def test_each_item_has_a_process_of_its_own() -> None:
    results = dict(each(work, [1, 2, 3, 4], 2, 3.0))
    assert results[1] == 10
    assert results[4] == 40
    assert results[2] == Failure("ValueError: two")
    assert results[3] == Failure("no answer within 3 s")


def test_evidence_page_is_fresh() -> None:
    assert (ROOT / "docs/evidence.md").read_text() == page()
