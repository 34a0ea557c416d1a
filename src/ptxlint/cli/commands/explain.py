"""`ptxlint explain`: all that is to be said about one rule."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from ptxlint import registry
from ptxlint.explanation import Explanation


def _completions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    return [CompletionItem(rule.name) for rule in registry.rules() if rule.name.startswith(incomplete)]


@click.command()
@click.argument("rule", shell_complete=_completions)
def command(rule: str) -> None:
    """Explain RULE, given by name or code: what it finds and why, right and wrong PTX, the section of the ISA."""
    click.echo(Explanation.of(registry.named(rule)).text())
