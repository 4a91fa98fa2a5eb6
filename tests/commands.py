"""Calls ``pulsar-ml`` in this process, as tests of commands do."""

from __future__ import annotations

from typing import NamedTuple

from click.testing import CliRunner

from pulsar_ml.cli import main


class Called(NamedTuple):
    """The exit code and the two outputs of a command."""

    code: int
    out: str
    err: str


def call(*arguments: str) -> Called:
    """Runs ``pulsar-ml`` with these arguments. An exception that no command reports is raised."""
    done = CliRunner().invoke(main, [*arguments], catch_exceptions=False)
    return Called(done.exit_code, done.stdout, done.stderr)
