"""Tasks are made of chunks by the times of earlier trials; no test reads a clock."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.pace import Pace
from pulsar_ml.campaign.plan.plan import Chunk, Plan
from pulsar_ml.campaign.trial.trial import TrialOptions


def ledger(**seconds: float) -> pa.Table:
    """Make a ledger in which trials of these suites took so long."""
    lines = [
        {"suite": name, "wall_us": int(10e6 * each), "trials": 10} for name, each in seconds.items()
    ]
    return pa.Table.from_pylist(lines)


def chunks(*suites: str, seeds: int = 64, pieces: int = 16) -> list[Chunk]:
    return list(Plan(suites, 0, seeds, pieces, TrialOptions()).chunks())


def sizes(tasks: list[list[Chunk]], suite: str) -> list[int]:
    return [len(task) for task in tasks if task[0].suite == suite]


def test_without_a_measure_each_chunk_is_a_task() -> None:
    assert Pace(3.0).tasks(chunks("a", "b"), 2) == [[chunk] for chunk in chunks("a", "b")]


def test_a_task_has_chunks_of_one_suite_that_take_the_time() -> None:
    pace = Pace(2.0)
    pace.learn(ledger(a=0.25, b=0.5))  # four trials a chunk: 1 and 2 seconds
    tasks = pace.tasks(chunks("a", "b"), 2)
    assert sizes(tasks, "a") == [2] * 8 and sizes(tasks, "b") == [1] * 16
    assert all(len({chunk.suite for chunk in task}) == 1 for task in tasks)
    assert tasks[0] == [chunks("a", "b")[0], chunks("a", "b")[2]], "neighbours"


def test_what_trials_take_now_is_learned_in_both_directions() -> None:
    pace = Pace(4.0)
    pace.learn(ledger(a=0.25))
    assert sizes(pace.tasks(chunks("a"), 1), "a") == [4] * 4
    pace.learn(ledger(a=0.75))  # the mean is half a second: 2 a chunk
    assert sizes(pace.tasks(chunks("a"), 1), "a") == [2] * 8
    for _ in range(10):
        pace.learn(ledger(a=0.0625))
    assert sizes(pace.tasks(chunks("a", pieces=32), 1), "a") == [31, 1], (
        "nearly an eighth of a second each"
    )


def test_few_chunks_are_spread_over_all_slots() -> None:
    pace = Pace(100.0)
    pace.learn(ledger(a=0.25))
    assert sizes(pace.tasks(chunks("a"), 8), "a") == [2] * 8
    assert sizes(pace.tasks(chunks("a"), 99), "a") == [1] * 16


def test_suspects_are_tasks_of_their_own() -> None:
    pace = Pace(100.0)
    pace.learn(ledger(a=0.25))
    every = chunks("a", pieces=4)
    pace.apart(every[1:3])
    assert pace.tasks(every, 1) == [[every[0]], [every[1]], [every[2]], [every[3]]]


@given(st.integers(1, 40), st.integers(1, 9), st.floats(0.0, 10.0), st.floats(0.001, 5.0))
def test_every_chunk_is_in_one_task(pieces: int, slots: int, seconds: float, trial: float) -> None:
    pace = Pace(seconds)
    pace.learn(ledger(a=trial))
    every = chunks("a", "b", pieces=pieces)
    tasks = pace.tasks(every, slots)
    assert sorted((chunk for task in tasks for chunk in task), key=every.index) == every
    assert seconds > 0 or len(tasks) == len(every)
