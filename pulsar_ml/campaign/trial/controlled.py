"""Runs a trial under the engine: many executions of one small program, decided by the seed.

Equal suite, seed, options and build give equal results on every machine, except for times. A
failure is shrunk before it is reported, and its record replays it step by step.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.campaign.store.sketch import SIZE, Sketch, hash_of
from pulsar_ml.campaign.trial.guidance import made_from_corpus
from pulsar_ml.campaign.trial.judging import LINEARIZABILITY, judge_counts, judge_of
from pulsar_ml.campaign.trial.phases import Phases
from pulsar_ml.campaign.trial.programs import program_of as program_of
from pulsar_ml.campaign.trial.programs import rare_operations as rare_operations
from pulsar_ml.campaign.trial.programs import steps_of as steps_of
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import (
    CHECKED,
    NOTHING_EXERCISED,
    RUNNING,
    VIOLATION,
    TrialOptions,
    TrialResult,
    Violation,
    find_subject,
    is_guided,
    load_native,
    select_mutant,
)
from pulsar_ml.errors import LimitsError, NondeterminismError, UsageError
from pulsar_ml.harness.engine import (
    LEAST_STORES,
    MODES,
    MOST_STORES,
    OFFERED,
    REDUCING,
    SEARCHES,
    Explorer,
)
from pulsar_ml.harness.search.child import LostError
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.partition import Part, ReducedPart
from pulsar_ml.harness.search.sandbox import LEARNING, lost_failure
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

NONDETERMINISM = "nondeterminism"  # equal choices led to different executions
MOST_THREADS = 63  # the engine's own limit
MOST_EXECUTIONS = 1_000_000_000
SHRINK_EXECUTIONS = 20_000  # a fraction of a second; ``pulsar-ml shrink`` takes longer
BOUND_SEPARATOR = "; "  # between the bounds of a search
REUSE = "mixed"  # each execution decides whether freed memory is reused at once


def run_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Run up to ``options.executions`` executions of the program of ``seed``, up to a failure.

    Uses one operating system thread; the engine runs one trial of a process at a time. A program
    beyond the engine's capacity exercises nothing, and ``bounds`` says why. Raises UsageError for
    options that do not fit the suite, the module or the engine, ImportError when the module is
    missing, and MemoryError.
    """
    check_options(options)
    module = load_checked(options.module)
    select_mutant(module, options.mutant)
    subject = find_subject(module, suite)
    spent = Phases()
    with spent.of("draw"):
        program, steering = input_of(subject, suite, seed, options)
    before = judge_counts(suite)
    with subject.around() if subject.around else nullcontext(), spent.of("run"):
        try:
            done = explore(
                subject,
                program,
                executions=options.executions,
                seed=seed,
                judge=judge_of(suite.model),
                step_limit=steps_of(options),
                **search_options(subject, suite, options),
                **steering,
            )
        except LimitsError as error:
            return without_verdict(suite, options, subject, program, str(error))
        except NondeterminismError as error:
            found = Violation(NONDETERMINISM, str(error), RUNNING)
            return without_verdict(suite, options, subject, program, "", found)
        result = to_result(suite, options, subject, program, done)
    judged, unknown = (after - at for after, at in zip(judge_counts(suite), before, strict=True))
    return dataclasses.replace(result, judged=judged, unknown=unknown, spent=spent)


def search_options(subject: Subject, suite: Suite, options: TrialOptions) -> dict[str, Any]:
    """Return the options of :func:`explore` for a trial; a test of Python has some of its own."""
    found = {
        "mode": options.mode,
        "strategy": options.strategy,
        "reuse": REUSE,
        "leaks": options.leaks,
        **engine_options(options),
    }
    if subject.around is None:
        return found
    from pulsar_ml.campaign.trial.python_tests import trial_options

    return {**found, **trial_options(suite, options.mode)}


