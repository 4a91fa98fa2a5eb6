"""Confirms that memory leaks: one program is repeated in a process of its own, and memory grows.

Programs of different seeds differ in size, so memory that grows from one to the next proves
nothing. The same program needs the same memory each time once it has settled.
"""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from pulsar_ml.campaign.local.watch import FEWEST_SAMPLES, MEGABYTE, MemorySeries
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import replay_trial
from pulsar_ml.harness.search.child import Limits, LostError, Send, watch

CANDIDATES = 3  # programs of which one must show the growth
MOST_REPEATS = 1_000
LEAST_GROWTH = 2 * MEGABYTE  # an allocator's noise stays below
LIMITS = Limits(wall=150.0, cpu=None, memory=None, address_space=None)


def confirmed_leak(
    suite: Suite, records: Iterable[ReplayRecord], *, programs: int, threshold: int
) -> tuple[ReplayRecord, str] | None:
    """Return the first record whose program keeps needing more memory, and a sentence about it.

    ``programs`` is the number of programs over which memory grew by ``threshold`` bytes or more:
    as many repeats, or MOST_REPEATS, must show as much in proportion. None when no program does,
    or when its process was lost.
    """
    repeats = min(max(programs, FEWEST_SAMPLES), MOST_REPEATS)
    least = max(threshold * repeats // max(programs, repeats), min(threshold, LEAST_GROWTH))
    for record in records:
        message = growth_of(suite, record, repeats=repeats, threshold=least)
        if message:
            return record, message
    return None


def growth_of(suite: Suite, record: ReplayRecord, *, repeats: int, threshold: int) -> str:
    """Repeat a record's program in a child process; describe the growth of its memory, or ""."""
    found: list[str] = []

    def work(tell: Send) -> None:
        memory, process = MemorySeries(), psutil.Process()
        for _ in range(repeats):
            replay_trial(suite, record)
            memory.add(int(process.memory_info().rss))
            tell("")  # a sign of life
        tell(memory.leak(threshold, f"repeats of the program of seed {record.seed}") or "")

    try:
        watch(work, found.append, limits=LIMITS)
    except LostError:
        return ""
    return found[-1]
