"""Measures the use of the machine by this process, and detects memory that grows for ever."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
import psutil

MEGABYTE = 1 << 20
LEAK_MEGABYTES = 8.0  # steady growth that is a leak unless the user says another limit

# A series keeps at most this many samples; then every second one goes and the stride doubles.
MOST_SAMPLES = 256
FEWEST_SAMPLES = 64  # programs differ in size, so that few of them show no trend
SAMPLE_SECONDS = 0.25

# Runtimes that keep freed memory on purpose; growth says nothing under them.
SANITIZERS = ("libasan", "libtsan", "libclang_rt")


@dataclass(frozen=True, slots=True)
class Usage:
    """Use of the machine by this process: CPU in percent of one processor, memory in bytes."""

    cpu_percent: float
    resident: int
    resident_peak: int
    threads_peak: int
    switches_voluntary: int
    switches_involuntary: int


class ProcessWatch:
    """Measures the process from entering to leaving the ``with`` block, sampling beside it."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._stop = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="stress-watch", daemon=True)
        self._resident_peak = 0
        self._threads_peak = 0

    def __enter__(self) -> Self:
        self._switches = self._process.num_ctx_switches()
        self._process.cpu_percent()
        self._look()
        self._sampler.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._sampler.join()

    def usage(self) -> Usage:
        """The use so far; the CPU share is since the previous call."""
        self._look()
        switches = self._process.num_ctx_switches()
        return Usage(
            cpu_percent=self._process.cpu_percent(),
            resident=self.resident(),
            resident_peak=self._resident_peak,
            threads_peak=self._threads_peak,
            switches_voluntary=switches.voluntary - self._switches.voluntary,
            switches_involuntary=switches.involuntary - self._switches.involuntary,
        )

    def resident(self) -> int:
        return int(self._process.memory_info().rss)

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        self._resident_peak = max(self._resident_peak, self.resident())
        self._threads_peak = max(self._threads_peak, self._process.num_threads())


class MemorySeries:
    """Resident memory after each round, thinned out so that a run of any length fits."""

    def __init__(self) -> None:
        self.samples: list[int] = []
        self._stride = 1
        self._rounds = 0

    def add(self, resident: int) -> None:
        if self._rounds % self._stride == 0:
            self.samples.append(resident)
            if len(self.samples) == MOST_SAMPLES:
                del self.samples[1::2]
                self._stride *= 2
        self._rounds += 1

    def judged(self) -> bool:
        """True when there are enough samples for a verdict."""
        return len(self.samples) >= FEWEST_SAMPLES

    def leak(self, threshold: int, rounds_of: str = "programs") -> str | None:
        """A sentence when the memory seems to grow for ever by ``threshold`` bytes or more.

        The first half of the rounds is warm-up: arenas, caches and the peak of the largest program
        fill up then. Over the second half two things must hold together. The line fitted through
        it rises by the threshold, which a single spike does not do. And both of its quarters rise
        by a fourth of the threshold each, which a step to a new level does not do.
        """
        if not self.judged():
            return None
        half = np.array(self.samples[len(self.samples) // 2 :], dtype=np.float64)
        slope = np.polyfit(np.arange(len(half)), half, 1)[0]
        growth = slope * (len(half) - 1)
        middle = len(half) // 2
        steady = min(rise(half[:middle]), rise(half[middle:])) >= threshold / 4
        if growth < threshold or not steady:
            return None
        rounds = self._rounds // 2
        return (
            f"resident memory grew by {growth / MEGABYTE:.1f} MB over the last {rounds} {rounds_of} "
            "and did not level off"
        )


def rise(samples: np.ndarray) -> float:
    """The rise from the median of the first half to that of the second."""
    middle = len(samples) // 2
    return float(np.median(samples[middle:]) - np.median(samples[:middle]))


def sanitized() -> bool:
    """True when a sanitizer's runtime is in this process."""
    paths = {entry.path for entry in psutil.Process().memory_maps()}
    return any(name in path for path in paths for name in SANITIZERS)
