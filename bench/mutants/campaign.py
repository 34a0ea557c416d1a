"""Trying mutants in processes of their own, with what is known of them kept in journals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.forked import Failure, each
from bench.mutants.journal import Journal, code_digest
from bench.mutants.mutant import Mutant
from bench.mutants.redundant import Entry, argument
from bench.mutants.trial import (
    FOUND,
    ILLEGAL,
    MISSED,
    REDUNDANT,
    Original,
    Outcome,
    assembled,
    has_ptxas,
    judge,
    original,
)
from ptxlint.lint import Options


@dataclass(frozen=True, slots=True)
class Campaign:
    """How mutants are tried: processes at a time, seconds for each, and the folder of the journals."""

    folder: Path
    jobs: int
    seconds: float
    options: Options

    def originals(self, texts: Mapping[str, str]) -> dict[str, Original]:
        """What ptxlint says of each module itself, by its name, in the order of the names given."""
        work = partial(_original, texts=texts, options=self.options)
        ended = dict(each(work, list(texts), self.jobs, self.seconds))
        return {name: _or_blemish(ended[name], self.seconds) for name in texts}

    def outcomes(self, chosen: Sequence[Mutant]) -> Iterator[tuple[Mutant, Outcome]]:
        """Every mutant with its outcome: those that the journals know first, then the others as they end."""
        legality = Journal(self.folder / "ptxas.jsonl")
        verdicts = Journal(self.folder / f"{code_digest()}.jsonl")
        can_assemble = has_ptxas()
        fresh: list[Mutant] = []
        for mutant in sorted(chosen, key=lambda mutant: mutant.key):
            kept = _kept(mutant, legality, verdicts, can_assemble)
            if kept is None:
                fresh.append(mutant)
            else:
                yield mutant, kept
        work = partial(_try, legality=frozenset(legality.known), can_assemble=can_assemble, options=self.options)
        for mutant, result in each(work, fresh, self.jobs, self.seconds):
            ruled, outcome = (None, Outcome(MISSED, (), result.reason)) if isinstance(result, Failure) else result
            if ruled is not None and legality.get(mutant.key) is None:
                legality.put(mutant.key, ruled)
            if outcome.state != ILLEGAL:
                verdicts.put(mutant.key, outcome)
            yield mutant, outcome


def excused(mutant: Mutant, outcome: Outcome, entries: Sequence[Entry]) -> Outcome:
    """The outcome, redundant when the mutant was missed and there is an argument for it."""
    reason = argument(mutant, entries) if outcome.state == MISSED else None
    return outcome if reason is None else replace(outcome, state=REDUNDANT, reason=reason)


def contradicts(mutant: Mutant, outcome: Outcome, entries: Sequence[Entry]) -> bool:
    """Whether a mutant was found that an argument calls no fault."""
    return outcome.state == FOUND and argument(mutant, entries) is not None


def _original(name: str, texts: Mapping[str, str], options: Options) -> Original:
    return original(texts[name], options)


def _or_blemish(result: Original | Failure, seconds: float) -> Original:
    return Original(result.reason, seconds) if isinstance(result, Failure) else result


def _kept(mutant: Mutant, legality: Journal, verdicts: Journal, can_assemble: bool) -> Outcome | None:
    """What the journals know of the mutant; None when it has to be tried."""
    ruled = legality.get(mutant.key)
    if ruled is not None and ruled.state == ILLEGAL:
        return ruled
    return None if ruled is None and can_assemble else verdicts.get(mutant.key)


def _try(
    mutant: Mutant, legality: frozenset[str], can_assemble: bool, options: Options
) -> tuple[Outcome | None, Outcome]:
    """What ptxas says of a mutant, unless its key is in `legality` and it is legal, and the mutant's fate."""
    ruled = assembled(mutant) if can_assemble and mutant.key not in legality else None
    if ruled is not None and ruled.state == ILLEGAL:
        return ruled, ruled
    outcome = judge(mutant, options)
    return ruled, replace(outcome, ptxas_seconds=ruled.ptxas_seconds if ruled is not None else 0.0)
