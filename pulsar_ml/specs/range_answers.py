"""The legal answers of range caches while other calls change them: which incarnations a hit may
show, and when a hit is due.

The model ``range_cache`` says what each call answers when nothing runs beside it; this one says
what all schedules have in common. Of each key it knows the incarnations that were put, and whether
the last one is there, gone, or perhaps gone, because something that removes is or was under way.
What removals say that they took out is held against what was put: as many entries are gone as they
say, no more and no fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, range_cache
from pulsar_ml.specs.cached import EVICTED
from pulsar_ml.specs.range_promises import APART, PROMISES
from pulsar_ml.specs.range_spans import Key, Span

Exact = range_cache.Model  # judges programs of one thread
MISS, HIT, LAST = 0, 1, 2
OK, EXISTS, MISMATCH, NO_MEMORY = 0, 1, 2, 3
PLACES = 16
RELEASED, STASH = 1, 2

# UNTOLD: perhaps taken by something that does not say what it takes.
THERE, PERHAPS, UNTOLD, GONE = range(4)
NOT_THERE, NOT_SURE, SURE = range(3)

PUTS = frozenset({"put", "put_late", "put_alone"})
LOOKS = frozenset({"get", "hold", "dispatch"})
REMOVALS = frozenset({"remove_range", "clear"})
RANGES = frozenset({"read_range", "visit"})
KEPT = frozenset({"release", "drop", "expect"})
SEQUENCE = (1 << 40) - 1  # of an incarnation, without its thread


class Model:
    """The operations of the subject ``range_cache``; no answers of all kinds are linearizable."""

    fresh = False
    scarce = False
    weak: ClassVar[Mapping[str, str]] = PROMISES
    # A dispatch makes a copy, whose release others see, and looks at the entry once more after
    # that. An expect raises a count, which others see, before it reads what it answers.
    spans: ClassVar[frozenset[str]] = REMOVALS | RANGES | {"dispatch", "expect"}
    # The moment at which an entry is found matters to threads that see every change at once; its
    # counts are read later.
    fresh_spans: ClassVar[frozenset[str]] = LOOKS
    foresees = True

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        self.n_caches = settings["caches"]
        self.n_keys = settings["keys"]
        self.shift = settings["length_shift"]
        self.sums_reads = settings["policy"] == STASH
        self.below_zero = settings["policy"] == RELEASED
        self.put_so_far: dict[Key, tuple[int, ...]] = {}
        self.state: dict[Key, int] = {}
        # Each thread's knowledge of each key: incarnation number i is there (2 i + 1) or gone (2 i
        # + 2).
        self.known: list[dict[Key, int]] = [{} for _ in range(threads)]
        self.numbers = [0] * threads
        # For want of memory; some of these puts took a number all the same.
        self.refused = [0] * threads
        self.held: list[dict[int, tuple[int, Key]]] = [{} for _ in range(threads)]
        self.open: dict[int, Span] = {}
        # Threads that found an entry and have not said so yet.
        self.looking: frozenset[int] = frozenset()
        # Bytes that a thread took, by cache.
        self.cut: list[dict[int, int]] = [{} for _ in range(threads)]
        # Expected reads: the most of one put, or their sum; and added ones.
        self.offered: dict[Key, int] = {}
        self.copied: dict[Key, int] = {}
        # Entries and bytes that answers counted and that are not known to be gone; below 0 while a
        # removal is under way.
        self.loose = self.loose_bytes = 0
        self.slack = self.slack_bytes = 0  # of UNTOLD ones that turned out to be gone
        self.dropped = 0  # empty wrappers, and those that passes emptied
        self.strays = 0  # entries put that no answer mentions, and keys under which they may be
        self.strange: frozenset[Key] = frozenset()

    def canonical(self) -> object:
        return (
            frozenset(self.put_so_far.items()), frozenset(self.state.items()),
            tuple(frozenset(known.items()) for known in self.known), tuple(self.numbers), tuple(self.refused),
            tuple(frozenset(held.items()) for held in self.held), frozenset(self.open.items()), self.looking,
            tuple(frozenset(cut.items()) for cut in self.cut), frozenset(self.offered.items()),
            frozenset(self.copied.items()), self.loose, self.loose_bytes, self.slack, self.slack_bytes,
            self.dropped, self.strays, self.strange,
        )  # fmt: skip

    def key(self, arguments: Sequence[int]) -> Key:
        return arguments[0] % self.n_caches, arguments[1] % self.n_keys

    def length(self, key: Key) -> int:
        return (24 + key[1] % 5 * 8) << self.shift

    def puts(self, key: Key) -> int:
        return len(self.put_so_far.get(key, ()))

    # Puts and removals ----------------------------------------------------------------------------

    def knows(self, key: Key, thread: int) -> bool:
        """True if the thread cannot miss the latest incarnation while it is there."""
        return self.fresh or self.saw(key, thread)

    def saw(self, key: Key, thread: int) -> bool:
        """True if the thread put the latest incarnation, found it or knows that it is gone."""
        return self.known[thread].get(key, 0) >= 2 * self.puts(key) - 1

    def covered(self, key: Key) -> int:
        """The state of an entry that is put now: THERE, or PERHAPS or UNTOLD while calls are under
        way.
        """
        found = THERE
        for span in self.open.values():
            if span.takes and span.covers(key):
                found = max(found, PERHAPS if span.tells else UNTOLD)
        return found

    def surely(self, key: Key, thread: int) -> bool:
        """True if the latest incarnation is there, and the thread put it or saw it."""
        return self.state[key] == THERE and self.known[thread].get(key, 0) == 2 * self.puts(key) - 1

    def lose(self, key: Key, thread: int) -> None:
        """The latest incarnation is gone, and the thread knows."""
        self.known[thread][key] = 2 * self.puts(key)
        if self.state[key] == PERHAPS:
            self.loose -= 1
            self.loose_bytes -= self.length(key)
        elif self.state[key] == UNTOLD:
            self.slack += 1
            self.slack_bytes += self.length(key)
        self.state[key] = GONE

    def count_removed(self, thread: int, cache: int, entries: int, size: int) -> None:
        """A removal ended and says what it took."""
        self.loose += entries
        self.loose_bytes += size
        self.cut[thread][cache] = self.cut[thread].get(cache, 0) + size

    def balanced(self) -> bool:
        """True if as many entries are gone as answers said, as far as is known; that settles keys,
        too.
        """
        unsure = [key for key, state in self.state.items() if state in (PERHAPS, UNTOLD)]
        most = len(unsure) + self.slack + self.strays
        size = sum(map(self.length, unsure)) + self.slack_bytes + self.strays * (56 << self.shift)
        if self.loose > most or self.loose_bytes > size:
            return False
        if any(span.takes and span.tells for span in self.open.values()):
            return True
        if self.loose < 0 or self.loose_bytes < 0 or (self.loose == 0) != (self.loose_bytes == 0):
            return False
        if self.loose == 0:
            for key in unsure:
                if self.state[key] == PERHAPS:
                    self.state[key] = THERE
        elif self.loose == most and not self.strays:
            if self.loose_bytes != size:
                return False
            for key in unsure:
                self.state[key] = GONE
            self.loose = self.loose_bytes = self.slack = self.slack_bytes = 0
        return True

    def estrange(self, key: Key) -> None:
        """Forgets what is under the key: any state of it is possible from now on."""
        self.strange |= {key}
        self.strays += len(self.put_so_far.pop(key, ()))
        self.state.pop(key, None)

    # Calls that take their time -------------------------------------------------------------------

    def begins(
        self,
        operation: str,
        arguments: Sequence[int],
        *,
        thread: int = 0,
        result: Answer | None = None,
    ) -> bool:
        if operation in LOOKS:
            return self.finds(operation, self.key(arguments), thread, result) and self.balanced()
        if operation == "expect":
            return self.awaits(arguments[0] % PLACES, thread, result)
        cache, first, last = arguments[0] % self.n_caches, 0, self.n_keys - 1
        if operation in ("remove_range", "read_range"):
            first = arguments[1] % self.n_keys
            last = min(first + arguments[2], last)
        elif operation == "visit":
            first = arguments[1] % self.n_keys if not arguments[2] else 0
        takes = operation in REMOVALS or (operation == "visit" and arguments[2] > 0)
        self.opens(thread, cache, first, last, takes=takes, tells=True)
        return True

    def opens(
        self, thread: int, cache: int, first: int, last: int, *, takes: bool, tells: bool
    ) -> None:
        span = Span(cache, first, last, (), takes, tells)
        began = tuple(
            (key, len(so_far), self.certainty(key, thread))
            for key, so_far in sorted(self.put_so_far.items())
            if span.covers(key)
        )
        if takes:
            self.doubt(span)
        self.open[thread] = span._replace(began=began)

    def certainty(self, key: Key, thread: int) -> int:
        if self.state[key] == GONE:
            return NOT_THERE
        return SURE if self.knows(key, thread) else NOT_SURE

    def doubt(self, span: Span) -> None:
        """Lets every entry be gone from now on."""
        for key, state in self.state.items():
            if state < GONE and span.covers(key):
                self.state[key] = max(state, PERHAPS if span.tells else UNTOLD)

    def ends(self, operation: str, arguments: Sequence[int], thread: int, result: Answer) -> bool:
        span = self.open.pop(thread, None)
        if span is None or result[0] != 0:
            return False
        words = result[1]
        if operation == "read_range":
            return self.found(span, thread, words)
        if operation == "visit":
            return self.visited(span, arguments, thread, words)
        self.removed(span, thread)
        self.count_removed(thread, span.cache, words[2], words[3])
        return words[:2] == (0, 0)

    def removed(self, span: Span, thread: int) -> None:
        """Removes the entries that were there when the removal began."""
        for key, puts, sure in span.began:
            if sure == SURE and self.puts(key) == puts:
                self.lose(key, thread)

    def found(self, span: Span, thread: int, words: Sequence[int]) -> bool:
        count, bits = words[0], words[1] % (1 << 64)
        if words[2:] != (0, 0) or bits.bit_count() != count or bits >> (span.last - span.first + 1):
            return False
        began = {key: (puts, sure) for key, puts, sure in span.began}
        for number in range(span.first, span.last + 1):
            key = span.cache, number
            puts, sure = began.get(key, (0, NOT_THERE))
            if bits >> (number - span.first) & 1:
                if not self.shows(key, thread, was=sure != NOT_THERE, since=puts):
                    return False
            elif sure == SURE and self.puts(key) == puts and not self.missed(key, thread):
                return False
        return True

    def shows(self, key: Key, thread: int, *, was: bool, since: int) -> bool:
        """True if a call may find an entry of the key, when there were so many puts of the key
        before the call and the latest ``was`` not surely gone.
        """
        if key in self.strange:
            return True
        if self.known[thread].get(key, 0) >= 2 * self.puts(key):
            return False
        return not self.fresh or was or self.puts(key) > since

    def shows_now(self, key: Key, thread: int) -> bool:
        return self.shows(key, thread, was=self.state.get(key, GONE) != GONE, since=self.puts(key))

    def visited(
        self, span: Span, arguments: Sequence[int], thread: int, words: Sequence[int]
    ) -> bool:
        first = arguments[1] % self.n_keys
        cleared = 0 < arguments[2] <= words[0]
        sure = sum(
            sure == SURE
            and key[1] >= first
            and self.state.get(key) == THERE
            and self.puts(key) == puts
            for key, puts, sure in span.began
        )
        if cleared:
            self.removed(span, thread)
        self.count_removed(thread, span.cache, words[2], words[3])
        put = sum(key[0] == span.cache and key[1] >= first for key in self.put_so_far)
        if words[1] or words[0] > put + self.strays or (not cleared and (words[2] or words[3])):
            return False
        return cleared or words[0] >= sure or self.hides(thread)

    def hides(self, thread: int) -> bool:
        """True if the thread may miss the entry that is there."""
        return False

    # Everything else ------------------------------------------------------------------------------

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        return self.answers(operation, arguments, thread, result) and self.balanced()

    def answers(
        self, operation: str, arguments: Sequence[int], thread: int, result: Answer
    ) -> bool:
        status, words = result
        if operation in LOOKS:
            return self.look(operation, arguments, thread, result)
        if operation in KEPT:
            return self.kept(operation, arguments[0] % PLACES, thread, result)
        if operation in self.spans:
            return self.ends(operation, arguments, thread, result)
        if operation in PUTS:
            expected = 0 if operation == "put_late" else max(arguments[2], 0)
            return self.put(self.key(arguments), thread, result, expected)
        if operation == "exists":
            key = self.key(arguments)
            if status == HIT:
                return result == answer(HIT) and self.shows_now(key, thread)
            return result == answer(MISS) and self.missed(key, thread)
        if operation == "describe":
            return self.described(self.key(arguments), thread, result)
        if operation == "size":
            return result == answer(0, words[0]) and self.sized(
                arguments[0] % self.n_caches, thread, words[0]
            )
        if operation == "sweep":
            self.dropped += words[0]
            return result == answer(0, words[0]) and words[0] >= 0 and self.empty(self.dropped)
        if operation == "over_release":
            return self.over_released(self.key(arguments), thread, result)
        if operation == "put_foreign":
            self.numbers[thread] += status != NO_MEMORY
            self.refused[thread] += status == NO_MEMORY
            return result in (answer(MISMATCH), answer(NO_MEMORY))
        if operation in APART and self.scarce and status == NO_MEMORY:
            return result == answer(NO_MEMORY)
        return result == answer(0)

    def empty(self, wrappers: int) -> bool:
        """True if there may be so many wrappers that once held an entry and are empty now."""
        puts = sum(map(len, self.put_so_far.values())) + self.strays
        return wrappers <= puts - sum(state == THERE for state in self.state.values())

    def put(self, key: Key, thread: int, result: Answer, expected: int) -> bool:
        so_far = self.put_so_far.get(key, ())
        status, (incarnation, *_) = result
        if status == NO_MEMORY:
            self.refused[thread] += 1
            return result == answer(NO_MEMORY)
        self.numbers[thread] += 1
        before = self.offered.get(key, 0)
        self.offered[key] = before + expected if self.sums_reads else max(before, expected)
        if status == EXISTS:
            # An entry that finds no place in the policy's queue leaves the map again.
            leaves = self.scarce and len(self.numbers) > 1
            return result == answer(EXISTS) and (leaves or self.shows_now(key, thread))
        skipped = (incarnation & SEQUENCE) - self.numbers[thread]
        if result != answer(OK, incarnation, self.length(key)) or incarnation >> 40 != thread:
            return False
        if not 0 <= skipped <= self.refused[thread]:
            return False
        self.numbers[thread] += skipped
        if key in self.strange:
            self.strays += 1
            return True
        if so_far:
            if self.state[key] == THERE:
                return False
            self.lose(key, thread)
        self.put_so_far[key] = (*so_far, incarnation)
        self.known[thread][key] = 2 * len(so_far) + 1
        self.state[key] = self.covered(key)
        return True

    @staticmethod
    def idle(operation: str, result: Answer) -> bool:
        return operation in LOOKS and result[0] == MISS

    def finds(self, operation: str, key: Key, thread: int, result: Answer | None) -> bool:
        """True if a look may find the entry that it will show, or none; a dispatch makes its copy
        here.
        """
        if result is not None:
            status, words = result
            if status == MISS:
                return not any(words) and self.missed(key, thread)
            if status != NO_MEMORY and (status != HIT or not self.seen(key, thread, words[0])):
                return False
        if operation == "dispatch" and (result is None or result[0] == HIT):
            self.copied[key] = self.copied.get(key, 0) + 1
        self.looking |= {thread}
        return True

    def look(self, operation: str, arguments: Sequence[int], thread: int, result: Answer) -> bool:
        """Checks the answer of a look about the entry that it found."""
        key = self.key(arguments)
        spans = operation in self.spans or (self.fresh and operation in self.fresh_spans)
        if not spans and not self.finds(operation, key, thread, result):
            return False
        status, (incarnation, expected, references, left) = result
        if status == MISS:
            return True
        if thread not in self.looking:
            return False
        self.looking -= {thread}
        if status == NO_MEMORY:
            return True
        place = arguments[2] if operation != "get" else -1
        if place >= 0:
            self.held[thread][place % PLACES] = incarnation, key
        again = operation == "dispatch" and place < 0
        return (
            references >= 1
            and self.expects(key, expected)
            and (self.expects(key, left) if again else left == 0)
        )

    def described(self, first: Key, thread: int, result: Answer) -> bool:
        status, (number, length, _, counts) = result
        key = first[0], number
        named = first[1] <= number < self.n_keys and length == self.length(key)
        found = status == HIT and named and self.shows_now(key, thread)
        return result == answer(MISS) or (found and self.expects(key, counts >> 32))

    def expects(self, key: Key, reads: int) -> bool:
        """True if so many reads may be expected of an entry of the key."""
        if key in self.strange:
            return True
        if self.sums_reads and reads < EVICTED // 2:
            reads -= EVICTED
        least = -self.copied.get(key, 0) if self.below_zero else 0
        return least <= reads <= self.offered.get(key, 0)

    def seen(self, key: Key, thread: int, incarnation: int) -> bool:
        so_far = self.put_so_far.get(key, ())
        if key in self.strange:
            return True
        if incarnation not in so_far:
            return False
        version = 2 * so_far.index(incarnation) + 1
        if version < self.known[thread].get(key, 0):
            return False
        if self.fresh:
            if version < 2 * len(so_far) - 1 or self.state[key] == GONE:
                return False
            if not self.covered(key):
                self.state[key] = THERE
        self.known[thread][key] = version
        return True

    def missed(self, key: Key, thread: int) -> bool:
        if key not in self.put_so_far or not self.knows(key, thread) or self.state[key] == GONE:
            return True
        if self.hides(thread):
            return True
        if self.state[key] == THERE:
            return False
        self.lose(key, thread)
        return True

    def over_released(self, key: Key, thread: int, result: Answer) -> bool:
        status, words = result
        if status == MISS:
            return not any(words) and self.missed(key, thread)
        if status != HIT or words[2] < 1 or words[3] or not self.seen(key, thread, words[0]):
            return False
        right = self.expects(key, words[1])
        self.estrange(key)
        return right

    def awaits(self, place: int, thread: int, result: Answer | None) -> bool:
        """One more read is expected of a kept entry, unless there is no memory for its count."""
        if place in self.held[thread] and (result is None or result[0] != NO_MEMORY):
            _, key = self.held[thread][place]
            self.offered[key] = self.offered.get(key, 0) + 1
        return True

    def kept(self, operation: str, place: int, thread: int, result: Answer) -> bool:
        status, (incarnation, expected, *rest) = result
        if place not in self.held[thread]:
            return result == answer(MISS)
        kept, key = self.held[thread][place]
        if operation != "expect":
            del self.held[thread][place]
        elif status == NO_MEMORY:
            return True
        right = (HIT,) if operation == "expect" else (HIT, LAST)
        return (
            status in right
            and incarnation == kept
            and not any(rest)
            and self.expects(key, expected)
        )

    def sized(self, cache: int, thread: int, size: int) -> bool:
        mine = [key for key in self.put_so_far if key[0] == cache]
        least = sum(self.length(key) for key in mine if self.surely(key, thread))
        most = self.strays * (56 << self.shift)
        most += sum(self.length(key) * len(self.put_so_far[key]) for key in mine)
        takers = self.cut if self.fresh else [self.cut[thread]]
        return least <= size <= most - sum(cut.get(cache, 0) for cut in takers)
