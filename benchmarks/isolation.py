"""The cost of isolation: trials in a child of a supervisor, and crashes there.

The trials spin for a fixed time, so the difference is the cost of isolation. A supervisor imports
this file, so its functions import what the supervisor does not need.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from benchmarks.measure import Benchmark
from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.trial.chunk import Job, Trial, run_chunk
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CLEAN, TrialOptions, TrialResult

if TYPE_CHECKING:
    from pulsar_ml.campaign.trial.isolation import Isolation

SUITE = Suite(name="spinning", subject="spinning", summary="Spins for a while.")
JOB = Job("benchmark", "none", TrialOptions())
CRASHES = 20
TURNS = 5


def spin(suite: Suite, seed: int, nanoseconds: int) -> TrialResult:
    """A trial of this many nanoseconds of processor time."""
    end = time.thread_time_ns() + nanoseconds
    while time.thread_time_ns() < end:
        pass
    record = ReplayRecord(
        suite=suite.name,
        seed=seed,
        threads=1,
        operations=1,
        noise=False,
        settings={},
        build_id="none",
        module="none",
    )
    return TrialResult(
        suite=suite.name,
        seed=seed,
        build_id="none",
        threads=1,
        operations=1,
        overlaps=0,
        pairs={},
        duration_ns=nanoseconds,
        verdict=CLEAN,
        violations=(),
        replay=record,
    )


def of_100_us(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    return spin(suite, seed, 100_000)


def of_1_ms(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    return spin(suite, seed, 1_000_000)


def crashing(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    os.abort()


def crashing_at_10(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    return crashing(suite, seed, options) if seed % 10 == 9 else of_1_ms(suite, seed, options)


def new() -> Isolation:
    from pulsar_ml.campaign.trial.isolation import Isolation

    return Isolation()


@cache
def place() -> Isolation:
    isolation = new()
    atexit.register(isolation.close)
    isolation.start()
    return isolation


def chunk(count: int) -> Chunk:
    return Chunk(0, SUITE.name, 0, count)


def isolated(trial: Trial, count: int) -> float:
    """Seconds of a chunk in a running supervisor."""
    began = time.perf_counter()
    place().run(SUITE, chunk(count), JOB, trial=trial)
    return time.perf_counter() - began


def bare(trial: Trial, count: int) -> float:
    """Seconds of a chunk in this process."""
    began = time.perf_counter()
    run_chunk(SUITE, chunk(count), JOB, trial=trial)
    return time.perf_counter() - began


def per_trial(run: Callable[[Trial, int], float], trial: Trial, count: int) -> Callable[[], float]:
    """Microseconds."""
    return lambda: run(trial, count) / count * 1e6


def cost(trial: Trial, count: int) -> Callable[[], float]:
    """Percent by which a chunk takes longer: the fastest of five against the fastest of five.

    Other work on the machine disturbs the fastest least.
    """

    def run() -> float:
        times = [(isolated(trial, count), bare(trial, count)) for _ in range(TURNS)]
        return (min(time for time, _ in times) / min(time for _, time in times) - 1) * 100

    return run


def start() -> float:
    """Milliseconds until a supervisor is ready, with its imports."""
    isolation = new()
    began = time.perf_counter()
    isolation.start()
    spent = time.perf_counter() - began
    isolation.close()
    return spent * 1e3


def of_a_chunk() -> float:
    """Milliseconds of a chunk of one empty trial: the child process, and its row."""
    return isolated(nothing, 1) * 1e3


def nothing(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    return spin(suite, seed, 0)


def recovery() -> float:
    """Milliseconds of a crash: the dead child, its second attempt, the row."""
    return isolated(crashing, CRASHES) / CRASHES * 1e3


def share_of_crashes() -> float:
    """Percent by which a chunk of trials of 1 ms takes longer if one in ten crashes."""
    return (isolated(crashing_at_10, 150) / isolated(of_1_ms, 135) - 1) * 100


BENCHMARKS = (
    Benchmark("isolation: trial of 100 us, bare", per_trial(bare, of_100_us, 5_000), "us"),
    Benchmark("isolation: trial of 100 us, isolated", per_trial(isolated, of_100_us, 5_000), "us"),
    Benchmark("isolation: the difference, 100 us", cost(of_100_us, 2_000), "%"),
    Benchmark("isolation: trial of 1 ms, bare", per_trial(bare, of_1_ms, 1_000), "us"),
    Benchmark("isolation: trial of 1 ms, isolated", per_trial(isolated, of_1_ms, 1_000), "us"),
    Benchmark("isolation: the difference, 1 ms", cost(of_1_ms, 1_000), "%", 5.0),
    Benchmark("isolation: a chunk of one trial that does nothing", of_a_chunk, "ms"),
    Benchmark("isolation: start of a supervisor", start, "ms"),
    Benchmark("isolation: a crash and the second attempt", recovery, "ms"),
    Benchmark("isolation: one crash in ten trials of 1 ms", share_of_crashes, "%"),
)