def engine_options(options: TrialOptions) -> dict[str, Any]:
    """Return the bounds of a trial's executions, and the part of an exhaustive strategy."""
    bounds = {"stores": options.stores}
    if options.strategy not in SEARCHES:
        return bounds
    bounds |= {"bound": options.bound, "spins": options.spins, "turns": options.turns}
    return {**bounds, "part": Part.of(options.part)}


def to_result(
    suite: Suite,
    options: TrialOptions,
    subject: Subject,
    program: Program,
    done: Exploration,
) -> TrialResult:
    calls = sum(len(thread) for thread in program.threads)
    counts = done.statistics
    violations = (
        () if done.failure is None else (violation_of(done.failure, subject, suite, options),)
    )
    first = violations[0] if violations else None
    return TrialResult(
        suite=suite.name,
        seed=program.seed,
        build_id=subject.build_id,
        threads=len(program.threads),
        operations=counts["complete"] * calls,
        overlaps=0,
        pairs={},
        duration_ns=int(done.seconds * 1e9),
        verdict=done.verdict,
        violations=violations,
        replay=replay_record(suite, options, subject, program, first),
        executions=done.executions,
        steps=counts["steps"],
        classes=counts["classes"],
        once=counts["once"],
        sketch=sketch_of(program, done.classes),
        cut=counts["cut"],
        exhausted=done.exhausted,
        bounds=BOUND_SEPARATOR.join(done.bounds),
        rest=str(done.rest or ""),
    )


def without_verdict(
    suite: Suite,
    options: TrialOptions,
    subject: Subject,
    program: Program,
    bounds: str,
    *violations: Violation,
) -> TrialResult:
    """Return the result of a program whose exploration ended without a verdict."""
    first = violations[0] if violations else None
    return TrialResult(
        suite=suite.name,
        seed=program.seed,
        build_id=subject.build_id,
        threads=len(program.threads),
        operations=0,
        overlaps=0,
        pairs={},
        duration_ns=0,
        verdict=VIOLATION if violations else NOTHING_EXERCISED,
        violations=violations,
        replay=replay_record(suite, options, subject, program, first),
        bounds=bounds.replace(BOUND_SEPARATOR, ", "),
    )


def replay_record(
    suite: Suite,
    options: TrialOptions,
    subject: Subject,
    program: Program,
    first: Violation | None,
) -> ReplayRecord:
    return ReplayRecord(
        suite=suite.name,
        seed=program.seed,
        threads=len(program.threads),
        operations=max(1, *(len(thread) for thread in program.threads)),
        noise=False,
        settings=program.settings,
        build_id=subject.build_id,
        module=options.module,
        mutant=options.mutant,
        invariant=first.invariant if first else None,
        message=first.message if first else None,
        program=program.digest() if first else "",
    )


def sketch_of(program: Program, classes: NDArray[np.uint64]) -> Sketch:
    """Sketch the classes of a program; equal classes of two seeds' equal programs count once."""
    words = classes ^ np.uint64(hash_of(program.digest()))
    # Mixed by SplitMix64's finaliser: the order of sketches must not depend on the engine's hash.
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    hashes = np.unique((words ^ words >> np.uint64(31)) >> np.uint64(1))
    return tuple(hashes[:SIZE].tolist())


def violation_of(
    failure: Failure, subject: Subject, suite: Suite, options: TrialOptions
) -> Violation:
    """Shrink a failure and return it as a violation of its invariant or of the engine's rule."""
    failure = dataclasses.replace(failure, module=options.module, mutant=options.mutant)
    return as_violation(
        shrink(failure, subject, budget=SHRINK_EXECUTIONS, judge=judge_of(suite.model))
    )


def as_violation(small: Failure) -> Violation:
    """Convert a failure to the violation of a row."""
    _, _, *places = small.signature
    return Violation(
        invariant=LINEARIZABILITY if small.kind == WRONG_ANSWERS else small.rule or small.kind,
        message=small.message,
        phase=RUNNING,
        places=tuple(places),
        record=small.to_json(),
    )


