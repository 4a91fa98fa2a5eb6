"""How many chunks one task runs, by what trials of their suite took in this very run.

Chunks are small and fixed by the plan, whatever a trial takes. A task is a run of chunks of one suite that
takes about the time that was asked for; the probe before the run decides the size of chunks, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pulsar_ml.campaign.plan.plan import Chunk

CHUNKS_PER_TASK = 8  # as the probe has it: trials may take an eighth, or eight times as long


class Pace:
    """What trials take, suite by suite; the mean of old and new counts, so that one slow wave is not all."""

    def __init__(self, seconds: float) -> None:
        """``seconds`` is what a task should take."""
        self._seconds = seconds
        self._trial: dict[str, float] = {}
        self._alone: set[int] = set()

    def learn(self, chunks: pa.Table) -> None:
        """From rows of the ledger."""
        sums = chunks.group_by("suite").aggregate([("wall_us", "sum"), ("trials", "sum")])
        for line in sums.to_pylist():
            now = line["wall_us_sum"] / 1e6 / max(1, line["trials_sum"])
            known = self._trial.get(line["suite"], now)
            self._trial[line["suite"]] = (known + now) / 2

    def apart(self, chunks: Iterable[Chunk]) -> None:
        """From now on each of these is a task of its own, so that one which fails is known."""
        self._alone.update(chunk.chunk_id for chunk in chunks)

    def tasks(self, chunks: Sequence[Chunk], slots: int) -> list[list[Chunk]]:
        """All chunks in runs of one suite, in their order, and not fewer runs than ``slots`` if that can be.

        Chunks of a suite of which nothing is known yet are tasks of their own.
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
