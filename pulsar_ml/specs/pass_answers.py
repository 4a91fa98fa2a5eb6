"""The legal answers of eviction passes while other calls change the caches: passes remove the
entries that they answer, from any cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, range_answers, removal_queue
from pulsar_ml.specs.range_answers import EXISTS, OK
from pulsar_ml.specs.range_spans import Key, Span
from pulsar_ml.specs.removal_queue import INTERRUPTED, OVER

Exact = removal_queue.Model  # judges programs of one thread

PASSES = frozenset({"expire", "free"})
EMPTIES = frozenset(
    {0, 1, 4, 5, 6, 7}
)  # kinds of policies whose size pass ends early only when nothing is left


class Model(range_answers.Model):
    """The operations of the subject ``removal_queue``."""

    weak: ClassVar[Mapping[str, str]] = {
        **range_answers.Model.weak,
        "expire": "Each entry by itself, of any cache. The entries and bytes that passes and "
        "removals answer add up to those that are gone. The wrappers dropped were empty.",
        "free": "As expire. A pass that came to its end and freed too little leaves no entry that "
        "the caller had put or seen, except under the stash and the scan. Under the released "
        "queue it may leave one that only a duplicate showed: its put may not have queued it yet.",
        "configure": "The answer says nothing.",
    }
    passes: ClassVar[frozenset[str]] = PASSES
    spans: ClassVar[frozenset[str]] = range_answers.Model.spans | PASSES

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        super().__init__(settings, threads)
        self.empties = settings["policy"] in EMPTIES
        # Keys whose latest entry a duplicate met. The released queue answers that a position is
        # taken without waiting for the put that took it and has yet to queue its entry.
        self.unqueued: frozenset[Key] = frozenset()

    def canonical(self) -> object:
        return super().canonical(), self.unqueued

    def put(self, key: Key, thread: int, result: Answer, expected: int) -> bool:
        if result[0] == OK:
            self.unqueued -= {key}
        elif result[0] == EXISTS and self.below_zero and not self.saw(key, thread):
            self.unqueued |= {key}
        return super().put(key, thread, result, expected)

    def begins(
        self,
        operation: str,
        arguments: Sequence[int],
        *,
        thread: int = 0,
        result: Answer | None = None,
    ) -> bool:
        if operation not in self.passes:
            return super().begins(operation, arguments, thread=thread, result=result)
        self.opens(thread, -1, 0, self.n_keys - 1, takes=True, tells=True)
        return True

    def ends(self, operation: str, arguments: Sequence[int], thread: int, result: Answer) -> bool:
        if operation not in self.passes:
            return super().ends(operation, arguments, thread, result)
        status, (entries, size, requeued, missing) = result
        if status not in (OVER, INTERRUPTED) or min(entries, size, requeued, missing) < 0:
            return False
        return self.passed(operation, arguments, thread, result, missing)

    def passed(
        self, operation: str, arguments: Sequence[int], thread: int, result: Answer, missing: int
    ) -> bool:
        """A pass ended that dropped so many empty wrappers."""
        status, (entries, size, *_) = result
        span = self.open.pop(thread, None)
        if span is None:
            return False
        if (
            operation == "free"
            and status == OVER
            and size < arguments[0] << self.shift
            and self.empties
        ):
            self.removed(self.queued(span, thread), thread)
        self.loose += entries
        self.loose_bytes += size
        self.dropped += entries + missing
        return self.empty(self.dropped)

    def queued(self, span: Span, thread: int) -> Span:
        """The span without the entries that only a duplicate showed: they may not be queued yet."""
        began = tuple(
            (key, puts, sure)
            for key, puts, sure in span.began
            if key not in self.unqueued or self.saw(key, thread)
        )
        return span._replace(began=began)
