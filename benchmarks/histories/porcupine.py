"""The checker with its default options beside Porcupine, on the same histories in one run.

A figure is the number of times that the checker is as fast as Porcupine: the ratio of the medians
of processor time, and of some fifty checks of histories that take a few milliseconds. A history
that Porcupine does not answer in time counts with what it took until then; one that the checker
does not answer makes the figure 0. Two answers that differ end the run.
An explanation of an illegal history, which Porcupine does not have, is computed when it is read, so
it is in the rows of the command line only.

``python -m benchmarks linearize`` has these rows behind its own. ``python -m
benchmarks.histories.porcupine WORD...`` measures once those whose name has all words, and prints
milliseconds.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import Benchmark
from benchmarks.peers import porcupine
from benchmarks.peers.porcupine.histories import lock
from benchmarks.peers.porcupine.models import python_shapes
from benchmarks.peers.porcupine.shapes import Shape, shapes
from pulsar_ml.harness.histories.files import save_history
from pulsar_ml.harness.linearize import DEFAULT, UNKNOWN, check
from pulsar_ml.harness.models import MODELS, Lock
from pulsar_ml.processors import processor_count

LIMIT = 5.0  # seconds of an idle machine for each history of up to 100,000 operations
QUICK = 10.0  # milliseconds of Porcupine: histories that take less are checked MANY times in all
MANY = 50
MOST_FILES = 3  # for the command line
COMMAND_LIMIT = 30.0  # like LIMIT, with the start of Python, the reading and the explanation
ABOUT_COMMANDS = "processes that read a file, with the start of Python and the explanation"


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


def of_clock(seconds: float) -> float:
    """Return a limit of the clock that is as long on a busy machine as ``seconds`` on an idle one.

    Both checkers stop by the clock, so that without it a row's answers would depend on the load.
    """
    return seconds * max(1.0, 2 * os.getloadavg()[0] / processor_count())


@cache
def warm() -> None:
    """Check a history once, so that no row has the first use of a module."""
    check(lock(0, clients=2, operations=8), Lock(), options=DEFAULT)


def compared(shape: Shape) -> Compared:
    """Check the histories of a shape with both."""
    warm()
    histories = shape.histories()
    limit = of_clock(LIMIT * max(1, len(histories[0]) / 100_000))
    theirs = porcupine.answers(histories, shape.peer, limit)
    if len(histories) < MANY and max(one.milliseconds for one in theirs) < QUICK:
        histories = histories * (MANY // len(histories))
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


def times(compare: Callable[[], Compared]) -> float:
    return compare().times


def of_command(shape: Shape) -> Compared:
    """Check the histories of a shape with the command line, beside Porcupine's whole program.

    Both processes read a file: ours a JSON Lines file, Porcupine's its own lines.
    """
    histories = shape.histories()[:MOST_FILES]
    ours, theirs, unanswered, unanswered_by_porcupine = [], [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path, line = Path(folder) / "history.jsonl", Path(folder) / "history.txt"
        for history in histories:
            save_history(history, path)
            line.write_text(porcupine.line(history, shape.peer) + "\n")
            limit = str(of_clock(COMMAND_LIMIT))
            answer, taken = of_process([*command_of(shape, path), "--timeout", limit])
            ours.append(taken)
            other, taken = of_process([str(porcupine.program()), str(of_clock(LIMIT))], line)
            theirs.append(taken)
            if answer.returncode not in (0, 1, 5):
                raise RuntimeError(f"the command ended with exit code {answer.returncode}")
            unanswered += answer.returncode == 5
            unanswered_by_porcupine += other.stdout.startswith("Unknown")
    shape.kept.clear()
    return Compared(
        statistics.median(ours), statistics.median(theirs), unanswered, unanswered_by_porcupine
    )


def command_of(shape: Shape, path: Path) -> list[str]:
    """Return the command that checks the history in a file."""
    model = next(model for model, kind in MODELS.items() if kind is shape.model)
    return [sys.executable, "-m", "pulsar_ml", "linearize", str(path), "--model", model]


def of_process(
    command: Sequence[str], text: Path | None = None
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a process with the standard input ``text``; return its milliseconds of processor time.

    Python finds the bytecode of the package, as in an installation.
    """
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(text or os.devnull) as source:
        done = subprocess.run(
            command, stdin=source, capture_output=True, text=True, env=environment
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


COMMAND_LINES = (
    *(
        f"{register}, 5 clients, {operations} operations, {kind}"
        for register in ("register", "compare-and-set register")
        for operations in (100, 10_000, 100_000)
        for kind in ("legal", "one flip")
    ),
    "map of 10 keys, 10 clients, 300 operations, one flip",
    "map of 10 keys, 50 clients, 1300 operations, legal",
    "map of 10 keys, 50 clients, 1300 operations, one flip",
    "map of 1000 keys, 50 clients, 100000 operations, legal",
    "map of 1000 keys, 50 clients, 100000 operations, one flip",
    "queue of 5 values, 5 clients, 200 operations, legal",
    "queue of 5 values, 5 clients, 1000 operations, one flip",
    "stack of 5 values, 5 clients, 1000 operations, one flip",
)


class Row(NamedTuple):
    """One row: the histories of a shape, the way to check them, and the least figure wanted."""

    name: str
    compare: Callable[[], Compared]
    target: float
    about: str = ""


def rows() -> Iterator[Row]:
    """All rows: the command line, the default options, and models in Python."""
    every = shapes()
    for name in COMMAND_LINES:
        shape = next(one for one in every if one.name == name)
        yield Row(f"command line, {name}", partial(of_command, shape), 2, ABOUT_COMMANDS)
    for shape in every:
        yield Row(shape.name, partial(compared, shape), 2)
    for shape in python_shapes():
        yield Row(shape.name, partial(compared, shape), 1)


def benchmarks() -> Iterator[Benchmark]:
    """All rows as benchmarks; none without Go."""
    if not porcupine.available():
        print(porcupine.WITHOUT_GO, file=sys.stderr)
        return
    for row in rows():
        name = f"linearize: beside Porcupine: {row.name}"
        run = partial(times, row.compare)
        yield Benchmark(name, run, "x", row.target, True, about=row.about, enough=0.2)


BENCHMARKS = tuple(benchmarks())


def chosen_rows(rows: Iterable[Any], about: str | None) -> list[Any]:
    """Return those whose names have all words of the command line, which ``about`` explains.

    Ends the process where there are none, and without Go.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n\n")[0])
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="of the names of the rows to measure"
    )
    words = parser.parse_args().words
    every = list(rows)
    found = [row for row in every if all(word in row.name for word in words)]
    if not found:
        parser.error(
            f"no row has all of {words} in its name; of {len(every)} the first is {every[0].name!r}"
        )
    if not porcupine.available():
        sys.exit(porcupine.WITHOUT_GO)
    return found


def main() -> None:
    """Print one line for each row whose name has all words of the command line."""
    for row in chosen_rows(rows(), __doc__):
        found = row.compare()
        print(
            f"{'<' if found.times < row.target else ' '} {row.name:76} {found.ours:10.2f} "
            f"{found.theirs:10.2f} ms {found.times:7.1f} x  "
            f"unanswered {found.unanswered} {found.unanswered_by_porcupine}",
            flush=True,
        )


if __name__ == "__main__":
    main()
