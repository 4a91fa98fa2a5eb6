"""The hash seed under which code of the interpreter runs: it decides the order of a set of strings.

Records keep it, and messages say how to repeat what ran under it.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "PYTHONHASHSEED"
RANDOM = "random"  # a hash seed that was drawn, and has no name
FIXED = "0"


def seed_of(value: str | None, *, ignored: bool) -> str:
    """Return the hash seed that a value of PYTHONHASHSEED stands for; ``ignored`` by python -E."""
    return str(int(value)) if value and value.isdecimal() and not ignored else RANDOM


# Read once: a program may change its environment, and its hashes stay.
OF_PROCESS = seed_of(os.environ.get(VARIABLE), ignored=bool(sys.flags.ignore_environment))


def hash_seed() -> str:
    """Return the value of PYTHONHASHSEED that gives the hashes of this process, or "random"."""
    return OF_PROCESS


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


def other_hashes(recorded: str) -> str:
    """Explain in one clause that a record's hashes may not be those of this process; or "".

    ``recorded`` is the hash seed of the record; "" for code that runs without the interpreter.
    """
    if recorded == RANDOM:
        return (
            "the hash seed of the record was drawn at random and has no name, so the order of sets "
            f"of strings may differ: record the failure again under {assignment(recorded)}"
        )
    if recorded and recorded != hash_seed():
        return (
            "the order of sets of strings may differ, which follows the hash seed: repeat it under "
            f"{assignment(recorded)}"
        )
    return ""
