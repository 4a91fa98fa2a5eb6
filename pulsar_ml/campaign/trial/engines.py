"""Real threads or the engine: one face for both. The engine is loaded only where a trial asks for it."""

from __future__ import annotations

from types import ModuleType

from pulsar_ml.campaign.trial import trial
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CONTROLLED, THREADS, TrialOptions, TrialResult
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.subjects.program import Program, generate
from pulsar_ml.harness.subjects.subject import Subject

ENGINES = (THREADS, CONTROLLED)


def run_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """One trial on the engine of the options; raises what that engine's own function raises."""
    if is_controlled(options):
        from pulsar_ml.campaign.trial import controlled

        return controlled.run_trial(suite, seed, options)
    return trial.run_trial(suite, seed, options)


def load_module(options: TrialOptions) -> ModuleType:
    """The native module of the options, after the engine when that is asked for. ImportError."""
    if is_controlled(options):
        from pulsar_ml.campaign.trial import controlled

        return controlled.load_checked(options.module)
    return trial.load_native(options.module)


def prepare(suite: Suite, options: TrialOptions) -> None:
    """Loads what trials of this suite need: the module, and the judge of the suite's model."""
    load_module(options)
    judge_of(suite.model)


def program_of(subject: Subject, suite: Suite, seed: int, options: TrialOptions) -> Program:
    """The program of a seed; UsageError for numbers and names that do not fit the subject."""
    if is_controlled(options):
        from pulsar_ml.campaign.trial import controlled

        return controlled.program_of(subject, suite, seed, options)
    return generate(
        subject,
        seed,
        threads=suite.threads if options.threads is None else options.threads,
        operations=suite.operations if options.operations is None else options.operations,
        mix=suite.mix,
        settings=suite.settings,
        noise=options.noise,
    )


def check_options(subject: Subject, options: TrialOptions) -> None:
    """UsageError for what the engine does not know, and for a module that was not compiled for it."""
    if is_controlled(options):
        from pulsar_ml.campaign.trial import controlled

        controlled.check_options(options)
        controlled.check_hooks(subject, options.module)


def is_controlled(options: TrialOptions) -> bool:
    if options.engine not in ENGINES:
        raise UsageError(f"there is no engine {options.engine!r}; use one of: {', '.join(ENGINES)}")
    return options.engine == CONTROLLED


def most_threads(suite: Suite, options: TrialOptions) -> int:
    """Threads of the system that a trial of this suite uses."""
    return 1 if is_controlled(options) else options.threads or suite.threads
