"""The checker with its default options beside Porcupine, on the same histories in one run.

A figure is the number of times that the checker is as fast as Porcupine: the ratio of the medians
of processor time. A history that Porcupine does not answer within the limit counts as the limit;
one that the checker does not answer makes the figure 0. Two answers that differ end the run. An
explanation of an illegal history, which Porcupine does not have, is computed when it is read, so it
is in the rows of the command line only.
"""

from __future__ import annotations

import dataclasses
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Benchmark
from benchmarks.peers import porcupine
from benchmarks.peers.porcupine.histories import Shape, lock, shapes
from benchmarks.peers.porcupine.models import python_shapes
from pulsar_ml.harness.histories.files import save_history
from pulsar_ml.harness.linearize import DEFAULT, UNKNOWN, check
from pulsar_ml.harness.models import MODELS, Lock

LIMIT = 5.0  # seconds for each history of up to 100,000 operations


class Compared(NamedTuple):
    """Medians in milliseconds of one row, and the unanswered histories of both."""

    ours: float
    theirs: float
    unanswered: int
    unanswered_by_porcupine: int

    @property
    def times(self) -> float:
        """The number of times that the checker is as fast."""
        return 0.0 if self.unanswered else self.theirs / self.ours


@cache
def warm() -> None:
    """Check a history once, so that no row has the first use of a module."""
    check(lock(0, clients=2, operations=8), Lock(), options=DEFAULT)


def compared(shape: Shape) -> Compared:
    """Check the histories of a shape with both."""
    warm()
    histories = shape.histories()
    limit = LIMIT * max(1, len(histories[0]) / 100_000)
    theirs = porcupine.answers(histories, shape.peer, limit)
    options = dataclasses.replace(DEFAULT, timeout=limit, partition=shape.partition)
    taken, unanswered = [], 0
    for history, other in zip(histories, theirs, strict=True):
        started = time.process_time()
        answer = check(history, shape.model(), options=options).answer
        taken.append((time.process_time() - started) * 1e3)
        unanswered += answer == UNKNOWN
        if UNKNOWN not in (answer, other.answer) and answer != other.answer:
            raise RuntimeError(f"{shape.name}: {answer}, but Porcupine answers {other.answer}")
    shape.kept.clear()
    return Compared(
        statistics.median(taken),
        statistics.median(other.milliseconds for other in theirs),
        unanswered,
        sum(other.answer == UNKNOWN for other in theirs),
    )


def times(shape: Shape) -> float:
    return compared(shape).times


def command_line(name: str) -> float:
    """Return the milliseconds of processor time of the command on the first history of a shape."""
    shape = next(one for one in shapes() if one.name == name)
    model = next(model for model, kind in MODELS.items() if kind is shape.model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        save_history(shape.histories()[0], path)
        shape.kept.clear()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "pulsar_ml", "linearize", str(path), "--model", model]
        done = subprocess.run(command, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the command ended with exit code {done.returncode}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1e3


COMMAND_LINES = (
    "compare-and-set register, 5 clients, 100 operations, legal",
    "compare-and-set register, 5 clients, 100 operations, one flip",
    "compare-and-set register, 10 clients, 10000 operations, legal",
    "map of 10 keys, 50 clients, 1300 operations, one flip",
)


def rows() -> Sequence[Benchmark]:
    """Return the rows; none without Go."""
    if not porcupine.available():
        print(porcupine.WITHOUT_GO, file=sys.stderr)
        return ()
    beside = [
        Benchmark(f"porcupine: {shape.name}", partial(times, shape), "x", 2, True, enough=0.2)
        for shape in shapes()
    ]
    about = "processor time, with the start of Python, the explanation and its text"
    commands = [
        Benchmark(
            f"porcupine: command line, {name}", partial(command_line, name), "ms", about=about
        )
        for name in COMMAND_LINES
    ]
    return (*commands, *beside)


def rows_of_python_models() -> Sequence[Benchmark]:
    """Return the rows of models in Python, as a user would write them; none without Go."""
    if not porcupine.available():
        return ()
    return [
        Benchmark(f"porcupine: {shape.name}", partial(times, shape), "x", 1, True, enough=0.2)
        for shape in python_shapes()
    ]


BENCHMARKS = (*rows(), *rows_of_python_models())


def main() -> None:
    """Print one line for each row whose name has all words of the command line."""
    if not porcupine.available():
        sys.exit(porcupine.WITHOUT_GO)
    for shape in (*shapes(), *python_shapes()):
        if all(word in shape.name for word in sys.argv[1:]):
            found = compared(shape)
            mark = " " if found.times >= (1 if shape.name.startswith("Python") else 2) else "<"
            print(
                f"{mark} {shape.name:68} {found.ours:10.2f} {found.theirs:10.2f} ms "
                f"{found.times:7.1f} x  unanswered {found.unanswered} "
                f"{found.unanswered_by_porcupine}",
                flush=True,
            )


if __name__ == "__main__":
    main()
