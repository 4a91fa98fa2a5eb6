"""The entry cache manager's side of its traces: three managed ledgers, thresholds and eviction."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pulsar_ml import EntryCacheManager, RangeCache

TICK = 4_000_000_000  # nanoseconds
NAMES = "abc"
LEDGERS = (3, 4)
ENTRIES = 10


def trace(random: Random, length: int) -> list[str]:
    """Three caches over two ledger ids each. Time goes on by a tick an operation."""
    sizes = (100, 200, 400, 10_000)
    settings = f"{random.choice((0, 1, 5))} {random.randrange(2)} {random.choice((2, 10, 40))}"
    watermark = random.choice((50, 80, 90, 100))
    lines = [f"new manager {random.choice(sizes)} {watermark} {settings} {random.randrange(2)}"]
    for now in range(1, length + 1):
        cache, ledger, entry = (
            random.randrange(len(NAMES)),
            random.choice(LEDGERS),
            random.randrange(ENTRIES),
        )
        operation = random.choices(
            ["put", "read", "invalidate", "ledger", "clear", "remove", "tick", "resize"],
            [40, 16, 3, 2, 1, 1, 8, 1],
        )[0]
        lines.append(
            {
                "put": f"put {cache} {ledger} {entry} {8 + 3 * entry} {random.randrange(4)} {now}",
                "read": f"read {cache} {ledger} {entry} {now}",
                "invalidate": f"invalidate {cache} {ledger} {entry} {now}",
                "ledger": f"ledger {cache} {ledger} {now}",
                "tick": f"tick 0 {now}",
                "resize": f"resize {random.choice(sizes)} {random.choice((50, 90))} {now}",
            }.get(operation, f"{operation} {cache} {now}")
        )
    return lines


class Manager:
    """The manager without a thread: an insertion that makes the caches too large evicts."""

    def __init__(self, words: Sequence[str], policy: str) -> None:
        self.now = 0
        self.manager = EntryCacheManager(
            max_size=int(words[2]),
            watermark=int(words[3]) / 100,
            time_threshold_ms=int(words[6]) * TICK // 1_000_000,
            policy=policy,
            max_requeue_count=int(words[4]),
            extend_ttl_of_recently_accessed=words[5] == "1",
            clock=lambda: self.now,
        )
        self.caches = [self.manager.range_cache(name) for name in NAMES]

    def __call__(self, words: Sequence[str]) -> str:
        numbers = [int(word) for word in words[1:]]
        self.now = numbers[-1] * TICK
        answer = self.apply(words[0], numbers)
        stats = self.manager.stats()
        counts = [
            stats.size,
            *(cache.size for cache in self.caches),
            stats.inserted_entries,
            stats.evicted_entries,
            stats.evictions,
        ]
        return " ".join([answer, *map(str, counts)])

    def apply(self, operation: str, numbers: Sequence[int]) -> str:
        if operation == "tick":
            self.manager.periodic_eviction(now_ns=self.now - TICK // 2)
            return "done"
        if operation == "resize":
            self.manager.configure(max_size=numbers[0], watermark=numbers[1] / 100)
            return "done"
        cache = self.caches[numbers[0]]
        if operation == "clear":
            cache.clear()
        elif operation == "remove":
            self.manager.remove_range_cache(NAMES[numbers[0]])
            self.caches[numbers[0]] = self.manager.range_cache(NAMES[numbers[0]])
        elif operation == "ledger":
            first, end = (numbers[1], 0), (numbers[1] + 1, 0)
            cache.remove_range(first, end, last_inclusive=False)
        else:
            return self.on_entry(cache, operation, (numbers[1], numbers[2]), numbers[3:])
        return "done"

    def on_entry(
        self, cache: RangeCache, operation: str, at: tuple[int, int], numbers: Sequence[int]
    ) -> str:
        if operation == "put":
            put = cache.put(at, bytes(numbers[0]), expected_reads=numbers[1])
            return "true" if put else "false"
        if operation == "invalidate":
            cache.invalidate_entries(at)
            return "done"
        entry = cache.get(at)
        if entry is None:
            return "miss"
        with entry:
            entry.copy().release()
            return f"hit {len(entry)}"
