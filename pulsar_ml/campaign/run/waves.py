"""Runs a campaign in waves: the rows of a wave are on disk before the wave after the next starts.

Waves start short, so that results appear early, and grow towards the target time. The first one
ends before the next one begins, and tells how long chunks take; later ones of a stage leave what is
under way to the next wave, so that no slot waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Protocol

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.run.progress import Meter, Progress
from pulsar_ml.campaign.run.runner import ChunkFailure, Runner, Wave
from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.merge import Group, Summary, add, add_chunks, add_groups
from pulsar_ml.campaign.store.schema import split
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.errors import PulsarMlError

WAVE_TRIALS = 200_000  # bounds the memory of the writing process
WAVE_CHUNKS = 5_000  # bounds the tasks that a scheduler holds at once
# The same bounds where executors write the rows: disk space held twice, and rows of the ledger.
STAGED_TRIALS = 200_000_000
STAGED_CHUNKS = 100_000
MAX_FAILURES = 10  # chunks that may fail before a campaign gives up


class Source(Protocol):
    """A source of chunks: a plan, rounds, an exhaustive search, or a campaign without an end."""

    @property
    def trials(self) -> int | None:
        """The number of trials of all known chunks; None for a campaign without an end."""

    @property
    def chunk_trials(self) -> float:
        """The mean number of trials of a chunk."""

    def stages(self, store: RunStore) -> Iterator[Iterator[Chunk]]:
        """Yield stages of independent chunks.

        A stage is requested when the one before is stored.
        """


@dataclass(slots=True)
class Outcome:
    """The result of a campaign.

    ``status`` is finished, interrupted, failed, or stopped if endless.
    """

    status: str = "finished"
    summary: Summary = field(default_factory=Summary)
    failures: list[ChunkFailure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    waves: int = 0
    seconds: float = 0.0
    earlier: int = 0  # trials of earlier processes of a resumed run


def wave_length(
    slots: int,
    chunk_seconds: float | None,
    chunk_trials: float,
    target_seconds: float,
    *,
    staged: bool = False,
) -> int:
    """Return the chunks of the next wave: one a slot until a chunk's time is known, then more."""
    rounds = 1 if not chunk_seconds else max(1, round(target_seconds / chunk_seconds))
    chunks, trials = (STAGED_CHUNKS, STAGED_TRIALS) if staged else (WAVE_CHUNKS, WAVE_TRIALS)
    bounded = min(slots * rounds, chunks, int(trials / max(chunk_trials, 1)))
    return max(1, bounded)


def run_campaign(
    plan: Source,
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
    staged: bool = False,
    cores: int = 1,
) -> Outcome:
    """Run every chunk of a source that is not ``done``; results go to ``store`` and ``outcome``.

    The outcome is filled as waves finish; pass one in to keep it when this function raises, as it
    does when a wave cannot be written. With ``staged`` the runner writes rows to files, so waves
    may be larger. ``cores`` are those of the runner, of which progress says how much was inside
    runs. ``show`` is called while waves run, ``on_found`` once for each new signature. A
    failed chunk is left out and named in the outcome; the campaign gives up after ``MAX_FAILURES``
    failed chunks or a failure of the runner itself.
    """
    outcome = outcome or Outcome()
    meter = Meter(outcome.summary, plan.trials, show, cores=cores)
    stages = plan.stages(store)
    waiting: Iterator[Chunk] = iter(())
    chunk_seconds: float | None = None
    stage_number = 0
    hurried = False
    while True:
        length = wave_length(
            runner.slots, chunk_seconds, plan.chunk_trials, wave_seconds, staged=staged
        )
        over = stopped()
        chunks = [] if over else list(islice(waiting, length))
        if not chunks and not runner.under_way:
            stage = None if over else next(stages, None)
            if stage is None:
                break
            stage_number += 1
            waiting = (chunk for chunk in stage if chunk.chunk_id not in done)
            meter.total = plan.trials
            continue
        wave_began = time.monotonic()
        carry = bool(chunks) and chunk_seconds is not None
        try:
            watch = meter.watch(outcome.waves, stopped, stage_number, carry=carry)
            wave = runner.run(job, chunks, watch)
        except PulsarMlError as error:
            outcome.failures.append(ChunkFailure(None, str(error)))
            break
        except KeyboardInterrupt:  # a second Ctrl-C: this wave is not awaited
            hurried = True
            break
        _keep(wave, outcome, store, on_found)
        meter.kept()
        seconds = time.monotonic() - wave_began
        if wave.kept and chunks:
            # Smoothed by half: one slow wave does not make the next one a single round.
            now = seconds * runner.slots / len(chunks)
            chunk_seconds = now if chunk_seconds is None else (now + chunk_seconds) / 2
        waiting = chain(wave.left, waiting)
        outcome.failures += wave.failures
        outcome.warnings += wave.warnings
        if len(outcome.failures) >= MAX_FAILURES:
            break
        meter.report(outcome.waves, stage_number)
    outcome.seconds = meter.seconds
    outcome.status = "finished"
    complete = outcome.summary.trials == plan.trials
    if hurried or (stopped() and not complete):
        outcome.status = "stopped" if plan.trials is None and not hurried else "interrupted"
    elif outcome.failures or not complete:
        outcome.status = "failed"
    return outcome


def _keep(wave: Wave, outcome: Outcome, store: RunStore, on_found: Callable[[Group], None]) -> None:
    if not wave.kept:
        return
    known = set(outcome.summary.groups)
    if wave.staged is not None:
        for part in wave.staged.parts[:-1]:  # the last is counted below
            store.publish_part(outcome.waves, part)
            outcome.waves += 1
        store.publish_part(outcome.waves, wave.staged.parts[-1])
        wave.staged.remove()
        add_chunks(outcome.summary, wave.staged.chunks)
        changed = add_groups(outcome.summary, wave.groups)
    else:
        rows = wave.table()
        trials, violations = split(rows)
        chunks = ledger_of(rows)
        store.write_wave(outcome.waves, trials, violations, chunks)
        changed = add(outcome.summary, trials, violations, chunks)
    store.write_records(changed)
    outcome.waves += 1
    for group in changed:
        if group.signature not in known:
            on_found(group)
