"""Checks a campaign before it starts: suites fit the module; build id; duration of a trial."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.engines import check_options, load_module, program_of
from pulsar_ml.campaign.trial.isolation import Isolation
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, find_subject, select_mutant
from pulsar_ml.errors import UsageError

FREE_RUNS = 4.0  # about the time of a trial with free runs, by that of one with a single run


def check(suites: Sequence[Suite], options: TrialOptions) -> str:
    """Return the build id of ``options.module``; makes a program for each suite, runs none.

    Raises ``UsageError`` when the module is missing or lacks the mutant or a suite's subject, when
    a suite cannot have so many threads or operations, and when the engine should run a module that
    is not checked.
    """
    try:
        module = load_module(options)
    except ImportError as error:
        raise UsageError(f"cannot load the native module {options.module}: {error}") from error
    select_mutant(module, options.mutant)
    builds = set()
    for suite in suites:
        subject = find_subject(module, suite)
        builds.add(subject.build_id)
        # Raises for sizes, mixes and settings that do not fit the subject.
        check_options(subject, options)
        program_of(subject, suite, 0, options)
    if len(builds) != 1:
        raise UsageError(f"{options.module} mixes builds: {', '.join(sorted(builds)) or 'none'}")
    return builds.pop()


def measure(suites: Sequence[Suite], seed: int, job: Job) -> float:
    """Return the mean wall seconds of a trial over the suites, measured in a separate process.

    A trial whose number of runs is free is measured with one run, and takes FREE_RUNS as long.
    """
    free = job.options.runs == 0
    once = replace(job, options=replace(job.options, runs=1)) if free else job
    place = Isolation()
    try:
        # The first trial also starts the process and loads the module.
        place.run(suites[0], Chunk(0, suites[0].name, seed, seed + 1), once)
        seconds = sum(timed(place, suite, seed, once) for suite in suites) / len(suites)
    finally:
        place.close()
    return seconds * FREE_RUNS if free else seconds


def timed(place: Isolation, suite: Suite, seed: int, job: Job) -> float:
    began = time.perf_counter()
    place.run(suite, Chunk(0, suite.name, seed, seed + 1), job)
    return time.perf_counter() - began
