"""Looks at a campaign before it starts: do suites and module fit, which build is it, how long is a trial?"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from pulsar_ml.campaign.engines import check_options, load_module, program_of, run_trial
from pulsar_ml.campaign.suite import Suite
from pulsar_ml.campaign.trial import TrialOptions, find_subject, select_mutant
from pulsar_ml.errors import UsageError


def check(suites: Sequence[Suite], options: TrialOptions) -> str:
    """The build id of ``options.module``; makes a program for each suite and runs none.

    Raises ``UsageError`` when the module is missing or lacks the mutant or a suite's subject, and
    when a suite cannot have so many threads or operations; and when the engine is asked to run a
    module that was not compiled for it.
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
        # Refuses numbers of threads or operations, mixes and settings that do not fit the subject.
        check_options(subject, options)
        program_of(subject, suite, 0, options)
    if len(builds) != 1:
        raise UsageError(f"{options.module} mixes builds: {', '.join(sorted(builds)) or 'none'}")
    return builds.pop()


def measure(suites: Sequence[Suite], seed: int, options: TrialOptions) -> float | None:
    """Mean wall seconds of a trial over the suites; None when one took its process down.

    The trials run in a process of their own, because a crash of one must not end the campaign.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            times = [pool.submit(_timed, suite, seed, options).result() for suite in suites]
        except BrokenProcessPool:
            return None
    return sum(times) / len(times)


def _timed(suite: Suite, seed: int, options: TrialOptions) -> float:
    run_trial(suite, seed, options)  # the first trial also loads the module and fills its pools
    began = time.perf_counter()
    run_trial(suite, seed, options)
    return time.perf_counter() - began
