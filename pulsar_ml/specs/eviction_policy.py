"""The eviction policies as a subject: a pass answers a digest of its victims in their order."""

from __future__ import annotations

from collections.abc import Iterable

from pulsar_ml.specs import removal_queue
from pulsar_ml.specs.policies import Pass
from pulsar_ml.specs.range_cache import Words

MOST_KEYS = 128


def digest(victims: Iterable[tuple[int, int]]) -> int:
    """One number for caches and keys in an order."""
    folded = 0
    for cache, key in victims:
        folded = folded * 31 + cache * MOST_KEYS + key + 1
    return folded % 2**64


class Model(removal_queue.Model):
    """The operations of the subject ``eviction_policy``; passes answer victims instead of empty
    wrappers.
    """

    def configure(
        self, words: Words, thread: int, max_requeue: int, extend: int, life: int = 0
    ) -> int:
        super().configure(words, thread, max_requeue, extend)
        self.rules.life = life
        return 0

    def run(self, words: Words, run: Pass) -> int:
        status = super().run(words, run)
        words[2:] = [run.requeued + (run.missing << 32), digest(run.victims)]
        return status