def crashed_record(
    suite: Suite, seed: int, options: TrialOptions, crash: LostError
) -> tuple[Program, str, int]:
    """Describe a trial whose process died.

    Returns its program, the failure of the execution under way as JSON, and the number of
    executions that had begun.
    """
    subject = find_subject(load_checked(options.module), suite)
    program, steering = input_of(subject, suite, seed, options)
    search = {
        "seed": seed,
        "step_limit": steps_of(options),
        **search_options(subject, suite, options),
        **steering,
    }
    failure = lost_failure(crash, subject, program, search)
    record = dataclasses.replace(failure, module=options.module, mutant=options.mutant).to_json()
    return program, record, 1 if crash.execution >= LEARNING else crash.execution + 1


def input_of(
    subject: Subject, suite: Suite, seed: int, options: TrialOptions
) -> tuple[Program, Mapping[str, Any]]:
    """Return the program of a trial, and how its executions are steered: guided, if it is."""
    known = not options.corpus or subject.around is not None or options.threads == 1
    if known or not is_guided(seed):
        return program_of(subject, suite, seed, options), {}
    found = made_from_corpus(
        subject, suite, seed, options, **search_options(subject, suite, options)
    )
    return found.program, found.steering


def load_checked(module: str) -> ModuleType:
    """Load the checked module; this file has loaded the engine, whose functions it calls."""
    return load_native(module)


def check_options(options: TrialOptions) -> None:
    """Raise UsageError for a mode, strategy, bound or size that the engine does not accept."""
    if (options.threads or 0) > MOST_THREADS:
        raise UsageError(
            f"a controlled program has 1 to {MOST_THREADS} threads, not {options.threads}"
        )
    for value, known, what in (
        (options.mode, MODES, "mode"),
        (options.strategy, OFFERED, "strategy"),
    ):
        if value not in known:
            raise UsageError(f"there is no {what} {value!r}; use one of: {', '.join(known)}")
    if options.part:
        check_part(Part.of(options.part), options.strategy)
    for number, least, bound in (
        (options.bound, 0, "bound"),
        (options.spins, 0, "number of spins"),
        (options.turns, 1, "number of turns"),
    ):
        if number < least:
            raise UsageError(f"the {bound} of a search is {least} or more, not {number}")
    if not LEAST_STORES <= options.stores <= MOST_STORES:
        raise UsageError(
            f"a location remembers {LEAST_STORES} to {MOST_STORES} stores, not {options.stores}"
        )
    if not 1 <= options.executions <= MOST_EXECUTIONS:
        raise UsageError(
            f"a trial makes 1 to {MOST_EXECUTIONS:,} executions of its program, not {options.executions:,}"
        )


def check_part(part: Part | ReducedPart, strategy: str) -> None:
    """Raise UsageError for a part that is not of a search by this strategy."""
    reduced = isinstance(part, ReducedPart) or part.unreduced
    possible = REDUCING if reduced else SEARCHES
    if part != Part() and strategy not in possible:
        raise UsageError(
            f"this part of a search is for the strategies {', '.join(possible)}, not for {strategy!r}"
        )


@functools.cache
def check_hooks(subject: Subject, module: str) -> None:
    """Raise UsageError when the accesses of a subject's code do not reach the engine.

    A program of one thread is enough to see that, and cannot wait for another thread for ever.
    """
    program = Program.generate(subject, 0, threads=1, operations=8, noise=False)
    explorer = Explorer(subject, program, mode="sc", strategy="random")
    explorer.run(0, 1)
    if not explorer.statistics()["hooks"]:
        raise UsageError(
            f"{module} has no hooks, so the engine cannot see what it does; use a checked build, as "
            f"{CHECKED} or one made with pulsar_ml.harness.building.checked"
        )
