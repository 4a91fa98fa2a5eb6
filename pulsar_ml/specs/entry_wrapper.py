"""Raw wrappers, one call after the other: slots by key, a queue, and a pool that hands out what
came last.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pulsar_ml.specs import Answer, answer, unknown

DONE, TAKEN, NOTHING = 0, 1, 2

STALE = 8

Words = list[int]


@dataclass(slots=True)
class Wrapper:
    """A wrapper of the pool; empty when its key is None."""

    key: int | None = None
    value: int = 0
    requeues: int = 0


@dataclass(slots=True)
class Thread:
    incarnations: int = 0
    stale: list[tuple[Wrapper, int]] = field(default_factory=list)

    def remember(self, wrapper: Wrapper, key: int) -> None:
        self.stale.append((wrapper, key))

    def recall(self, place: int) -> tuple[Wrapper, int] | None:
        """The content of the ring of remembered wrappers at a place: the latest that went there."""
        indices = range(place % STALE, len(self.stale), STALE)
        return self.stale[indices[-1]] if indices else None


class Model:
    """The operations of the subject ``entry_wrapper``."""

    operations = frozenset({"fill", "read", "read_stale", "clear", "churn", "drain"})

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        self.n_keys = settings["keys"]
        self.slots: dict[int, Wrapper] = {}
        self.queue: deque[Wrapper] = deque()
        self.free: list[Wrapper] = []
        self.churned: Wrapper | None = None
        self.threads = [Thread() for _ in range(threads)]

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        """Apply one call of ``thread`` and return the status and the four words of its result."""
        if operation not in self.operations:
            raise unknown("entry_wrapper", operation)
        words = [0, 0, 0, 0]
        status = getattr(self, operation)(words, thread, *arguments)
        return answer(status, *words)

    def next_value(self, thread: int, key: int) -> int:
        self.threads[thread].incarnations += 1
        incarnation = self.threads[thread].incarnations * len(self.threads) + thread
        return ((incarnation & 0x7FFFFFF) << 4 | key) + 1

    def take(self) -> Wrapper:
        return self.free.pop() if self.free else Wrapper()

    def start(self, wrapper: Wrapper, key: int, value: int) -> None:
        wrapper.key, wrapper.value, wrapper.requeues = key, value, 0

    def empty(self, wrapper: Wrapper) -> None:
        wrapper.key, wrapper.value, wrapper.requeues = None, 0, 0

    def fill(self, words: Words, thread: int, key: int) -> int:
        key %= self.n_keys
        value = self.next_value(thread, key)
        wrapper = self.take()
        self.start(wrapper, key, value)
        if key in self.slots:
            self.empty(wrapper)
            self.free.append(wrapper)
            return TAKEN
        self.slots[key] = wrapper
        self.queue.append(wrapper)
        self.threads[thread].remember(wrapper, key)
        words[0] = value
        return DONE

    def look(self, wrapper: Wrapper, key: int) -> int:
        if wrapper.key != key:
            return 0
        return wrapper.value

    def read(self, words: Words, thread: int, key: int) -> int:
        key %= self.n_keys
        if key not in self.slots:
            return NOTHING
        self.threads[thread].remember(self.slots[key], key)
        words[0] = self.look(self.slots[key], key)
        return DONE

    def read_stale(self, words: Words, thread: int, place: int, key: int, repeats: int) -> int:
        if place < STALE:
            recalled = self.threads[thread].recall(place)
        else:
            recalled = None if self.churned is None else (self.churned, 0)
        if recalled is None:
            return NOTHING
        wrapper, own = recalled
        # A remainder with the sign of the dividend: below zero stands for the remembered key.
        wanted_key = int(math.fmod(key, self.n_keys))
        words[0] = self.look(wrapper, own if wanted_key < 0 else wanted_key)
        return DONE

    def clear(self, words: Words, thread: int, key: int) -> int:
        wrapper = self.slots.pop(key % self.n_keys, None)
        if wrapper is None:
            return NOTHING
        words[:2] = [wrapper.value % 1009 + 1, wrapper.requeues]
        self.empty(wrapper)
        return DONE

    def churn(self, words: Words, thread: int, key: int, turns: int) -> int:
        for _ in range(turns):
            wrapper = self.churned = self.take()
            self.empty(wrapper)
            self.free.append(wrapper)
        return DONE

    def drain(self, words: Words, thread: int, steps: int) -> int:
        for _ in range(steps):
            if not self.queue:
                break
            wrapper = self.queue.popleft()
            if wrapper.key is None:
                self.free.append(wrapper)
                words[0] += 1
            else:
                wrapper.requeues += 1
                self.queue.append(wrapper)
                words[1] += 1
        return DONE

    def check(self) -> None:
        """Every key is cleared and the queue drained."""
        for key in sorted(self.slots):
            self.clear([0, 0, 0, 0], 0, key)
        self.drain([0, 0, 0, 0], 0, len(self.queue))
