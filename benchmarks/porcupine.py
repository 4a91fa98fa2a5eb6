"""The checker with its default options beside Porcupine, on the same histories in one run.

A figure is the number of times that the checker is as fast as Porcupine: the ratio of the medians
of processor time. A history that Porcupine does not answer within the limit counts as the limit;
one that the checker does not answer makes the figure 0. Two answers that differ end the run.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.histories import Shape, shapes
from benchmarks.measure import Benchmark
from benchmarks.peers import porcupine
from pulsar_ml.harness.linearize import DEFAULT, UNKNOWN, check

LIMIT = 5.0  # seconds for each history


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


def compared(shape: Shape) -> Compared:
    """Check the histories of a shape with both."""
    histories = shape.histories()
    theirs = porcupine.answers(histories, shape.peer, LIMIT)
    options = dataclasses.replace(DEFAULT, timeout=LIMIT, partition=shape.partition)
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


def rows() -> Sequence[Benchmark]:
    """Return the rows; none without Go."""
    if not porcupine.available():
        print(porcupine.WITHOUT_GO, file=sys.stderr)
        return ()
    run: Callable[[Shape], float] = times
    return tuple(
        Benchmark(f"porcupine: {shape.name}", partial(run, shape), "x", 2, True, enough=0.2)
        for shape in shapes()
    )


BENCHMARKS = rows()


def main() -> None:
    """Print one line for each row whose name has all words of the command line."""
    for shape in shapes():
        if all(word in shape.name for word in sys.argv[1:]):
            found = compared(shape)
            mark = " " if found.times >= 2 else "<"
            print(
                f"{mark} {shape.name:68} {found.ours:10.2f} {found.theirs:10.2f} ms "
                f"{found.times:7.1f} x  unanswered {found.unanswered} {found.unanswered_by_porcupine}",
                flush=True,
            )


if __name__ == "__main__":
    main()
