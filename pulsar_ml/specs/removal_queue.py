"""The removal queue, one call after the other: its passes take wrappers from the head of the queue."""

from __future__ import annotations

from collections.abc import Callable

from pulsar_ml.specs import range_cache
from pulsar_ml.specs.range_cache import Words, Wrapper

OVER, INTERRUPTED = 0, 1

MOST_STEPS = 4096

# Whether a pass ends at a wrapper, given the bytes removed so far.
Stop = Callable[[Wrapper, int], bool]


class Model(range_cache.Model):
    """The operations of the subject ``removal_queue``."""

    operations = range_cache.Model.operations | {"expire", "free", "configure"}

    def expire(self, words: Words, thread: int, age: int, watched: int) -> int:
        self.clock += 1
        threshold = self.clock - age
        return self.run(words, lambda wrapper, removed: wrapper.timestamp >= threshold)

    def free(self, words: Words, thread: int, amount: int, watched: int) -> int:
        self.clock += 1
        target = amount << self.length_shift
        return self.run(words, lambda wrapper, removed: removed >= target)

    def configure(self, words: Words, thread: int, max_requeue: int, extend: int) -> int:
        self.max_requeue = max_requeue
        self.extend = bool(extend)
        return 0

    def run(self, words: Words, stop: Stop) -> int:
        for _ in range(MOST_STEPS):
            if not self.queue:
                return OVER
            wrapper = self.queue[0]
            if wrapper.entry is None:
                self.queue.popleft()
                words[3] += 1
            elif stop(wrapper, words[1]):
                return OVER
            elif self.keeps(wrapper):
                self.requeue(wrapper)
                words[2] += 1
            else:
                self.queue.popleft()
                words[0] += 1
                words[1] += self.take_out(wrapper)
        return INTERRUPTED

    def keeps(self, wrapper: Wrapper) -> bool:
        assert wrapper.entry is not None
        if self.extend and wrapper.accessed:
            return True
        return wrapper.requeues < self.max_requeue and wrapper.entry.expected_reads() >= 1

    def requeue(self, wrapper: Wrapper) -> None:
        """To the tail, with a fresh timestamp; one budget for both reasons to keep it."""
        self.queue.rotate(-1)
        wrapper.timestamp = self.clock
        wrapper.accessed = False
        wrapper.requeues += 1
