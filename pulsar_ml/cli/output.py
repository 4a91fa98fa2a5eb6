"""The console for tables: as wide as the terminal, 80 columns elsewhere."""

from __future__ import annotations

import json

from rich.console import Console

from pulsar_ml.terminal.console import new_console
from pulsar_ml.terminal.printer import echo


def console() -> Console:
    """The console of standard output."""
    return new_console()


def print_json(content: object) -> None:
    echo(json.dumps(content, indent=2))
