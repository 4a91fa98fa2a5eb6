"""Turns a trial whose process died into a violation of one of four invariants, with its seed."""

from __future__ import annotations

from pulsar_ml.campaign.trial.engines import is_controlled
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import RUNNING, VIOLATION, TrialOptions, TrialResult, Violation
from pulsar_ml.harness.search.child import ENDED, MEMORY, PROCESSES, STUCK, LostError, Tail

# The invariants that a trial breaks when its process dies.
CRASH = "crash"
HANG = "hang"
OUT_OF_MEMORY = "memory"
PROCESSES_LEFT = "processes"
INVARIANTS = {ENDED: CRASH, STUCK: HANG, MEMORY: OUT_OF_MEMORY, PROCESSES: PROCESSES_LEFT}

SHOWN_LINES = 6  # of the last lines that the process printed
SHOWN_CHARACTERS = 1000


def crashed_trial(
    suite: Suite,
    seed: int,
    options: TrialOptions,
    build_id: str,
    crash: LostError,
    tail: Tail,
    again: str = "",
) -> TrialResult:
    """Make the result of a trial whose process died: program, ending, and last lines printed.

    ``again`` describes the second try. The signature of the violation depends on the invariant and
    on the signal or exit status, not on the printed lines.
    """
    threads = suite.threads if options.threads is None else options.threads
    operations = suite.operations if options.operations is None else options.operations
    record, executions = "", 0
    if is_controlled(options):
        from pulsar_ml.campaign.trial.controlled import crashed_record

        program, record, executions = crashed_record(suite, seed, options, crash)
        threads = len(program.threads)
        operations = max(1, *(len(thread) for thread in program.threads))
    invariant, message = INVARIANTS[crash.kind], crash.message + again
    if printed := "\n".join(tail.lines(SHOWN_LINES))[-SHOWN_CHARACTERS:]:
        message += f"; it printed:\n{printed}"
    places = (crash.how or crash.kind,)
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
            settings={},  # derived from suite and seed
            build_id=build_id,
            module=options.module,
            mutant=options.mutant,
            invariant=invariant,
            message=message,
            runs=options.runs,
        ),
        executions=executions,
    )
