"""Runs the command ``pulsar-ml`` under a fixed hash seed, so that its records can be repeated.

The order of a set of strings follows the hash seed, which Python draws anew in each process unless
PYTHONHASHSEED is set. A process has its hash seed from its beginning: the command starts itself
again.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "PYTHONHASHSEED"
FIXED = "0"
RESTARTS: list[str] = []  # the seeds that this process may be started again with: none, or any


def begin_command() -> None:
    """Start this process, which is the command's, again under PYTHONHASHSEED=0.

    A value that the user has set stays, "random" too.
    """
    RESTARTS.append("any")
    if not os.environ.get(VARIABLE):
        restart_under(FIXED)


def restart_under(seed: str) -> None:
    """Start the command again under ``seed`` unless it has it, before it has printed anything.

    The arguments, the process's number and its exit code stay. Without effect for a seed without a
    name, in a process that is not the command's, and under python -E, which ignores the variable.
    """
    other = is_named(seed) and seed != os.environ.get(VARIABLE)
    if other and RESTARTS and not sys.flags.ignore_environment:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment(seed))


def is_named(seed: str) -> bool:
    """Return True for a number that PYTHONHASHSEED may have."""
    return seed.isascii() and seed.isdecimal() and int(seed[:11]) < 2**32


def environment(seed: str) -> dict[str, str]:
    """Return the environment of a child process that has a record's hash seed, if it has a name."""
    return {**os.environ, VARIABLE: seed} if is_named(seed) else dict(os.environ)
