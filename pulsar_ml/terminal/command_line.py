"""Command lines of ``pulsar-ml`` that messages print, as they work in the user's shell."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = "pulsar-ml"
DEFAULT_SUITES = "pulsar_ml.suites.registry"  # the module of the suites that come with the package


def command_line(*words: str) -> str:
    """``pulsar-ml`` with these arguments, quoted for the shell."""
    return f"{program()} {shlex.join(words)}"


def program() -> str:
    """The words with which the user's shell starts this installation of ``pulsar-ml``.

    Without a console script, as in a checkout, it is ``python -m pulsar_ml``.
    """
    script = Path(sys.executable).with_name(PROGRAM)
    if script.is_file():
        return _shortest(PROGRAM, script)
    return f"{_shortest('python', Path(sys.executable))} -m pulsar_ml"


def _shortest(name: str, path: Path) -> str:
    found = shutil.which(name)
    if found and os.path.abspath(found) == os.path.abspath(path):
        return name
    return shlex.quote(short_path(path))


def short_path(path: Path) -> str:
    """The path relative to the working directory when it lies below; links are not resolved."""
    absolute = Path(os.path.abspath(path))
    here = Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def suites_words(suites: str | None) -> tuple[str, ...]:
    """The ``--suites`` option of a command line; nothing for the default suites."""
    return () if suites in (None, "", DEFAULT_SUITES) else ("--suites", str(suites))


def replay_command(record: Path, suites: str | None = None) -> str:
    """The command line that runs a record again."""
    return command_line("replay", short_path(record), *suites_words(suites))
