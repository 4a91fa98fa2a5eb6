"""The console for tables: as wide as the terminal, 80 columns elsewhere."""

from __future__ import annotations

import json

import click
from rich.console import Console


def console() -> Console:
    """The console of standard output."""
    return Console(highlight=False)


def print_json(content: object) -> None:
    click.echo(json.dumps(content, indent=2))
