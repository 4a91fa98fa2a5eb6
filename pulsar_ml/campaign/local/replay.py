"""Runs the program of a record again and again: real threads do not replay exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from pulsar_ml.campaign.local.watch import MemorySeries, ProcessWatch
from pulsar_ml.campaign.trial import trial as trials
from pulsar_ml.campaign.trial.crashed_trial import INVARIANTS, crashed_trial
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import (
    LEAK,
    STUCK,
    TrialOptions,
    TrialResult,
    replay_trial,
)
from pulsar_ml.exit_codes import CLEAN, INTERRUPTED, NOTHING_EXERCISED, VIOLATION, ExitCode
from pulsar_ml.harness.search.child import Limits, LostError, Tail, watch
from pulsar_ml.terminal.progress import ProgressDisplay


@dataclass(slots=True)
class Replay:
    """The counts of a record's runs.

    ``seen`` counts failed runs by invariant; ``first`` is the result of the first failed run.
    ``grown`` says how memory grew, for the record of a leak.
    """

    record: ReplayRecord
    build_id: str = ""
    runs: int = 0
    failed: int = 0
    nothing_exercised: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    first: TrialResult | None = None
    grown: str | None = None
    other_program: bool = False
    interrupted: bool = False

    def exit_code(self) -> ExitCode:
        if self.interrupted:
            return INTERRUPTED
        if self.failed or self.grown:
            return VIOLATION
        return NOTHING_EXERCISED if self.runs == self.nothing_exercised else CLEAN


def replay(
    suite: Suite,
    record: ReplayRecord,
    *,
    repeats: int,
    count_all: bool,
    module: str | None,
    mutant: str | None = None,
    leak_threshold: int,
    limits: Limits,
    progress: ProgressDisplay,
) -> Replay:
    """Runs the program up to ``repeats`` times; without ``count_all`` only until it fails.

    A program that crashed or blocked its process runs in a child process, within ``limits``. The
    record of a leak always takes all repeats, because growth shows over many.
    """
    if mutant is not None:
        record = replace(record, mutant=mutant)
    outcome = Replay(record)
    memory = MemorySeries()
    with ProcessWatch() as watch:
        try:
            title = f"replay of {record.suite}"
            where = f"from seed {record.seed} on {record.threads} threads"
            progress.begin(title, repeats, f"{title}: {repeats} runs {where}")
            while outcome.runs < repeats:
                if record.invariant in INVARIANTS.values():
                    result = replay_in_child(suite, record, module, limits)
                else:
                    result = replay_trial(suite, record, module=module)
                add(outcome, result)
                memory.add(watch.resident())
                progress.update(
                    outcome.runs, f"{title}: {outcome.runs:,} runs, {outcome.failed} failed"
                )
                if outcome.seen[STUCK] or (
                    outcome.failed and not count_all and record.invariant != LEAK
                ):
                    break
        except KeyboardInterrupt:
            outcome.interrupted = True
    progress.end()
    if record.invariant == LEAK:
        outcome.grown = memory.leak(leak_threshold)
    return outcome


def replay_in_child(
    suite: Suite, record: ReplayRecord, module: str | None, limits: Limits
) -> TrialResult:
    """Runs a record's program once in a process of its own, whose loss is a violation."""
    results: list[TrialResult] = []
    tail = Tail()
    try:
        watch(
            lambda tell: tell(replay_trial(suite, record, module=module)),
            results.append,
            limits=limits,
            tail=tail,
        )
    except LostError as crash:
        options = TrialOptions(
            threads=record.threads,
            operations=record.operations,
            noise=record.noise,
            module=module or record.module,
            mutant=record.mutant,
            runs=record.runs,
        )
        return crashed_trial(suite, record.seed, options, "", crash, tail)
    return results[0]


def add(outcome: Replay, result: TrialResult) -> None:
    outcome.runs += 1
    outcome.build_id = result.build_id or outcome.build_id  # a crashed run has none
    outcome.nothing_exercised += result.verdict == trials.NOTHING_EXERCISED
    if result.violations:
        outcome.failed += 1
        outcome.seen.update({violation.invariant for violation in result.violations})
        if outcome.first is None:
            outcome.first = result
            recorded = outcome.record.program
            outcome.other_program = bool(recorded) and recorded != result.replay.program


def describe(outcome: Replay) -> list[str]:
    """The outcome in sentences."""
    record = outcome.record
    lines = []
    if outcome.build_id and outcome.build_id != record.build_id:
        lines.append(
            f"another build: the record is of {record.build_id}, this is {outcome.build_id}; "
            "what is seen now says nothing certain about that one"
        )
    if outcome.other_program:
        lines.append(
            "another program: the suite or the generator changed since the record was written"
        )
    if record.invariant is not None:
        lines.append(f"recorded: {record.invariant}: {record.message}")
    if outcome.grown:
        lines.append(f"reproduced: {outcome.grown}")
    elif record.invariant == LEAK:
        lines.append(f"not reproduced: memory levelled off over {outcome.runs} runs of one program")
    if outcome.first is not None:
        lines += [
            f"now: {violation.invariant} ({violation.phase}): {violation.message}"
            for violation in outcome.first.violations
        ]
        seen = ", ".join(
            f"{invariant} {count} times" for invariant, count in outcome.seen.most_common()
        )
        lines.append(f"failed in {outcome.failed} of {outcome.runs} runs ({seen})")
        if record.invariant is not None and record.invariant not in outcome.seen:
            lines.append(f"{record.invariant}, which the record is about, was not among them")
    elif record.invariant != LEAK:
        lines.append(
            f"not reproduced in {outcome.runs} runs; real threads do not replay exactly, "
            "so more --repeats may still find it"
        )
    return lines
