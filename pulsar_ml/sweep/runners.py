"""Opens the runner of a sweep: in this process, in processes of this machine, or on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pulsar_ml.campaign.plan.pace import Pace
from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.run.runner import (
    InlineRunner,
    PoolRunner,
    Runner,
    Watch,
    Wave,
    default_workers,
)
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.engines import most_threads
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.distributed.driver import spark_session
from pulsar_ml.distributed.runner import SparkRunner
from pulsar_ml.distributed.session import (
    SPECULATION,
    check_master,
    in_driver,
    local_master,
    repeating,
    submitted_master,
    task_cpus,
)
from pulsar_ml.processors import processor_count
from pulsar_ml.sweep.options import EXECUTORS, INLINE, POOL, RunnerOptions
from pulsar_ml.wording import counted


def open_runner(
    options: RunnerOptions,
    suites: Iterable[Suite],
    trial: TrialOptions,
    store: RunStore,
    stack: ExitStack,
    note: Callable[[str], None],
) -> Runner:
    """The runner, which ``stack`` closes."""
    by_name = {suite.name: suite for suite in suites}
    threads = max(most_threads(suite, trial) for suite in by_name.values())
    runner: Runner
    if options.runner == INLINE:
        runner = InlineRunner(by_name)
    elif options.runner == POOL:
        runner = PoolRunner(by_name, workers=options.workers or default_workers(threads))
    else:
        runner = _spark_runner(options, threads, store, stack, note)
    stack.callback(runner.close)
    return runner


def effective_master(options: RunnerOptions, threads: int = 1) -> str:
    """The master of a sweep: --master, --conf, spark-submit's, or this machine.

    On this machine as many tasks run at once as the pool has workers, which take turns with its
    cores.
    """
    chosen = options.master or options.conf.get("spark.master") or submitted_master()
    return chosen or f"local[{default_workers(threads)}]"


def _spark_runner(
    options: RunnerOptions,
    threads: int,
    store: RunStore,
    stack: ExitStack,
    note: Callable[[str], None],
) -> Runner:
    master = effective_master(options, threads)
    check_master(master)
    conf = dict(options.conf)
    if options.master:
        conf["spark.master"] = repeating(options.master)
    cpus = options.cpus or task_cpus(master, threads)
    local = local_master(master)
    cores = threads if local is None else min(local.cores, processor_count())
    if options.cpus is None and cores < threads:
        note(
            f"{threads} threads per trial on executors of {counted(cores, 'core')}: runs share them"
        )
    log = store.directory / "spark.log"
    session = spark_session(
        stack,
        master,
        conf,
        suites=options.registry,
        environment=None if options.environment is None else Path(options.environment),
        cpus=cpus,
        more=SPECULATION if options.speculate else {},
        log=log,
        work=store.directory / "executors",
        seconds=options.master_seconds,
        note=note,
    )
    if session.sparkContext.uiWebUrl:
        note(f"Spark's pages are at {session.sparkContext.uiWebUrl}")
    return SparkRunner(
        session,
        cpus=cpus,
        registry=options.registry,
        note=note,
        log=log if in_driver(master) else None,
        pace=Pace(options.task_seconds),
        staging=store.directory if options.rows == EXECUTORS else None,
        master=master,
        seconds=options.master_seconds,
    )


class Clock:
    """The time that a sweep may take; it starts with the trials and allows at least one wave."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.waves = 0
        self.end: float | None = None  # of time.monotonic()

    def start(self) -> None:
        if self.seconds is not None:
            self.end = time.monotonic() + self.seconds

    def is_over(self) -> bool:
        return self.end is not None and self.waves > 0 and time.monotonic() >= self.end


class Timed:
    """A runner whose chunks begin before the clock is over, and then end; Ctrl-C still works."""

    def __init__(self, runner: Runner, clock: Clock, stop_requested: Callable[[], bool]) -> None:
        self._runner = runner
        self._clock = clock
        self._stop_requested = stop_requested

    @property
    def name(self) -> str:
        return self._runner.name

    @property
    def slots(self) -> int:
        return self._runner.slots

    @property
    def under_way(self) -> bool:
        return self._runner.under_way

    def run(self, job: Job, chunks: Sequence[Chunk], watch: Watch) -> Wave:
        first = self._clock.waves == 0
        self._clock.waves += 1
        timed = replace(watch, stopped=self._stop_requested, ends=self._clock.end, whole=first)
        return self._runner.run(job, chunks, timed)

    def close(self) -> None:
        self._runner.close()
