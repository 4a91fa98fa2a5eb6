"""Guidance in numbers: classes of executions and meetings of operations, guided and not.

Both ways explore the programs of one seed of a suite, as ``pulsar-ml explore`` does by default. The
classes are those of all programs, of which equal ones of equal programs count once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from benchmarks import classes
from benchmarks.measure import Benchmark
from benchmarks.peers import genmc, loom
from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.guidance import Guide
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.engine import Explorer, meetings
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.operations import _checked
from pulsar_ml.suites.registry import SUITES

NAMES = ("range_cache", "ack_state", "delayed_manager", "mpsc_queue")
PROGRAMS = 200
EXECUTIONS = 200  # of each, the most
SEED = 1


@dataclass(frozen=True, slots=True)
class Search:
    """The counts of one exploration; ``seconds`` of processor time."""

    classes: int
    meetings: int
    executions: int
    seconds: float


def search(name: str, guided: bool) -> Search:
    """Explore the programs of a suite, without its model."""
    suite, options = SUITES[name], TrialOptions()
    subject = _checked.SUBJECTS[suite.subject]
    guide = Guide(subject, suite, SEED, options)
    classes: set[tuple[str, int]] = set()
    met: set[int] = set()
    executions = 0

    def look(explorer: Explorer) -> bool:
        met.update(meetings(explorer).tolist())
        return guided and guide.look(explorer)

    started = time.process_time()
    for number in range(PROGRAMS):
        program = (
            guide.program(number) if guided else program_of(subject, suite, SEED + number, options)
        )
        done = explore(subject, program, executions=EXECUTIONS, seed=SEED, reuse="mixed", look=look)
        if done.failure is not None:
            raise RuntimeError(f"{name}: {done.failure.kind}: {done.failure.message}")
        if guided:
            guide.learn(program)
        digest = program.digest()
        classes.update((digest, each) for each in done.classes.tolist())
        executions += done.executions
    return Search(len(classes), len(met), executions, time.process_time() - started)


DONE: dict[tuple[str, bool], Search] = {}  # the last exploration of each kind


def classes_rate(name: str, guided: bool) -> float:
    done = DONE[name, guided] = search(name, guided)
    return done.classes / done.seconds / 1e3


def last(name: str, guided: bool) -> Search:
    """The exploration of the row before, or a new one when that row did not run."""
    if (name, guided) not in DONE:
        classes_rate(name, guided)
    return DONE[name, guided]


def executions_rate(name: str, guided: bool) -> float:
    return last(name, guided).executions / last(name, guided).seconds / 1e3


def meetings_count(name: str, guided: bool) -> float:
    return last(name, guided).meetings


def rows(name: str, guided: bool) -> tuple[Benchmark, ...]:
    title = f"search: {name}, {'guided' if guided else 'unguided'}"
    return (
        Benchmark(f"{title}, classes", partial(classes_rate, name, guided), "k/s"),
        Benchmark(f"{title}, executions", partial(executions_rate, name, guided), "k/s"),
        Benchmark(f"{title}, meetings", partial(meetings_count, name, guided), "n"),
    )


BENCHMARKS = (
    *(row for name in NAMES for guided in (False, True) for row in rows(name, guided)),
    *loom.ROWS,
    *genmc.ROWS,
    *classes.ROWS,
)
