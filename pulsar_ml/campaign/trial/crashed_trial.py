"""A trial whose process was lost is a violation like another: of one of three invariants, with its seed."""

from __future__ import annotations

from pulsar_ml.campaign.trial.engines import is_controlled
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import RUNNING, VIOLATION, TrialOptions, TrialResult, Violation
from pulsar_ml.harness.search.child import ENDED, MEMORY, STUCK, LostError, Tail

# What a trial must not do to its process.
CRASH = "crash"
HANG = "hang"
OUT_OF_MEMORY = "memory"
INVARIANTS = {ENDED: CRASH, STUCK: HANG, MEMORY: OUT_OF_MEMORY}

SHOWN_LINES = 6  # of what the process printed last
SHOWN_CHARACTERS = 1000


def lost_trial(
    suite: Suite,
    seed: int,
    options: TrialOptions,
    build_id: str,
    lost: LostError,
    tail: Tail,
    again: str = "",
) -> TrialResult:
    """What is known of a trial that was lost: its program, how it ended, and what it printed last.

    ``again`` says what a second try showed. Violations look alike when invariant and signal or exit status
    do, whatever was printed.
    """
    threads = suite.threads if options.threads is None else options.threads
    operations = suite.operations if options.operations is None else options.operations
    record, executions = "", 0
    if is_controlled(options):
        from pulsar_ml.campaign.trial.controlled import lost_record

        program, record, executions = lost_record(suite, seed, options, lost)
        threads = len(program.threads)
        operations = max(1, *(len(thread) for thread in program.threads))
    invariant, message = INVARIANTS[lost.kind], lost.message + again
    if printed := "\n".join(tail.lines(SHOWN_LINES))[-SHOWN_CHARACTERS:]:
        message += f"; it printed:\n{printed}"
    places = (lost.how or lost.kind,)
    return TrialResult(
        suite=suite.name,
        seed=seed,
        build_id=build_id,
        threads=threads,
        operations=0,
        overlaps=0,
        pairs={},
        duration_ns=0,
        verdict=VIOLATION,
        violations=(Violation(invariant, message, RUNNING, places=places, record=record),),
        replay=ReplayRecord(
            suite=suite.name,
            seed=seed,
            threads=threads,
            operations=operations,
            noise=options.noise,
            settings={},  # they follow from suite and seed
            build_id=build_id,
            module=options.module,
            mutant=options.mutant,
            invariant=invariant,
            message=message,
        ),
        executions=executions,
    )
