"""Porcupine, compiled by Go at first use: its answer and processor time for each history."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pulsar_ml.harness.histories.history import History

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parents[2] / "build" / "peers" / "porcupine-check"
WITHOUT_GO = (
    "Go is not installed, so the rows beside Porcupine are left out; install Go 1.21 or later to "
    "see them"
)
KEYED = ("map", "map together", "set", "multiset")  # models of which a call has a key
ANSWERS = {"Ok": "legal", "Illegal": "illegal", "Unknown": "unknown"}


class Answered(NamedTuple):
    """An answer, and the milliseconds of processor time that it took."""

    answer: str
    milliseconds: float


def available() -> bool:
    """Return True if Go is there to compile Porcupine."""
    return shutil.which("go") is not None


@cache
def program() -> Path:
    """Return the compiled program; the version of Porcupine is that of go.mod."""
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-buildvcs=false", "-o", str(PROGRAM), "."]
    subprocess.run(command, cwd=HERE, env={**os.environ, "GOFLAGS": "-mod=mod"}, check=True)
    return PROGRAM


def word(value: object) -> object:
    """Return a value as the program reads it: truth values are numbers, None is -1."""
    if value is None:
        return -1
    return int(value) if isinstance(value, bool) else value


def line(history: History, model: str) -> str:
    """Return a history as a line for the program."""
    keyed, rows = model in KEYED, []
    for index in range(len(history)):
        call, record = history.call(index), history.records[index]
        words = [word(one) for one in call.arguments]
        key = words.pop(0) if keyed else -1
        words += [-1] * (2 - len(words))
        thread = int(record["thread"])
        if model == "lock":
            words[1] = thread
        ended = not record["ending"]
        result = word(call.result) if ended else None
        returned = int(record["returned"]) if ended else -1
        rows.append([thread, call.name, key, *words, result, int(record["invoked"]), returned])
    return json.dumps({"model": model, "operations": rows})


def answers(histories: Sequence[History], model: str, limit: float) -> list[Answered]:
    """Check each history for at most ``limit`` seconds."""
    text = "".join(line(history, model) + "\n" for history in histories)
    done = subprocess.run(
        [str(program()), str(limit)], input=text, capture_output=True, text=True, check=True
    )
    rows = [row.split() for row in done.stdout.splitlines()]
    return [Answered(ANSWERS[answer], float(taken)) for answer, taken in rows]
