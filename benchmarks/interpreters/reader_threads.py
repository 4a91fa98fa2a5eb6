"""Threads that read one cache: ``python -m benchmarks.interpreters.reader_threads PLACE`` prints
how they scale.

It needs no package but the core, so that interpreters without packages can run it.
"""

from __future__ import annotations

import sys
import threading
from time import perf_counter, thread_time

from pulsar_ml import EntryCacheManager, RangeCache

HITS = 200_000  # of each thread
ROUNDS = 3
FIRST, LAST = (1, 0), (1, 1_999)
SECOND = {"another": LAST, "same": FIRST}  # what the second thread reads


class Readers:
    """Threads that read one place of a cache each: their time together, and processor time."""

    def __init__(self, cache: RangeCache, places: list[tuple[int, int]]) -> None:
        self.cache = cache
        self.busy = 0.0
        start = threading.Barrier(len(places) + 1)
        threads = [threading.Thread(target=self.read, args=(at, start)) for at in places]
        for thread in threads:
            thread.start()
        start.wait()
        begun = perf_counter()
        for thread in threads:
            thread.join()
        self.elapsed = perf_counter() - begun

    def read(self, at: tuple[int, int], start: threading.Barrier) -> None:
        cache = self.cache
        start.wait()
        begun = thread_time()
        for _ in range(HITS):
            entry = cache.get(at)
            assert entry is not None
            entry.release()
        self.busy = max(self.busy, thread_time() - begun)


def rounds(second: tuple[int, int]) -> list[tuple[Readers, Readers]]:
    """One reader and two readers, in turn."""
    with EntryCacheManager(max_size=None) as manager:
        cache = manager.range_cache("a")
        for number in range(LAST[1] + 1):
            cache.put((1, number), b"x" * 100)
        return [
            (Readers(cache, [FIRST]), Readers(cache, [FIRST, second])) for _ in range(ROUNDS)
        ]  # fmt: skip


def scaling(second: tuple[int, int]) -> float:
    """Hits of two threads in a time over those of one."""
    pairs = rounds(second)
    return 2 * min(one.elapsed for one, _ in pairs) / min(two.elapsed for _, two in pairs)


def hindrance(second: tuple[int, int]) -> float:
    """Processor time of a hit beside another reader over that of a hit alone."""
    pairs = rounds(second)
    return min(two.busy for _, two in pairs) / min(one.busy for one, _ in pairs)


if __name__ == "__main__":
    print(scaling(SECOND[sys.argv[1]]))
