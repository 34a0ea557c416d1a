"""``python -m bench.mutants``: drop or weaken every synchronization instruction of clean modules, lint each mutant."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

import ptxlint
from bench.corpus.cache import Cache, default_root
from bench.mutants.campaign import Campaign, contradicts, excused
from bench.mutants.modules import modules
from bench.mutants.mutant import Mutant, mutants, sample
from bench.mutants.redundant import read_redundant
from bench.mutants.sets import SETS, MutantSet
from bench.mutants.table import figures, missed_line, missed_lines, redundant_lines, render
from bench.mutants.trial import MISSED, Outcome, has_ptxas
from bench.preload import import_everything
from ptxlint import registry
from ptxlint.lint import Options

_TOLD_EVERY = 250


@click.command(help=__doc__)
@click.option("--set", "chosen", type=click.Choice(list(SETS)), default="sample", show_default=True)
@click.option("--corpus", "root", type=click.Path(file_okay=False, path_type=Path), help="Folder of the corpus.")
@click.option("--journal", type=click.Path(file_okay=False, path_type=Path), help="Folder of what earlier runs found.")
@click.option("--modules", "pattern", default="*", help="Glob over project/module; fixtures/NAME.VARIANT are ours.")
@click.option("--operator", "operators", multiple=True, help="Only this operator (repeatable).")
@click.option("--limit", type=click.IntRange(1), default=60, show_default=True, help="Sampled from a module, at most.")
@click.option("--first", type=click.IntRange(1), help="Only so many modules.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes at a time.")
@click.option("--seconds", type=float, default=300, show_default=True, help="Time limit of a mutant.")
@click.option("--slowest", type=float, default=20, show_default=True, help="Leave out modules that take longer.")
@click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there.")
def main(
    chosen: str,
    root: Path | None,
    journal: Path | None,
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
    began = time.monotonic()
    corpus = root or default_root()
    wanted = SETS[chosen]
    campaign = Campaign(journal or corpus / "mutants", jobs, seconds, Options(registry.select()))
    found = list(modules(Cache(corpus), chosen, pattern))[:first]
    texts = _clean({name: path.read_text(encoding="utf-8") for name, path in found}, campaign, slowest)
    tried = [mutant for name, text in texts.items() for mutant in _mutants(name, text, wanted, operators, limit)]
    click.echo(f"{len(tried)} mutants of {len(texts)} modules")
    if not has_ptxas():
        click.echo("no ptxas on the PATH: mutants that the journal does not know are taken for legal", err=True)
    outcomes = _tried(tried, campaign)
    summary = figures(outcomes)
    click.echo(render(summary, outcomes))
    for redundant in redundant_lines(outcomes):
        places = ", ".join(map(str, redundant["lines"]))
        click.echo(f"redundant {redundant['operator']} {redundant['module']}:{places}: {redundant['reason']}")
    click.echo(_cost(outcomes, time.monotonic() - began, jobs))
    if out is not None:
        out.write_text(json.dumps(_record(summary, outcomes, chosen), indent=1) + "\n", encoding="utf-8")


def _clean(texts: Mapping[str, str], campaign: Campaign, slowest: float) -> dict[str, str]:
    """The modules that are mutated; why the others are not is printed."""
    kept = {}
    for name, original in campaign.originals(texts).items():
        if original.blemish or original.seconds > slowest:
            click.echo(f"left out: {name}: {original.seconds:.1f} s {original.blemish[:200]}")
        else:
            kept[name] = texts[name]
    return kept


def _mutants(name: str, text: str, wanted: MutantSet, operators: tuple[str, ...], limit: int) -> list[Mutant]:
    meant = wanted.operators & set(operators) if operators else wanted.operators
    found = [mutant for mutant in mutants(name, text) if mutant.operator in meant]
    return found if wanted.is_complete else sample(found, limit)


def _tried(tried: list[Mutant], campaign: Campaign) -> dict[Mutant, Outcome]:
    """The outcomes, in the order of the mutants; missed ones are told as they come."""
    entries = read_redundant()
    began = time.monotonic()
    outcomes: dict[Mutant, Outcome] = {}
    for mutant, outcome in campaign.outcomes(tried):
        outcomes[mutant] = excused(mutant, outcome, entries)
        if outcomes[mutant].state == MISSED:
            click.echo(missed_line(mutant, outcome), err=True)
        if contradicts(mutant, outcome, entries):
            click.echo(f"found, though argued to be redundant: {missed_line(mutant, outcome)} {outcome.rules}")
        if len(outcomes) % _TOLD_EVERY == 0:
            click.echo(f"{len(outcomes)} of {len(tried)}, {time.monotonic() - began:.0f} s", err=True)
    return {mutant: outcomes[mutant] for mutant in tried}


def _cost(outcomes: Mapping[Mutant, Outcome], elapsed: float, jobs: int) -> str:
    ptxas = sum(outcome.ptxas_seconds for outcome in outcomes.values())
    linting = sum(outcome.seconds for outcome in outcomes.values())
    return f"{elapsed:.0f} s with {jobs} jobs; ptxas {ptxas:.0f} s, ptxlint {linting:.0f} s of these mutants together"


def _record(summary: Mapping[str, Any], outcomes: Mapping[Mutant, Outcome], chosen: str) -> dict[str, Any]:
    wanted = SETS[chosen]
    record = {"ptxlint": ptxlint.__version__, "set": chosen, "mutated": wanted.title, **summary}
    record["missed ones"] = missed_lines(outcomes)
    if wanted.is_complete:
        record["kernels"] = sorted({mutant.module for mutant in outcomes})
        record["redundant ones"] = redundant_lines(outcomes)
    return record


if __name__ == "__main__":
    main(prog_name="python -m bench.mutants")
