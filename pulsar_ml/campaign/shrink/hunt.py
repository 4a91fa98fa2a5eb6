"""Hunts a failure of real threads under the engine.

Real threads find a forbidden outcome in a long program and can hardly reproduce it. The engine
looks for the same outcome in windows of that program: a few calls of two or three of its threads,
around the failing call where the record names it. A failure that it finds is shrunk and replays
step by step.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pulsar_ml.campaign.trial.judging import LINEARIZABILITY, judge_of, recorded_programs
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import LEAK, STUCK
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import CALL, Program, words
from pulsar_ml.harness.subjects.subject import Subject

WINDOW_STREAM = 5  # of the seed's random numbers
PER_WINDOW = 1_000
SECONDS = 300.0
WIDTHS = (3, 4, 6, 8)  # calls of each thread in a window
SHORT = 20  # programs with so few calls of each thread are run whole
SHRINKING = 50_000
# Invariants that no single execution breaks, so that the engine cannot look for them.
NO_OUTCOME = (None, STUCK, LEAK)


@dataclass(frozen=True, slots=True)
class Hunt:
    """The result of a search for a record's outcome.

    Attributes:
        windows, executions: numbers tried.
        others: executions that ended in other failures, by their invariant.
        failure: the shrunk failure with the record's signature, None when it did not appear.
    """

    windows: int
    executions: int
    others: Mapping[str, int]
    failure: Failure | None


def invariant_of(failure: Failure) -> str:
    """Return the broken invariant under the name that trials use."""
    return LINEARIZABILITY if failure.kind == WRONG_ANSWERS else failure.rule or failure.kind


def programs_of(subject: Subject, suite: Suite, record: ReplayRecord) -> list[Program]:
    """Return the programs of the record's trial that may have had the outcome."""
    if record.invariant == LINEARIZABILITY:
        return list(
            recorded_programs(
                subject,
                suite,
                record.seed,
                record.settings,
                threads=record.threads,
                noise=record.noise,
            )
        )
    pinned = {name: (value, value) for name, value in record.settings.items()}
    whole = Program.generate(
        subject,
        record.seed,
        threads=record.threads,
        operations=record.operations,
        mix=suite.mix,
        settings={**suite.settings, **pinned},
        noise=record.noise,
    )
    return [whole]


def windows(programs: list[Program], record: ReplayRecord) -> Iterator[Program]:
    """Yield short programs whole, then without end short windows around the record's call.

    Where the record names no call, windows lie anywhere.
    """
    for program in programs:
        if all(len(calls) <= SHORT for calls in program.threads):
            yield dataclasses.replace(
                program, threads=tuple(window(calls) for calls in program.threads)
            )
    number = 0
    while True:
        program = programs[number % len(programs)]
        where, who, *jitter = (
            int(word) >> 32 for word in words(record.seed, WINDOW_STREAM + number, 8)
        )
        width = WIDTHS[number // len(programs) % len(WIDTHS)]
        busy = [thread for thread, calls in enumerate(program.threads) if len(calls)]
        caught = record.thread if record.thread in busy else busy[who % len(busy)]
        known = record.call if record.thread == caught else where % len(program.threads[caught])
        part = known / len(program.threads[caught])
        others = [thread for thread in busy if thread != caught]
        count = min(len(others), 1 + (who >> 16) % 2)
        others = sorted(others, key=lambda thread: (thread * 7 + who) % 11)[:count]
        chosen = []
        for place, thread in enumerate([caught, *others]):
            calls = program.threads[thread]
            end = known + 1 if thread == caught else int(part * len(calls)) + width // 2
            if thread != caught or record.thread < 0:
                end += jitter[place % len(jitter)] % (2 * width + 1) - width
            end = max(min(end, len(calls)), min(width, len(calls)))
            chosen.append(window(calls[max(0, end - width) : end]))
        yield dataclasses.replace(program, threads=tuple(chosen))
        number += 1


def window(calls: Any) -> Any:
    """Make a thread of some calls, without noise, which the engine does not need."""
    kept = calls.astype(CALL)
    kept["noise"] = 0
    kept.flags.writeable = False
    return kept


def search(
    subject: Subject,
    suite: Suite,
    record: ReplayRecord,
    *,
    mode: str,
    executions: int,
    leaks: bool = True,
    seconds: float = SECONDS,
) -> Hunt:
    """Look for the record's invariant in windows of its program until it breaks again.

    An execution that ends in another failure hides no later one: the window goes on behind it.
    """
    judge = judge_of(suite.model)
    tried = spent = 0
    others: Counter[str] = Counter()
    end = time.monotonic() + seconds

    def is_other(failure: Failure) -> bool:
        return invariant_of(failure) != record.invariant

    for program in windows(programs_of(subject, suite, record), record):
        left = end - time.monotonic()
        if spent >= executions or left <= 0:
            break
        done = explore(
            subject,
            program,
            executions=min(PER_WINDOW, executions - spent),
            seconds=left,
            seed=record.seed,
            mode=mode,
            reuse="mixed",
            races=False,  # a race would end the execution before the outcome
            leaks=leaks,
            judge=judge,
            is_known=is_other,
        )
        tried += 1
        spent += done.executions
        for met in done.met:
            others[invariant_of(met.failure)] += met.executions
        if done.failure is not None and not is_other(done.failure):
            small = shrink(done.failure, subject, budget=SHRINKING, judge=judge)
            return Hunt(tried, spent, others, small)
    return Hunt(tried, spent, others, None)
