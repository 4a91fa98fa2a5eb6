"""The legal answers of the eviction policies while other calls change the caches: passes with their
victims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import ClassVar

from pulsar_ml.specs import Answer, eviction_policy, pass_answers
from pulsar_ml.specs.eviction_policy import digest
from pulsar_ml.specs.pass_answers import PASSES
from pulsar_ml.specs.range_answers import GONE, THERE
from pulsar_ml.specs.range_spans import Key
from pulsar_ml.specs.removal_queue import INTERRUPTED, OVER

Exact = eviction_policy.Model  # judges programs of one thread

MOST_TOLD = 2  # victims that are looked for in a digest


class Model(pass_answers.Model):
    """The operations of the subject ``eviction_policy``."""

    weak: ClassVar[Mapping[str, str]] = {
        **pass_answers.Model.weak,
        "expire": "Each entry by itself, of any cache; the digest names one or two victims, which "
        "are gone. The entries and bytes that passes and removals answer add up to those that "
        "are gone. The wrappers dropped were empty.",
        "two_passes": "As expire.",
    }
    passes: ClassVar[frozenset[str]] = PASSES | {"two_passes"}
    spans: ClassVar[frozenset[str]] = pass_answers.Model.spans | passes

    def ends(self, operation: str, arguments: Sequence[int], thread: int, result: Answer) -> bool:
        if operation not in self.passes:
            return super().ends(operation, arguments, thread, result)
        status, (entries, size, kept, folded) = result
        if status not in (OVER, INTERRUPTED) or min(entries, size, kept) < 0:
            return False
        if not self.passed(operation, arguments, thread, result, kept >> 32):
            return False
        if entries > MOST_TOLD or self.strange:
            return True
        # A key can be a victim twice, if it was put again.
        chosen = [
            victims
            for victims in product(sorted(self.put_so_far), repeat=entries)
            if digest(victims) == folded and sum(map(self.length, victims)) == size
        ]
        if len(chosen) == 1:
            return all(self.victim(key, thread, chosen[0].count(key)) for key in set(chosen[0]))
        return bool(chosen)

    def victim(self, key: Key, thread: int, times: int) -> bool:
        """True if a pass may have removed an entry of the key.

        The latest, if no other was there.
        """
        if len(self.put_so_far[key]) == times and self.state[key] < GONE:
            if self.state[key] == THERE:
                return False
            self.lose(key, thread)
        return True
