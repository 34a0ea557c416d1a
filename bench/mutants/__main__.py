"""``python -m bench.mutants``: drop or weaken every synchronization instruction of clean modules, lint each mutant."""

import json
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

import ptxlint
from bench.corpus.cache import Cache, default_root
from bench.forked import Failure, each
from bench.mutants.journal import Journal, code_digest
from bench.mutants.modules import modules
from bench.mutants.mutant import Mutant, mutants, sample
from bench.mutants.redundant import is_redundant, read_redundant
from bench.mutants.table import figures, missed_line, missed_lines, render
from bench.mutants.trial import ILLEGAL, LEGAL, MISSED, REDUNDANT, Outcome, Place, is_legal, judge, places
from bench.preload import import_everything
from ptxlint import registry
from ptxlint.lint import Options


@click.command(help=__doc__)
@click.option("--cache", "root", type=click.Path(file_okay=False, path_type=Path), help="Folder of the corpus.")
@click.option("--modules", "pattern", default="*", help="Glob over project/module; fixtures/NAME.VARIANT are ours.")
@click.option("--operator", "operators", multiple=True, help="Only this operator (repeatable).")
@click.option("--limit", type=click.IntRange(1), default=60, show_default=True, help="Mutants of a module, at most.")
@click.option("--first", type=click.IntRange(1), help="Only so many modules.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes at a time.")
@click.option("--seconds", type=float, default=120, show_default=True, help="Time limit of a mutant.")
@click.option("--slowest", type=float, default=20, show_default=True, help="Leave out modules that take longer.")
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there.")
def main(
    root: Path | None,
    pattern: str,
    operators: tuple[str, ...],
    limit: int,
    first: int | None,
    jobs: int,
    seconds: float,
    slowest: float,
    out: Path | None,
) -> None:
    """Mutate, assemble, lint, report."""
    import_everything()
    cache = Cache(root or default_root())
    options = Options(registry.select())
    chosen: list[Mutant] = []
    known: dict[str, frozenset[Place]] = {}
    for name, path in list(modules(cache, pattern))[:first]:
        text = path.read_text(encoding="utf-8")
        began = time.process_time()
        known[name] = places(text, options)
        spent = time.process_time() - began
        if known[name] or spent > slowest:
            click.echo(f"left out: {name}: {len(known[name])} findings, {spent:.1f} s")
            continue
        found = [mutant for mutant in mutants(name, text) if not operators or mutant.operator in operators]
        chosen += sample(found, limit)
    click.echo(f"{len(chosen)} mutants")
    outcomes = dict(_outcomes(chosen, known, cache, jobs, seconds, options))
    redundant = read_redundant()
    for mutant in chosen:
        if outcomes[mutant].state == MISSED and is_redundant(mutant, redundant):
            outcomes[mutant] = Outcome(REDUNDANT)
    summary = figures(outcomes)
    click.echo(render(summary, {mutant: outcomes[mutant] for mutant in chosen}))
    if out is not None:
        record = {"ptxlint": ptxlint.__version__, **summary, "missed ones": missed_lines(outcomes)}
        out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _outcomes(
    chosen: Sequence[Mutant],
    known: dict[str, frozenset[Place]],
    cache: Cache,
    jobs: int,
    seconds: float,
    options: Options,
) -> Iterator[tuple[Mutant, Outcome]]:
    """The outcome of every mutant, from the journal where it is there; the missed ones are printed as they come."""
    folder = cache.root / "mutants"
    legality, verdicts = Journal(folder / "ptxas.jsonl"), Journal(folder / f"{code_digest()}.jsonl")
    fresh: list[Mutant] = []
    for mutant in sorted(chosen, key=lambda mutant: mutant.key):
        kept = _kept(mutant, legality, verdicts)
        if kept is None:
            fresh.append(mutant)
        else:
            yield mutant, kept
    legal = frozenset(mutant.key for mutant in fresh if legality.get(mutant.key) is not None)
    for mutant, result in each(partial(_judge, known=known, legal=legal, options=options), fresh, jobs, seconds):
        outcome = Outcome(MISSED, (), result.reason) if isinstance(result, Failure) else result
        if not isinstance(result, Failure) and mutant.key not in legal:
            legality.put(mutant.key, Outcome(ILLEGAL if outcome.state == ILLEGAL else LEGAL))
        if outcome.state != ILLEGAL:
            verdicts.put(mutant.key, outcome)
        if outcome.state == MISSED:
            click.echo(missed_line(mutant, outcome))
        yield mutant, outcome


def _kept(mutant: Mutant, legality: Journal, verdicts: Journal) -> Outcome | None:
    """What the journals know of the mutant; None when it has to be tried."""
    ruled = legality.get(mutant.key)
    if ruled is None:
        return None
    return Outcome(ILLEGAL) if ruled.state == ILLEGAL else verdicts.get(mutant.key)


def _judge(mutant: Mutant, known: dict[str, frozenset[Place]], legal: frozenset[str], options: Options) -> Outcome:
    """The fate of a mutant; those whose keys are in `legal` need no ptxas."""
    if mutant.key not in legal and not is_legal(mutant):
        return Outcome(ILLEGAL)
    return judge(mutant, known[mutant.module], options)


if __name__ == "__main__":
    main(prog_name="python -m bench.mutants")
