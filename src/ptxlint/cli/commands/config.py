"""`ptxlint config`: the settings that apply, and where each comes from."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from ptxlint import config
from ptxlint.launch import Launch

_KEYS = {"launches": "launch"}
"""The keys of settings that are not called like their fields."""


@click.command()
@click.option("--config", "config_path", metavar="FILE", help="Configuration file, instead of the nearest.")
def command(config_path: str | None) -> None:
    """Print the settings that apply in the working folder, and where each comes from."""
    found = config.load(config_path) if config_path else config.discover()
    default = config.Config()
    click.echo(f"file: {found.file or 'none'}")
    for field in fields(found):
        if field.name != "file":
            value = getattr(found, field.name)
            origin = "default" if value == getattr(default, field.name) else "file"
            click.echo(f"{_KEYS.get(field.name, field.name.replace('_', '-')):<20} {_shown(value):<40} ({origin})")


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    if isinstance(value, Launch):
        said = {field.name: getattr(value, field.name) for field in fields(value)}
        return _shown({name: facts for name, facts in said.items() if facts})
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)
