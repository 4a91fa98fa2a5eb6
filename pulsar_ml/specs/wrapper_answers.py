"""The legal answers of raw wrappers while other calls change them: whose value a look may show,
when a miss is due.

The model ``entry_wrapper`` says what each call answers when nothing runs beside it. Here a wrapper
has no identity, for which one the pool hands out depends on the schedule; of each key the model
knows the values that were filled in and how often it was cleared, and of each thread how much of
that it must have seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, entry_wrapper
from pulsar_ml.specs.entry_wrapper import DONE, NOTHING, STALE, TAKEN

Exact = entry_wrapper.Model  # judges programs of one thread

OUT_OF_MEMORY = 3
CHURNED = 1 << 30

Stale = tuple[int, int]  # the key that a wrapper was remembered under, the value last seen in it


class Model:
    """The operations of the subject ``entry_wrapper``. None of them is linearizable in all its
    answers.

    A key's version counts its fills and clears: it is odd while the key is there.
    """

    fresh = False
    scarce = False
    weak: ClassVar[Mapping[str, str]] = {
        "fill": "DONE: linearizable with the clears of the key. TAKEN: the key was there at one "
        "moment, perhaps before the call, but not before the last change of the key that the "
        "caller knows of.",
        "read": "A value: it was filled in under the key, and is not older than the last change "
        "that the caller knows of; or it is that of a churn under way, in a wrapper that the key "
        "has left. NOTHING, or DONE without a value: the key was absent at one moment, not "
        "before that change.",
        "read_stale": "As read, for any key; of several looks the last one answers. A wrapper "
        "that the caller knows to hold a key holds no other key until that key is cleared.",
        "clear": "DONE: linearizable with the fills of the key; the size is that of the cleared "
        "value, and the requeues that clears show add up to those that drains answered. "
        "NOTHING: as for read.",
        "churn": "The answer says nothing. While the call runs, its values may be seen in wrappers "
        "that keys have left.",
        "drain": "Each wrapper by itself. Recycled wrappers were cleared before. Fewer than "
        "requested: at one moment no wrapper was queued that the caller had filled or read and "
        "nobody had cleared.",
    }
    spans = frozenset({"churn", "drain", "read_stale"})

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        self.n_keys = settings["keys"]
        self.n_threads = threads
        self.values: list[tuple[int, ...]] = [()] * self.n_keys
        self.versions = [0] * self.n_keys
        self.known = [
            [0] * self.n_keys for _ in range(threads)
        ]  # versions that a thread cannot see less of
        # keys that a thread filled or read, of what is there
        self.met: list[set[int]] = [set() for _ in range(threads)]
        self.fills = [0] * threads
        self.turns = [0] * threads
        self.remembered = [0] * threads
        self.stale: list[dict[int, Stale]] = [{} for _ in range(threads)]
        self.open: frozenset[int] = frozenset()  # threads inside churn or drain
        self.churned = False
        self.sure: frozenset[int] = frozenset()  # threads one of whose churns had its memory
        self.draining = False
        self.left = 0  # wrappers cleared and not recycled yet
        self.recycled = False
        self.owed = 0  # requeues that drains answered and no clear has shown

    def canonical(self) -> object:
        return (
            tuple(self.values), tuple(self.versions), tuple(map(tuple, self.known)),
            tuple(map(frozenset, self.met)),
            tuple(self.fills), tuple(self.turns), tuple(self.remembered),
            tuple(frozenset(stale.items()) for stale in self.stale),
            self.open, self.churned, self.sure, self.draining, self.left,
            self.recycled, self.owed,
        )  # fmt: skip

    def begins(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> None:
        if operation == "churn":
            self.turns[thread] += arguments[1]
            self.open |= {thread}
        elif operation == "drain":
            self.draining = True

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        status, words = result
        if operation == "drain":
            return self.drained(arguments[0], thread, status, words)
        if operation == "churn":
            self.open -= {thread}
            self.churned = True
            if status == DONE:
                self.sure |= {thread}
            return status in (DONE, OUT_OF_MEMORY) and not any(words)
        if operation == "read_stale":
            return self.recall(arguments, thread, status, words[0])
        key = arguments[0] % self.n_keys
        if operation == "fill":
            return self.fill(key, thread, result)
        if operation == "clear":
            return self.clear(key, thread, result)
        return self.read(key, thread, status, words[0])

    def there(self, key: int) -> bool:
        return self.versions[key] % 2 == 1

    def sees(self, key: int, thread: int, *kinds: int, now: bool = True) -> bool:
        """True if the thread may see versions of these kinds (1: there, 0: not) one after the
        other, the last of them ``now`` unless it may see old ones.
        """
        version = self.known[thread][key]
        if self.fresh and now:
            version = max(version, self.versions[key] - len(kinds) + 1)
        for kind in kinds:
            version += version % 2 != kind
        self.known[thread][key] = version
        return version <= self.versions[key]

    def takes_back(self) -> bool:
        """True if a fill of another thread may find no place in the queue, and empty its slot."""
        return self.scarce and self.n_threads > 1

    # Changes --------------------------------------------------------------------------------------

    def fill(self, key: int, thread: int, result: Answer) -> bool:
        if result[0] == OUT_OF_MEMORY:
            return True
        self.fills[thread] += 1
        if result == answer(TAKEN):
            # It may have met a fill that finds no place in the queue and takes its value back.
            return self.takes_back() or self.sees(key, thread, 1)
        number = self.fills[thread] * self.n_threads + thread
        value = ((number & 0x3FFFFFF) << 4 | key) + 1
        if result != answer(DONE, value) or self.there(key):
            return False
        self.values[key] += (value,)
        self.versions[key] += 1
        self.known[thread][key] = self.versions[key]
        self.met[thread].add(key)
        self.remember(thread, key, value)
        return True

    def clear(self, key: int, thread: int, result: Answer) -> bool:
        status, (_size, requeues, *_) = result
        if status != DONE:
            return result == answer(NOTHING) and self.sees(key, thread, 0)
        if not self.there(key) or result != answer(DONE, self.values[key][-1] % 1009 + 1, requeues):
            return False
        self.versions[key] += 1
        self.known[thread][key] = self.versions[key]
        for met in self.met:
            met.discard(key)
        self.left += 1
        self.owed -= requeues
        return self.draining or self.balanced()

    def balanced(self) -> bool:
        """True if clears showed no more requeues than there were, and all of them if nothing is
        left.
        """
        return self.owed >= 0 if any(version % 2 for version in self.versions) else self.owed == 0

    def drained(self, steps: int, thread: int, status: int, words: Sequence[int]) -> bool:
        recycled, requeued, *_ = words
        self.draining = False
        self.left -= recycled
        self.recycled |= recycled > 0
        self.owed += requeued
        starved = self.scarce and status == OUT_OF_MEMORY
        if recycled + requeued < steps and self.met[thread] and not starved:
            return False
        return (
            (status == DONE or starved) and min(recycled, requeued) >= 0
            and recycled + requeued <= steps
            and self.left >= 0 and self.balanced()
        )  # fmt: skip

    # Looks ----------------------------------------------------------------------------------------

    def read(self, key: int, thread: int, status: int, value: int) -> bool:
        if status == NOTHING:
            return not value and self.sees(key, thread, 0)
        self.remember(thread, key, value)
        if not value or value > CHURNED:
            # It was there when the slot was read, and not any more when the wrapper was.
            if not value:
                kinds = (0,) if self.takes_back() else (1, 0)
                return self.sees(key, thread, *kinds)
            return self.sees(key, thread, 1, 0, now=False) and self.passing(key, thread, value)
        return self.hit(key, thread, value)

    def recall(self, arguments: Sequence[int], thread: int, status: int, value: int) -> bool:
        place, key, _ = arguments
        before = self.stale[thread].get(place % STALE) if place < STALE else (0, 0)
        if place >= STALE:
            before_churn = not self.has_churned(thread)
            if status == NOTHING:
                return not value and before_churn
            if not (self.churned or self.open):
                return False
        elif (status == NOTHING) is not (before is None):
            return False
        if before is None:
            return not value
        own, seen = before
        # A remainder with the sign of the dividend: below zero stands for the remembered key.
        wanted_key = int(math.fmod(key, self.n_keys))
        wanted_key = own if wanted_key < 0 else wanted_key
        if seen and seen <= CHURNED:
            holds = (seen - 1) % 16
            if self.there(holds) and self.values[holds][-1] == seen:
                if value != (seen if wanted_key == holds else 0):
                    return False
                return not value or self.hit(wanted_key, thread, value)
        if not value:
            return True
        if place < STALE:
            self.stale[thread][place % STALE] = own, value
        if value > CHURNED:
            return self.passing(wanted_key, thread, value)
        return (value == seen or self.reused() or place >= STALE) and self.hit(
            wanted_key, thread, value
        )

    def has_churned(self, thread: int) -> bool:
        """True if the thread must see that a churn made a turn."""
        if self.scarce:
            return bool(self.sure) if self.fresh else thread in self.sure
        return self.churned if self.fresh else bool(self.turns[thread])

    def hit(self, key: int, thread: int, value: int) -> bool:
        """True if a look of the thread may show a value that was filled in under the key."""
        if value not in self.values[key]:
            return False
        version = 2 * self.values[key].index(value) + 1
        if version < (self.versions[key] if self.fresh else self.known[thread][key]):
            return False
        self.known[thread][key] = version
        if version == self.versions[key]:
            self.met[thread].add(key)
        return True

    def passing(self, key: int, thread: int, value: int) -> bool:
        """True if a look may show a value that a churn fills in for a moment."""
        number = (value - CHURNED - 1) >> 4
        turn, other = divmod(number, self.n_threads)
        return (
            (value - 1) % 16 == key and other != thread and 1 <= turn <= self.turns[other]
            and (other in self.open or not self.fresh)
        )  # fmt: skip

    def reused(self) -> bool:
        """True if wrappers that were queued may serve other keys by now."""
        return self.recycled or self.draining

    def remember(self, thread: int, key: int, value: int) -> None:
        self.stale[thread][self.remembered[thread]] = key, value
        self.remembered[thread] = (self.remembered[thread] + 1) % STALE
