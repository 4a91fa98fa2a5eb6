"""The cache manager, one call after the other: its books, and evictions that run before a call
returns.
"""

from __future__ import annotations

from collections.abc import Mapping

from pulsar_ml.specs import range_cache
from pulsar_ml.specs.cached import Entry
from pulsar_ml.specs.policies import Pass
from pulsar_ml.specs.range_cache import HIT, MISS, OK, Words

DISABLED = 5

SLICE = 1 << 16


class Model(range_cache.Model):
    """The operations of the subject ``cache_manager`` but ``serve``."""

    operations = range_cache.Model.operations | {
        *("tick", "trigger", "evict", "free", "configure", "configure_policy", "stats"),
        *("serves", "miss", "fork"),
    }

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        super().__init__(settings, threads)
        self.bytes = self.inserted = self.evicted = self.evictions = 0
        self.set(settings["max_size"], settings["watermark"], 0)

    def set(self, max_size: int, watermark: int, ticks: int) -> None:
        self.max_size = max_size << self.length_shift
        self.threshold = self.max_size * 98 // 100
        self.low_mark = self.max_size * watermark // 100
        self.time_to_live = ticks

    # The operations of the caches, counted --------------------------------------------------------

    def insert(
        self, words: Words, thread: int, cache: int, key: int, expected_reads: int, late: int
    ) -> int:
        if not self.max_size:
            self.new_entry(thread, expected_reads)
            return DISABLED
        status = super().insert(words, thread, cache, key, expected_reads, late)
        if status == OK:
            self.bytes += words[1]
            self.inserted += 1
            self.look(self.clock - late)
        return status

    def put_foreign(self, words: Words, thread: int, cache: int, key: int) -> int:
        status = super().put_foreign(words, thread, cache, key)
        return status if self.max_size else DISABLED

    def find(self, cache: int, key: int) -> Entry | None:
        return super().find(cache, key) if self.max_size else None

    def remove_keys(self, words: Words, cache: int, first: int, last: int) -> int:
        entries, size = words[2:]
        status = super().remove_keys(words, cache, first, last)
        self.removed(words[2] - entries, words[3] - size)
        return status

    def removed(self, entries: int, size: int) -> None:
        self.evicted += entries
        self.bytes -= size

    # Passes ---------------------------------------------------------------------------------------

    def complete(self, run: Pass) -> int:
        while self.policy.run(run, SLICE):
            pass
        self.removed(run.entries, run.bytes)
        return run.entries

    def evict_over(self, run: Pass) -> int:
        """A size pass to the watermark, if the size is above the threshold; entries removed."""
        run.target = self.bytes - self.low_mark
        if self.bytes <= self.threshold or run.target <= 0:
            return 0
        self.evictions += 1
        return self.complete(run)

    def work(self, now: int) -> None:
        """A task: passes to the watermark, until the size fits or nothing more can go."""
        while self.evict_over(Pass(now)) and self.bytes > self.threshold:
            pass

    def look(self, now: int) -> bool:
        if self.bytes <= self.threshold:
            return False
        self.work(now)
        return True

    def tick(self, words: Words, thread: int) -> int:
        self.clock += 1
        freed = self.complete(Pass(self.clock, threshold=self.clock - self.time_to_live))
        freed += self.evict_over(Pass(self.clock))
        if freed and self.bytes > self.threshold:
            self.work(self.clock)
        return 0

    def trigger(self, words: Words, thread: int) -> int:
        self.clock += 1
        return HIT if self.look(self.clock) else MISS

    def evict(self, words: Words, thread: int) -> int:
        self.clock += 1
        run = Pass(self.clock)
        self.evict_over(run)
        words[:] = [run.entries, run.bytes, run.requeued, run.missing]
        return 0

    def free(self, words: Words, thread: int, amount: int) -> int:
        self.clock += 1
        run = Pass(self.clock, target=amount << self.length_shift)
        self.complete(run)
        words[:] = [run.entries, run.bytes, run.requeued, run.missing]
        return 0

    # Settings and counters ------------------------------------------------------------------------

    def configure(
        self, words: Words, thread: int, max_size: int, watermark: int, ticks: int
    ) -> int:
        self.clock += 1
        self.set(max_size, watermark, ticks)
        self.look(self.clock)
        return 0

    def configure_policy(self, words: Words, thread: int, max_requeue: int, extend: int) -> int:
        self.clock += 1
        self.rules.max_requeue = max_requeue
        self.rules.extend = bool(extend)
        self.look(self.clock)
        return 0

    def stats(self, words: Words, thread: int) -> int:
        words[:] = [self.bytes, self.inserted, self.evicted, self.evictions]
        return 0

    def serves(self, words: Words, thread: int) -> int:
        """Without `serve` there is no thread."""
        return MISS

    def miss(self, words: Words, thread: int, entries: int, size: int) -> int:
        return 0

    def fork(self, words: Words, thread: int) -> int:
        return 0

    def check(self) -> None:
        """Everything is given back; what is counted stays counted."""
        super().check()
        self.evicted, self.bytes = self.inserted, 0
