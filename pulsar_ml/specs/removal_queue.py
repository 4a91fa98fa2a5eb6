"""Passes over the range caches, one call after the other, under each eviction policy."""

from __future__ import annotations

from pulsar_ml.specs import range_cache
from pulsar_ml.specs.policies import Pass
from pulsar_ml.specs.range_cache import Words

OVER, INTERRUPTED = 0, 1

MOST_STEPS = 4096


class Model(range_cache.Model):
    """The operations of the subject ``removal_queue``."""

    operations = range_cache.Model.operations | {"expire", "free", "configure"}

    def expire(self, words: Words, thread: int, age: int, watched: int) -> int:
        self.clock += 1
        return self.run(words, Pass(self.clock, threshold=self.clock - age))

    def free(self, words: Words, thread: int, amount: int, watched: int) -> int:
        self.clock += 1
        return self.run(words, Pass(self.clock, target=amount << self.length_shift))

    def configure(self, words: Words, thread: int, max_requeue: int, extend: int) -> int:
        self.rules.max_requeue = max_requeue
        self.rules.extend = bool(extend)
        return 0

    def run(self, words: Words, run: Pass) -> int:
        more = self.policy.run(run, MOST_STEPS)
        words[:] = [run.entries, run.bytes, run.requeued, run.missing]
        return INTERRUPTED if more else OVER
