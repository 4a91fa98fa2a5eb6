"""Floors of the rows beside Porcupine: what a check takes whatever its search does.

``python -m benchmarks.histories.floors WORD...`` prints a line for each row whose name has all
words: our milliseconds, those of the floor, Porcupine's, and how many times as fast as Porcupine a
check would be that took the floor alone. The floor is

* a check of one operation;
* of a row with a model in Python, also the calls of ``step`` and ``partition`` that the check asks
  for, one after the other, with their calls decoded and their states there;
* of the command line, the start of the command (that of a file of one operation) and the reading of
  the file.

Rows are measured as ``benchmarks/histories/porcupine.py`` does.
"""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.histories.porcupine import (
    COMMAND_LINES,
    MOST_FILES,
    Compared,
    chosen_rows,
    command_of,
    compared,
    of_command,
    of_process,
)
from benchmarks.peers.porcupine.models import python_shapes
from benchmarks.peers.porcupine.shapes import Shape, shapes
from pulsar_ml.harness.histories.files import load_history, save_history
from pulsar_ml.harness.histories.history import Call, History
from pulsar_ml.harness.linearize import DEFAULT, check
from pulsar_ml.harness.models.model import Keyed

TIMES = 5  # each floor is measured so often


class Row(NamedTuple):
    name: str
    compare: Callable[[], Compared]
    floor: Callable[[], float]


def milliseconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3


class Questions:
    """A model that keeps what is asked of ``step`` and ``partition``."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.kept: list[tuple[Any, Call]] = []
        self.sorted: list[Call] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.model, name)
        return partial(self.part_of, found) if name == "partition" else found

    def part_of(self, partition: Callable[[Call], Any], call: Call) -> Any:
        self.sorted.append(call)
        return partition(call)

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        self.kept.append((state, call))
        return self.model.step(state, call)  # type: ignore[no-any-return]


def bare_steps(shape: Shape) -> float:
    """Return the median time of the model's own steps in the checks of a shape's histories."""

    def of(history: History) -> float:
        model = shape.model()
        keyed = type(model) is Keyed
        questions = Questions(model.model if keyed else model)
        options = dataclasses.replace(DEFAULT, partition=shape.partition)
        check(history, Keyed(questions) if keyed else questions, options=options)
        step = questions.model.step
        partition: Any = getattr(questions.model, "partition", None)

        def ask() -> None:
            for call in questions.sorted:
                partition(call)
            for state, call in questions.kept:
                for _ in step(state, call):
                    pass

        return statistics.median(milliseconds(ask) for _ in range(TIMES))

    return statistics.median(of(history) for history in distinct(shape))


def distinct(shape: Shape) -> Sequence[History]:
    """Return the histories of a shape without those that are there again."""
    return shape.histories()[:5]


def one_operation(shape: Shape) -> float:
    """Return the median time of checks of the first operation of each history."""
    options = dataclasses.replace(DEFAULT, timeout=60.0, partition=shape.partition)
    return statistics.median(
        milliseconds(partial(check, history.select([0]), shape.model(), options=options))
        for history in distinct(shape)
        for _ in range(TIMES)
    )


def steps_and_one_operation(shape: Shape) -> float:
    """Return the time of the model's own steps and of a check of one operation."""
    return bare_steps(shape) + one_operation(shape)


def start_and_reading(shape: Shape) -> float:
    """Return the time of the command on one operation, and that of reading a file of a shape."""
    histories = shape.histories()[:MOST_FILES]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        reading = []
        for history in histories:
            save_history(history, path)
            reading += [milliseconds(lambda: load_history(path)) for _ in range(TIMES)]
        save_history(histories[0].select([0]), path)
        start = [of_process(command_of(shape, path))[1] for _ in range(TIMES)]
    return statistics.median(start) + statistics.median(reading)


def rows() -> Iterator[Row]:
    """All rows, in the order of ``benchmarks/histories/porcupine.py``."""
    every = shapes()
    for name in COMMAND_LINES:
        shape = next(one for one in every if one.name == name)
        yield Row(
            f"command line, {name}", partial(of_command, shape), partial(start_and_reading, shape)
        )
    for shape in every:
        yield Row(shape.name, partial(compared, shape), partial(one_operation, shape))
    for shape in python_shapes():
        yield Row(shape.name, partial(compared, shape), partial(steps_and_one_operation, shape))


def main() -> None:
    """Print a line for each row whose name has all words of the command line."""
    for row in chosen_rows(rows(), __doc__):
        found, floor = row.compare(), row.floor()
        print(
            f"{row.name:92} {found.ours:9.2f} {floor:9.2f} {found.theirs:9.2f} ms  "
            f"{found.times:7.1f} x, of the floor {found.theirs / floor:7.1f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
