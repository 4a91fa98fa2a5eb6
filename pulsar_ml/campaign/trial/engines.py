"""Runs trials on real threads or under the engine, which is loaded only for trials that need it."""

from __future__ import annotations

from types import ModuleType

from pulsar_ml.campaign.trial import trial
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CONTROLLED, THREADS, TrialOptions, TrialResult
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

ENGINES = (THREADS, CONTROLLED)


def run_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Run one trial as ``options.engine`` says; raises what that engine's own function raises."""
    if is_controlled(options):
        from pulsar_ml.campaign.trial import controlled

        return controlled.run_trial(suite, seed, options)
    return trial.run_trial(suite, seed, options)


def load_module(options: TrialOptions) -> ModuleType:
    """Load the native module of the options, and the engine before a checked module.

    ImportError.
    """
    if is_controlled(options):
        from pulsar_ml.campaign.trial import controlled

        return controlled.load_checked(options.module)
    return trial.load_native(options.module)


def prepare(suite: Suite, options: TrialOptions) -> None:
    """Load the module and the judge of the suite's model."""
    load_module(options)
    judge_of(suite.model)


def program_of(subject: Subject, suite: Suite, seed: int, options: TrialOptions) -> Program:
    """Make the program of a seed; UsageError for sizes and names that do not fit the subject."""
    if is_controlled(options):
        from pulsar_ml.campaign.trial import controlled

        return controlled.program_of(subject, suite, seed, options)
    return trial.program_of(subject, suite, seed, options)


def check_options(subject: Subject, options: TrialOptions) -> None:
    """Raise UsageError for options unknown to the engine and for a module that is not checked."""
    if is_controlled(options):
        from pulsar_ml.campaign.trial import controlled

        controlled.check_options(options)
        if not subject.needs_gil:  # a test of Python is seen by the interpreter
            controlled.check_hooks(subject, options.module)


def is_controlled(options: TrialOptions) -> bool:
    if options.engine not in ENGINES:
        raise UsageError(f"there is no engine {options.engine!r}; use one of: {', '.join(ENGINES)}")
    return options.engine == CONTROLLED


def most_threads(suite: Suite, options: TrialOptions) -> int:
    """Return how many operating system threads a trial of this suite uses."""
    return 1 if is_controlled(options) else options.threads or suite.threads
