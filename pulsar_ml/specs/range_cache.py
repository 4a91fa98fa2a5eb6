"""Range caches over one removal queue, one call after the other: what each call must answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.cached import EVICTED, Cache, Entry, Wrapper
from pulsar_ml.specs.policies import POLICIES, Pass, Rules

MISS, HIT, LAST = 0, 1, 2
OK, EXISTS, MISMATCH = 0, 1, 2

PLACES = 16
FIRST_TIME = 1000
MOST_LATE = 40
LONG_LIFE = 100

Words = list[int]


class Model:
    """The operations of the subject ``range_cache``; keys and caches are taken modulo their
    numbers.
    """

    operations: frozenset[str] = frozenset(
        {
            "put", "put_late", "put_foreign", "get", "hold", "release", "dispatch", "expect", "drop",
            "read_range", "visit", "exists", "remove_range", "clear", "size", "sweep", "open_close",
            "describe", "release_too_often", "fill", "put_alone", "over_release",
        }
    )  # fmt: skip

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        self.caches = [Cache() for _ in range(settings["caches"])]
        self.n_keys = settings["keys"]
        self.length_shift = settings["length_shift"]
        self.rules = Rules(settings["max_requeue"], bool(settings["extend"]), LONG_LIFE)
        self.policy = POLICIES[settings["policy"]](self.caches, self.rules)
        self.counts_of_4 = self.policy.counts_of_4
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
        return Entry(
            incarnation,
            [max(expected_reads, 0)],
            shared=expected_reads > 0,
            counts_of_4=self.counts_of_4,
        )

    def put(self, words: Words, thread: int, cache: int, key: int, expected_reads: int) -> int:
        return self.insert(words, thread, cache, key, expected_reads, 0)

    def put_alone(
        self, words: Words, thread: int, cache: int, key: int, expected_reads: int
    ) -> int:
        status = self.put(words, thread, cache, key, expected_reads)
        if status == EXISTS and not (self.policy.merges_counts or self.counts_of_4):
            self.find(cache, key)
        return status

    def put_late(self, words: Words, thread: int, cache: int, key: int, ticks: int) -> int:
        return self.insert(words, thread, cache, key, 0, ticks)

    def insert(
        self, words: Words, thread: int, cache: int, key: int, expected_reads: int, late: int
    ) -> int:
        owner = cache % len(self.caches)
        key %= self.n_keys
        entry = self.new_entry(thread, expected_reads)
        if key in self.caches[owner].wrappers:
            self.merge(self.caches[owner].wrappers[key], entry)
            return EXISTS
        wrapper = Wrapper(owner, key, entry, self.length(key), self.clock - late)
        self.caches[owner].wrappers[key] = wrapper
        self.caches[owner].size += wrapper.size
        self.policy.put(wrapper)
        words[:2] = [entry.incarnation, wrapper.size]
        return OK

    def merge(self, wrapper: Wrapper, duplicate: Entry) -> None:
        """The cached entry shares a duplicate's expected reads, or adds or ignores them where the
        policy does that.
        """
        cached = wrapper.entry
        if cached is None or not cached.references or self.counts_of_4:
            return
        if not self.policy.merges_counts:
            cached.expected, cached.shared = duplicate.expected, duplicate.shared
        elif duplicate.shared:
            cached.shared = wrapper.accessed = True  # it is read for that
            if cached.expected[0] > EVICTED // 2:
                cached.expected[0] += duplicate.expected[0]

    def put_foreign(self, words: Words, thread: int, cache: int, key: int) -> int:
        self.new_entry(thread, 0)
        return MISMATCH

    def find(self, cache: int, key: int) -> Entry | None:
        """The entry under a key, marked as accessed; None if it was released too often."""
        wrapper = self.caches[cache % len(self.caches)].wrappers.get(key % self.n_keys)
        if wrapper is None or wrapper.entry is None:
            return None
        wrapper.accessed = True
        if not wrapper.entry.references:
            return None
        self.policy.hit(wrapper)
        return wrapper.entry

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
        entry.shared = entry.shared or not self.counts_of_4
        copy = Entry(
            entry.incarnation,
            entry.expected,
            counts_read=True,
            shared=entry.shared,
            counts_of_4=self.counts_of_4,
        )
        if place >= 0:
            entry.release()
            self.keep(thread, place, copy)
            return HIT
        copy.release()
        words[3] = entry.expected_reads()
        entry.release()
        return HIT

    def expect(self, words: Words, thread: int, place: int) -> int:
        entry = self.held[thread].get(place % PLACES)
        if entry is None:
            return MISS
        entry.shared = entry.shared or not self.counts_of_4
        entry.expected[0] += entry.shared
        words[:2] = [entry.incarnation, entry.expected[0]]
        return HIT

    def drop(self, words: Words, thread: int, place: int) -> int:
        entry = self.held[thread].get(place % PLACES)
        if entry is not None and entry.counts_read:
            entry.counts_read = False
        return self.release(words, thread, place)

    def read_range(self, words: Words, thread: int, cache: int, key: int, width: int) -> int:
        key %= self.n_keys
        within = self.caches[cache % len(self.caches)].ascending(
            key, min(key + width, self.n_keys - 1)
        )
        found = [wrapper.key for wrapper in within if self.find(cache, wrapper.key) is not None]
        words[:2] = [len(found), sum(1 << (other - key) for other in found)]
        return 0

    def visit(self, words: Words, thread: int, cache: int, key: int, clear_after: int) -> int:
        for wrapper in self.caches[cache % len(self.caches)].ascending(
            key % self.n_keys, self.n_keys - 1
        ):
            if self.find(cache, wrapper.key) is not None:
                words[0] += 1
                if words[0] == clear_after:
                    self.clear(words, thread, cache)
        return 0

    def exists(self, words: Words, thread: int, cache: int, key: int) -> int:
        return int(key % self.n_keys in self.caches[cache % len(self.caches)].wrappers)

    def remove_keys(self, words: Words, cache: int, first: int, last: int) -> int:
        owner = self.caches[cache % len(self.caches)]
        for wrapper in owner.ascending(first, last):
            words[2] += 1
            words[3] += owner.take_out(wrapper, mark=self.policy.merges_counts)
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
        nothing_old = Pass(self.clock, threshold=FIRST_TIME - MOST_LATE)
        self.policy.run(nothing_old, steps)
        words[0] = nothing_old.missing
        return 0

    def open_close(self, words: Words, thread: int, caches: int) -> int:
        return OK

    def release_too_often(
        self, words: Words, thread: int, entries: int, wrong: int, way: int
    ) -> int:
        return OK

    def fill(self, words: Words, thread: int, cache: int, key: int, entries: int) -> int:
        """Puts of keys that follow each other; every second one is read twice."""
        key %= self.n_keys
        for number in range(key, min(key + entries, self.n_keys)):
            words[0] += self.put([0] * 4, thread, cache, number, number % 3 - 1) == OK
            for _ in range(number % 2 * 2):
                self.find(cache, number)
        return OK

    def describe(self, words: Words, thread: int, cache: int, key: int) -> int:
        """The first entry from a key on, as its wrapper describes it."""
        for wrapper in self.caches[cache % len(self.caches)].ascending(
            key % self.n_keys, self.n_keys - 1
        ):
            if wrapper.entry is not None:
                counts = wrapper.entry.expected_reads() << 32 | 2 * wrapper.requeues
                words[:] = [wrapper.key, wrapper.size, wrapper.timestamp - FIRST_TIME, counts]
                words[3] |= wrapper.accessed
                return HIT
        return MISS

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
        everything_old = Pass(self.clock, threshold=self.clock)
        rules, self.policy.rules = self.policy.rules, Rules(0, False, 0)
        self.policy.run(everything_old, 1 << 30)
        self.policy.rules = rules
        for number in range(len(self.caches)):
            self.clear([0, 0, 0, 0], 0, number)
        self.policy.forget()
