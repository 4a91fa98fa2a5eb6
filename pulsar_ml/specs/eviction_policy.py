"""The eviction policies as a subject: a pass answers a digest of its victims in their order."""

from __future__ import annotations

from collections.abc import Iterable

from pulsar_ml.specs import removal_queue
from pulsar_ml.specs.policies import Pass
from pulsar_ml.specs.range_cache import Words
from pulsar_ml.specs.removal_queue import OVER

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

    operations = removal_queue.Model.operations | {"two_passes"}

    def configure(
        self, words: Words, thread: int, max_requeue: int, extend: int, life: int = 0
    ) -> int:
        super().configure(words, thread, max_requeue, extend)
        self.rules.life = life
        return 0

    def two_passes(self, words: Words, thread: int, age: int, amount: int, other: int) -> int:
        """A time pass and a size pass, or two size passes, take turns, each until a wrapper leaves
        the policy.
        """
        self.clock += 2
        victims: list[tuple[int, int]] = []
        first = self.clock - 1
        runs = [
            Pass(first, target=other << self.length_shift, victims=victims)
            if other
            else Pass(first, threshold=first - age, victims=victims),
            Pass(self.clock, target=amount << self.length_shift, victims=victims),
        ]
        left = list(runs)
        while left:
            left = [run for run in left if self.policy.take_turn(run)]
        words[:] = [
            sum(run.entries for run in runs),
            sum(run.bytes for run in runs),
            sum(run.requeued + (run.missing << 32) for run in runs),
            digest(victims),
        ]
        return OVER

    def run(self, words: Words, run: Pass) -> int:
        status = super().run(words, run)
        words[2:] = [run.requeued + (run.missing << 32), digest(run.victims)]
        return status
