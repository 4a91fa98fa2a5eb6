"""Prints for people. No text from a file or a program under test controls the terminal.

Every command prints through :func:`echo`, or through ``new_console`` of ``console.py``, which needs
Rich.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

import click

from pulsar_ml.terminal.printable import printable

CLOSED = 128 + signal.SIGPIPE  # the exit code of a program that SIGPIPE ended


def echo(text: str = "", *, err: bool = False, nl: bool = True, colour: str = "") -> None:
    """Print a text to standard output, or with ``err`` to standard error.

    ``colour`` is left out where the output is no terminal, and where NO_COLOR is set.
    """
    shown = printable(text)
    if colour and not os.environ.get("NO_COLOR"):
        shown = click.style(shown, fg=colour)
    try:
        click.echo(shown, err=err, nl=nl)
    except BrokenPipeError:
        leave_closed_output()


def leave_closed_output() -> NoReturn:
    """End the command silently, because the reader of its output, such as ``head``, has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # what is still buffered
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    raise SystemExit(CLOSED)
