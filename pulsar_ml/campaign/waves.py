"""Drives a plan through a runner in waves: each wave's rows are on disk before the next one starts.

Waves start short, so that there is something to see and to keep, and grow towards the target time,
because every wave ends with some places idle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from pulsar_ml.campaign.chunk import Job
from pulsar_ml.campaign.merge import Group, Summary, add
from pulsar_ml.campaign.plan import Chunk, Plan
from pulsar_ml.campaign.runner import ChunkFailure, Runner, Watch, Wave
from pulsar_ml.campaign.schema import split
from pulsar_ml.campaign.store import RunStore
from pulsar_ml.errors import PulsarMlError

WAVE_TRIALS = 200_000  # bounds the memory of the process that writes a wave
WAVE_CHUNKS = 5_000  # bounds the tasks that a scheduler holds at once
MAX_FAILURES = 10  # chunks that may fail before a campaign gives up


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a campaign; ``signatures`` and ``violations`` are those of finished waves.

    ``earlier`` of the trials were made before this process went on with the campaign.
    """

    trials: int
    total: int
    violations: int
    signatures: int
    elapsed: float
    earlier: int = 0

    @property
    def rate(self) -> float:
        return (self.trials - self.earlier) / self.elapsed if self.elapsed > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.trials) / self.rate if self.trials > self.earlier else None


@dataclass(slots=True)
class Outcome:
    """How a campaign ended. ``status`` is finished, interrupted or failed."""

    status: str = "finished"
    summary: Summary = field(default_factory=Summary)
    failures: list[ChunkFailure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    waves: int = 0
    seconds: float = 0.0
    earlier: int = 0  # trials that were there before


def wave_length(slots: int, chunk_seconds: float | None, chunk_trials: float, target_seconds: float) -> int:
    """Chunks in the next wave: one for each slot until a chunk's time is known, then as many as fit."""
    rounds = 1 if not chunk_seconds else max(1, round(target_seconds / chunk_seconds))
    bounded = min(slots * rounds, WAVE_CHUNKS, int(WAVE_TRIALS / max(chunk_trials, 1)))
    return max(1, bounded)


def run_campaign(
    plan: Plan,
    job: Job,
    runner: Runner,
    store: RunStore,
    *,
    outcome: Outcome | None = None,
    done: Container[int] = (),
    stopped: Callable[[], bool] = lambda: False,
    show: Callable[[Progress], None] = lambda progress: None,
    on_found: Callable[[Group], None] = lambda group: None,
    wave_seconds: float = 30.0,
) -> Outcome:
    """Runs every chunk of a plan that is not ``done``; what finished is in ``store`` and in the outcome.

    The outcome is filled as waves finish; pass one in to have it also when this raises, as it does
    when a wave cannot be written. ``show`` is called while waves run, ``on_found`` once for each new
    signature. A chunk that fails is left out and named in the outcome; after ``MAX_FAILURES`` of
    them, or one of the runner itself, the campaign gives up.
    """
    outcome = outcome or Outcome()
    began = time.monotonic()
    waiting: Iterator[Chunk] = (chunk for chunk in plan.chunks() if chunk.chunk_id not in done)
    chunk_seconds: float | None = None
    hurried = False
    while not stopped():
        length = wave_length(runner.slots, chunk_seconds, plan.seeds / plan.pieces, wave_seconds)
        chunks = list(islice(waiting, length))
        if not chunks:
            break
        wave_began = time.monotonic()
        try:
            wave = runner.run(job, chunks, _watch(plan, outcome, began, stopped, show))
        except PulsarMlError as error:
            outcome.failures.append(ChunkFailure(None, str(error)))
            break
        except KeyboardInterrupt:  # the user does not wait for this wave
            hurried = True
            break
        _keep(wave, outcome, store, on_found)
        seconds = time.monotonic() - wave_began
        if wave.batches:
            # Smoothed by half: one slow wave does not make the next one a single round.
            now = seconds * runner.slots / len(chunks)
            chunk_seconds = now if chunk_seconds is None else (now + chunk_seconds) / 2
        waiting = chain(wave.left, waiting)
        outcome.failures += wave.failures
        outcome.warnings += wave.warnings
        if len(outcome.failures) >= MAX_FAILURES:
            break
        show(_progress(plan, outcome, began, 0, 0))
    outcome.seconds = time.monotonic() - began
    outcome.status = "finished"
    complete = outcome.summary.trials == plan.trials
    if hurried or (stopped() and not complete):
        outcome.status = "interrupted"
    elif outcome.failures or not complete:
        outcome.status = "failed"
    return outcome


def _keep(wave: Wave, outcome: Outcome, store: RunStore, on_found: Callable[[Group], None]) -> None:
    if not wave.batches:
        return
    trials, violations = split(wave.table())
    store.write_wave(outcome.waves, trials, violations)
    known = set(outcome.summary.groups)
    changed = add(outcome.summary, trials, violations)
    store.write_records(changed)
    outcome.waves += 1
    for group in changed:
        if group.signature not in known:
            on_found(group)


def _watch(
    plan: Plan,
    outcome: Outcome,
    began: float,
    stopped: Callable[[], bool],
    show: Callable[[Progress], None],
) -> Watch:
    sums = [0, 0]

    def done(trials: int, violations: int) -> None:
        sums[0] += trials
        sums[1] += violations
        show(_progress(plan, outcome, began, *sums))

    return Watch(stopped, done)


def _progress(plan: Plan, outcome: Outcome, began: float, trials: int, violations: int) -> Progress:
    summary = outcome.summary
    return Progress(
        trials=summary.trials + trials,
        total=plan.trials,
        violations=summary.violations + violations,
        signatures=len(summary.groups),
        elapsed=time.monotonic() - began,
        earlier=outcome.earlier,
    )
