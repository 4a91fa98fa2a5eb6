"""Range caches over one removal queue, one call after the other: what each call must answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pulsar_ml.specs import Answer, answer, unknown

MISS, HIT, LAST = 0, 1, 2
OK, EXISTS, MISMATCH = 0, 1, 2

PLACES = 16
FIRST_TIME = 1000
NEVER_EXPECTED = -1000

Words = list[int]


@dataclass(slots=True)
class Entry:
    """An entry, or a counting copy of one; copies share the list that holds the expected reads."""

    incarnation: int
    expected: list[int] | None
    counts_read: bool = False
    references: int = 1

    def expected_reads(self) -> int:
        return NEVER_EXPECTED if self.expected is None else self.expected[0]

    def release(self) -> bool:
        """Gives one reference back; whether it was the last."""
        self.references -= 1
        if self.references == 0 and self.counts_read and self.expected is not None:
            self.expected[0] -= 1
        return self.references == 0


@dataclass(slots=True)
class Wrapper:
    """A queued wrapper; empty when its entry is None."""

    cache: int
    key: int
    entry: Entry | None
    size: int
    timestamp: int
    requeues: int = 0
    accessed: bool = False


@dataclass(slots=True)
class Cache:
    """A cache: key -> wrapper, and the bytes counted."""

    wrappers: dict[int, Wrapper] = field(default_factory=dict)
    size: int = 0

    def ascending(self, first: int, last: int) -> Iterator[Wrapper]:
        """The wrappers of a range of keys; what is removed meanwhile does not come any more."""
        for key in range(first, last + 1):
            if key in self.wrappers:
                yield self.wrappers[key]


class Model:
    """The operations of the subject ``range_cache``; keys and caches are taken modulo their numbers."""

    operations: frozenset[str] = frozenset(
        (
            "put put_late put_foreign get hold release dispatch read_range visit exists remove_range "
            "clear size sweep over_release"
        ).split()
    )

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        self.caches = [Cache() for _ in range(settings["caches"])]
        self.n_keys = settings["keys"]
        self.length_shift = settings["length_shift"]
        self.max_requeue = settings["max_requeue"]
        self.extend = bool(settings["extend"])
        self.queue: deque[Wrapper] = deque()
        self.clock = FIRST_TIME
        self.incarnations = [0] * threads
        self.held: list[dict[int, Entry]] = [{} for _ in range(threads)]

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        """Apply one call of ``thread`` and return the status and the four words of its result."""
        if operation not in self.operations:
            raise unknown("range_cache", operation)
        words = [0, 0, 0, 0]
        status = getattr(self, operation)(words, thread, *arguments)
        return answer(status, *words)

    def length(self, key: int) -> int:
        return (24 + key % 5 * 8) << self.length_shift

    def new_entry(self, thread: int, expected_reads: int) -> Entry:
        self.clock += 1
        self.incarnations[thread] += 1
        incarnation = thread << 40 | self.incarnations[thread]
        return Entry(incarnation, [expected_reads] if expected_reads > 0 else None)

    def put(self, words: Words, thread: int, cache: int, key: int, expected_reads: int) -> int:
        return self.insert(words, thread, cache, key, expected_reads, 0)

    def put_late(self, words: Words, thread: int, cache: int, key: int, ticks: int) -> int:
        return self.insert(words, thread, cache, key, 0, ticks)

    def insert(self, words: Words, thread: int, cache: int, key: int, expected_reads: int, late: int) -> int:
        owner = cache % len(self.caches)
        key %= self.n_keys
        entry = self.new_entry(thread, expected_reads)
        if key in self.caches[owner].wrappers:
            return EXISTS
        wrapper = Wrapper(owner, key, entry, self.length(key), self.clock - late)
        self.caches[owner].wrappers[key] = wrapper
        self.caches[owner].size += wrapper.size
        self.queue.append(wrapper)
        words[:2] = [entry.incarnation, wrapper.size]
        return OK

    def put_foreign(self, words: Words, thread: int, cache: int, key: int) -> int:
        self.new_entry(thread, 0)
        return MISMATCH

    def find(self, cache: int, key: int) -> Entry | None:
        """The entry under a key, marked as accessed; one that was released too often is not found."""
        wrapper = self.caches[cache % len(self.caches)].wrappers.get(key % self.n_keys)
        if wrapper is None or wrapper.entry is None:
            return None
        wrapper.accessed = True
        return wrapper.entry if wrapper.entry.references else None

    def retain(self, words: Words, cache: int, key: int) -> Entry | None:
        entry = self.find(cache, key)
        if entry is not None:
            entry.references += 1
            words[:3] = [entry.incarnation, entry.expected_reads(), entry.references]
        return entry

    def keep(self, thread: int, place: int, entry: Entry) -> None:
        before = self.held[thread].pop(place % PLACES, None)
        if before is not None:
            before.release()
        self.held[thread][place % PLACES] = entry

    def get(self, words: Words, thread: int, cache: int, key: int) -> int:
        entry = self.retain(words, cache, key)
        if entry is None:
            return MISS
        entry.release()
        return HIT

    def hold(self, words: Words, thread: int, cache: int, key: int, place: int) -> int:
        entry = self.retain(words, cache, key)
        if entry is None:
            return MISS
        self.keep(thread, place, entry)
        return HIT

    def release(self, words: Words, thread: int, place: int) -> int:
        entry = self.held[thread].pop(place % PLACES, None)
        if entry is None:
            return MISS
        words[:2] = [entry.incarnation, entry.expected_reads()]
        return LAST if entry.release() else HIT

    def dispatch(self, words: Words, thread: int, cache: int, key: int, place: int) -> int:
        entry = self.retain(words, cache, key)
        if entry is None:
            return MISS
        copy = Entry(entry.incarnation, entry.expected, counts_read=True)
        if place >= 0:
            entry.release()
            self.keep(thread, place, copy)
            return HIT
        copy.release()
        words[3] = entry.expected_reads()
        entry.release()
        return HIT

    def read_range(self, words: Words, thread: int, cache: int, key: int, width: int) -> int:
        key %= self.n_keys
        asked = self.caches[cache % len(self.caches)].ascending(key, min(key + width, self.n_keys - 1))
        found = [wrapper.key for wrapper in asked if self.find(cache, wrapper.key) is not None]
        words[:2] = [len(found), sum(1 << (other - key) for other in found)]
        return 0

    def visit(self, words: Words, thread: int, cache: int, key: int, clear_after: int) -> int:
        for wrapper in self.caches[cache % len(self.caches)].ascending(key % self.n_keys, self.n_keys - 1):
            if self.find(cache, wrapper.key) is not None:
                words[0] += 1
                if words[0] == clear_after:
                    self.clear(words, thread, cache)
        return 0

    def exists(self, words: Words, thread: int, cache: int, key: int) -> int:
        return int(key % self.n_keys in self.caches[cache % len(self.caches)].wrappers)

    def take_out(self, wrapper: Wrapper) -> int:
        """Removes what a wrapper holds and leaves it empty; the bytes that were counted for it."""
        cache = self.caches[wrapper.cache]
        del cache.wrappers[wrapper.key]
        cache.size -= wrapper.size
        if wrapper.entry is not None and wrapper.entry.references:
            wrapper.entry.release()
        wrapper.entry = None
        return wrapper.size

    def remove_keys(self, words: Words, cache: int, first: int, last: int) -> int:
        for wrapper in self.caches[cache % len(self.caches)].ascending(first, last):
            words[2] += 1
            words[3] += self.take_out(wrapper)
        return 0

    def remove_range(self, words: Words, thread: int, cache: int, key: int, width: int) -> int:
        key %= self.n_keys
        return self.remove_keys(words, cache, key, min(key + width, self.n_keys - 1))

    def clear(self, words: Words, thread: int, cache: int) -> int:
        return self.remove_keys(words, cache, 0, self.n_keys - 1)

    def size(self, words: Words, thread: int, cache: int) -> int:
        words[0] = self.caches[cache % len(self.caches)].size
        return 0

    def sweep(self, words: Words, thread: int, steps: int) -> int:
        self.clock += 1
        while words[0] < steps and self.queue and self.queue[0].entry is None:
            self.queue.popleft()
            words[0] += 1
        return 0

    def over_release(self, words: Words, thread: int, cache: int, key: int) -> int:
        entry = self.retain(words, cache, key)
        if entry is None:
            return MISS
        entry.release()
        entry.release()
        return HIT

    def check(self) -> None:
        """Everything held is given back and everything is removed."""
        for held in self.held:
            for entry in held.values():
                entry.release()
            held.clear()
        self.clock += 1
        for number in range(len(self.caches)):
            self.clear([0, 0, 0, 0], 0, number)
        self.queue.clear()
