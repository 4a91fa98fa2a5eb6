"""The model of a sweep's cost: a few measured figures, and arithmetic.

A wave is one Spark job whose executors write rows. The trials share the cores while the driver
hands out tasks. At the end of a wave some cores merge files and the driver adds up the ledger; the
other cores wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from pulsar_ml.campaign.plan.pace import CHUNKS_PER_TASK
from pulsar_ml.campaign.run.waves import wave_length
from pulsar_ml.campaign.store.staging import PART_ROWS

STEADY = 3  # equal waves, after which all are
LOOKED_AT = 50  # waves; where their lengths take turns, the others are like the last of these


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Measured on one machine.

    Attributes:
        job: seconds of a wave in which nothing else happens.
        task, chunk, row: seconds of an executor's core for each, beside the trials.
        schedule: seconds of the driver for each task; it sends out one after the other.
        driver_chunk: seconds of the driver at the end of a wave, for each chunk.
        merge: seconds of an executor's core at the end of a wave, for each row of a part.
        row_bytes, chunk_bytes: sizes in the files.
        memory: bytes of the driver's Python and JVM without work.
        chunk_memory: bytes of the driver for each chunk of a wave.
    """

    job: float
    task: float
    chunk: float
    row: float
    schedule: float
    driver_chunk: float
    merge: float
    row_bytes: float
    chunk_bytes: float
    memory: float
    chunk_memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The sweep to predict. ``trial``, ``task`` and ``wave`` are seconds."""

    seeds: int
    cores: int
    trial: float
    task: float
    wave: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Times of wall and driver in seconds, and sizes; ``efficiency`` is the share of trials."""

    wall: float
    waves: int
    tasks: int
    chunks: int
    driver: float
    rows_bytes: float
    ledger_bytes: float
    memory: float
    efficiency: float

    @property
    def driver_load(self) -> float:
        return self.driver / self.wall

    def core_hours(self, cores: int) -> float:
        return self.wall * cores / 3600


def predict(costs: Costs, load: Load) -> Estimate:
    """The estimate, wave by wave; waves grow like those of a sweep."""
    row = load.trial + costs.row
    chunk_trials = min(
        max(1, round(load.task / CHUNKS_PER_TASK / row)), ceil(load.seeds / load.cores)
    )
    chunks = left = ceil(load.seeds / chunk_trials)
    wall = driver = 0.0
    waves = tasks = most = steady = 0
    known: float | None = None  # seconds of a chunk, overhead included
    before = None
    while left:
        length = wave_length(load.cores, known, chunk_trials, load.wave, staged=True)
        count = min(left, length)
        wave = _wave(costs, load, count, count * chunk_trials)
        steady = steady + 1 if count == before else 0
        times = left // count if steady >= STEADY or waves >= LOOKED_AT else 1
        wall += wave.seconds * times
        driver += wave.driver * times
        tasks += wave.tasks * times
        waves += times
        left -= count * times
        most, before = max(most, count), count
        now = wave.seconds * load.cores / count
        known = now if known is None else (now + known) / 2
    return Estimate(
        wall=wall,
        waves=waves,
        tasks=tasks,
        chunks=chunks,
        driver=driver,
        rows_bytes=load.seeds * costs.row_bytes,
        ledger_bytes=chunks * costs.chunk_bytes,
        memory=costs.memory + most * costs.chunk_memory + chunks / 8,
        efficiency=load.seeds * load.trial / (wall * load.cores),
    )


@dataclass(frozen=True, slots=True)
class _Wave:
    seconds: float
    driver: float
    tasks: int


def _wave(costs: Costs, load: Load, chunks: int, rows: int) -> _Wave:
    chunk = rows / chunks * (load.trial + costs.row) + costs.chunk
    per_task = max(1, min(round(load.task / chunk), ceil(chunks / load.cores)))
    tasks = ceil(chunks / per_task)
    task = per_task * chunk + costs.task
    # The last tasks of a wave end when they end: half of one is lost on each core.
    run = (
        task
        if tasks <= load.cores
        else (chunks * chunk + tasks * costs.task) / load.cores + task / 2
    )
    schedule = tasks * costs.schedule
    parts = ceil(rows / PART_ROWS)
    merge = ceil(parts / load.cores) * min(rows, PART_ROWS) * costs.merge
    ledger = chunks * costs.driver_chunk
    return _Wave(max(run, schedule) + costs.job + merge + ledger, schedule + ledger, tasks)


def smallest_trial(
    costs: Costs, *, cores: int, task: float, wave: float, efficiency: float
) -> float:
    """The seconds of a trial with which cores spend this share of their time in trials."""
    low, high = 1e-7, 1e3
    for _ in range(60):
        middle = (low * high) ** 0.5
        load = Load(seeds=10**9, cores=cores, trial=middle, task=task, wave=wave)
        low, high = (
            (low, middle) if predict(costs, load).efficiency >= efficiency else (middle, high)
        )
    return high
