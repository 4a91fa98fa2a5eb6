"""Prints for people. No text from a file or a program under test controls the terminal.

Every command prints through :func:`echo`, or through ``new_console`` of ``console.py``, which needs
Rich.
"""

from __future__ import annotations

import click

from pulsar_ml.terminal.printable import printable


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text to standard output, or with ``err`` to standard error."""
    click.echo(printable(text), err=err, nl=nl)
