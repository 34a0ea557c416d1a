"""`ptxlint rules`: the list of rules."""

from __future__ import annotations

import sys

import click

from ptxlint import registry
from ptxlint.explanation import Explanation


@click.command()
@click.option("--format", "format_name", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(format_name: str) -> None:
    """List the rules with their codes; those in parentheses are off unless selected."""
    explanations = [Explanation.of(rule) for rule in registry.rules()]
    if format_name == "json":
        import json

        json.dump([explanation.document() for explanation in explanations], sys.stdout, indent=2)
        click.echo()
        return
    width = max((len(explanation.name) for explanation in explanations), default=0) + 2
    for explanation in explanations:
        name = explanation.name if explanation.is_default else f"({explanation.name})"
        click.echo(f"{explanation.code}  {name:<{width}}  {explanation.severity:<7}  {explanation.summary}")
