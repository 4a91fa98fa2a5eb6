"""Runs executions whose answers a judge checks; the engine itself cannot know the right ones."""

from __future__ import annotations

import gc
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pulsar_ml.harness.engine import Explorer

# Returns why the answers of the last execution are wrong, or "". Called once for each history:
# executions with equal answers and the same order of calls are judged once.
Judge = Callable[[Explorer], str]
# Called with True before a judge, with False behind it: a judge has bounds of its own, and a watch
# over executions from another process must not take it for a hang of the code under test.
ON_JUDGING: list[Callable[[bool], object]] = []
MANY = 5_000  # new objects, which a collection would scan
GENERATIONS = not sysconfig.get_config_var("Py_GIL_DISABLED")  # without the GIL there is one


def run_judged(explorer: Explorer, first: int, count: int, judge: Judge | None) -> tuple[int, str]:
    """Run executions like ``explorer.run``, and stop also when ``judge`` refuses answers.

    Returns the number of executions and the judge's reason against the last one, or "". With a
    judge, ``explorer`` must have been created with ``judged=True``.
    """
    if judge is None:
        return explorer.run(first, count), ""
    done = 0
    with no_collections():
        while done < count:
            done += explorer.run(first + done, count - done)
            if not explorer.unjudged():
                break
            if message := called(judge, explorer):
                return done, message
            explorer.accept()
    return done, ""


def called(judge: Judge, explorer: Explorer) -> str:
    for note in ON_JUDGING:
        note(True)
    try:
        return judge(explorer)
    finally:
        for note in ON_JUDGING:
            note(False)


@contextmanager
def no_collections() -> Iterator[None]:
    """Switch the garbage collector off.

    A judge keeps many small values without cycles, and scanning them again and again would take
    longer than creating them.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            # Counting what the program itself has frozen takes longer than to scan a few objects.
            if GENERATIONS and gc.get_count()[0] > MANY and gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()  # moves all objects to the oldest generation
            gc.enable()
