"""Chooses how many chunks one task runs, by the times of earlier trials of the same run.

The plan fixes the chunks, which are small. A task is a sequence of chunks of one suite that takes
about the requested time. The probe before the run decides only the size of chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pulsar_ml.campaign.plan.plan import Chunk

CHUNKS_PER_TASK = 4  # by the probe's time, which may be wrong by a factor of four


class Pace:
    """Times of trials by suite; a mean of old and new times, so that one slow wave counts half."""

    def __init__(self, seconds: float) -> None:
        """``seconds`` is the wanted duration of a task."""
        self._seconds = seconds
        self._trial: dict[str, float] = {}
        self._alone: set[int] = set()

    def learn(self, chunks: pa.Table) -> None:
        """Learn times from rows of the ledger."""
        sums = chunks.group_by("suite").aggregate([("wall_us", "sum"), ("trials", "sum")])
        for line in sums.to_pylist():
            now = line["wall_us_sum"] / 1e6 / max(1, line["trials_sum"])
            known = self._trial.get(line["suite"], now)
            self._trial[line["suite"]] = (known + now) / 2

    def apart(self, chunks: Iterable[Chunk]) -> None:
        """Make each of these chunks a task of its own, so that a failing one is known."""
        self._alone.update(chunk.chunk_id for chunk in chunks)

    def tasks(self, chunks: Sequence[Chunk], slots: int) -> list[list[Chunk]]:
        """Group all chunks, in order, into tasks of one suite; at least ``slots`` tasks if
        possible.

        Chunks of a suite without known times are tasks of their own.
        """
        total = sum(self._cost(chunk) or 0.0 for chunk in chunks)
        limit = min(self._seconds, total / slots) * (1 + 1e-9)
        tasks: list[list[Chunk]] = []
        open_tasks: dict[str, tuple[list[Chunk], float]] = {}
        for chunk in chunks:
            cost = self._cost(chunk)
            task, spent = open_tasks.get(chunk.suite, ([], 0.0))
            if cost is not None and task and spent + cost <= limit:
                task.append(chunk)
            else:
                task, spent = [chunk], 0.0
                tasks.append(task)
            if cost is None:
                open_tasks.pop(chunk.suite, None)
            else:
                open_tasks[chunk.suite] = task, spent + cost
        return tasks

    def _cost(self, chunk: Chunk) -> float | None:
        seconds = self._trial.get(chunk.suite)
        return None if seconds is None or chunk.chunk_id in self._alone else seconds * len(chunk)
