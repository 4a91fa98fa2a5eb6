"""The hash seed of a process, which decides the order of a set of strings.

Python draws it anew in each process unless the variable PYTHONHASHSEED is set. The command
``pulsar-ml`` starts itself again with PYTHONHASHSEED=0 when the variable is not set, so that a
record that it writes can be repeated by another process.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "PYTHONHASHSEED"
RANDOM = "random"  # a hash seed that was drawn, and has no name
FIXED = "0"


class _State:
    restarts = False  # this process is the command's, which may start itself again
    seed = ""


def seed_of(value: str | None, *, ignored: bool) -> str:
    """Return the hash seed that a value of PYTHONHASHSEED stands for; ``ignored`` by python -E."""
    if ignored or not value or not value.isdecimal():
        return RANDOM
    return str(int(value))


# Read when the process begins: a program may change its environment, and its hashes stay.
_State.seed = seed_of(os.environ.get(VARIABLE), ignored=bool(sys.flags.ignore_environment))


def hash_seed() -> str:
    """Return the value of PYTHONHASHSEED that gives the hashes of this process, or "random"."""
    return _State.seed


def assignment(seed: str) -> str:
    """Return the words that set a hash seed on a command line: ``PYTHONHASHSEED=7``."""
    return f"{VARIABLE}={FIXED if seed == RANDOM else seed}"


def seed_text(seed: str) -> str:
    """Name a hash seed, and the way to repeat what ran under it, in one clause."""
    if seed == RANDOM:
        return (
            "the hash seed was drawn at random: if the order of a set of strings matters here, "
            f"this may not come again; run it with {assignment(seed)}"
        )
    return f"hash seed: {assignment(seed)}"


def begin_command() -> None:
    """Start this process, which is the command's, again under PYTHONHASHSEED=0.

    A value that the user has set stays, "random" too.
    """
    _State.restarts = True
    if not os.environ.get(VARIABLE):
        restart_under(FIXED)


def restart_under(seed: str) -> None:
    """Start the command again under ``seed`` unless it has it, before it has printed anything.

    The arguments, the process's number and its exit code stay. Without effect for "" and "random",
    in a process that is not the command's, and under python -E, which ignores the variable.
    """
    if seed in ("", RANDOM, _State.seed) or not _State.restarts or sys.flags.ignore_environment:
        return
    os.execve(
        sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, VARIABLE: seed}
    )


def other_hashes(recorded: str) -> str:
    """Explain in one clause that a record's hashes may not be those of this process; or "".

    ``recorded`` is the hash seed of the record; "" for code that runs without the interpreter.
    """
    if recorded == RANDOM:
        return (
            "the hash seed of the record was drawn at random and has no name, so the order of sets "
            f"of strings may differ: record the failure again under {assignment(recorded)}"
        )
    if recorded and recorded != _State.seed:
        return (
            "the order of sets of strings may differ, which follows the hash seed: repeat it under "
            f"{assignment(recorded)}"
        )
    return ""
