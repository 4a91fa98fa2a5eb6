"""The legal answers of the cache manager while other calls run: the caches' answers, where any call
may evict.

A put that leaves the size above the threshold evicts before it returns, or leaves it to a task of
somebody else; only ``evict``, ``free`` and removals say what they took. So an eviction is legal
from the moment at which the size may have been above the threshold, until the caller's next
operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, cache_manager, range_answers
from pulsar_ml.specs.cache_manager import DISABLED
from pulsar_ml.specs.range_answers import HIT, MISS, OK, PUTS, UNTOLD
from pulsar_ml.specs.range_spans import Key, Span

Exact = cache_manager.Model  # judges programs of one thread

PASSES = frozenset({"evict", "free"})
HIDDEN = frozenset(
    {"tick", "trigger", "configure", "configure_policy", "serve"}
)  # evict and do not say what
LARGEST = 56


class Model(range_answers.Model):
    """The operations of the subject ``cache_manager``."""

    weak: ClassVar[Mapping[str, str]] = {
        **range_answers.Model.weak,
        "put": "As put of a range cache; and DISABLED, if the largest size may have been 0.",
        "get": "As get of a range cache. A miss is legal, too, once the size may have been above "
        "the threshold, beside a tick or a change of settings, and while the largest size may be "
        "0.",
        "tick": "The answer says nothing. Each entry that the call removes goes by itself.",
        "trigger": "HIT: the size may have been above the threshold.",
        "evict": "As free.",
        "free": "Each entry by itself. The entries that the answer counts are gone.",
        "configure": "The answer says nothing. The settings from before may be in force until the "
        "call returns, and after that for threads that have not seen it.",
        "configure_policy": "The answer says nothing.",
        "stats": "Each counter by itself, of one moment. For one caller, entries put and evicted "
        "never go back; they include those that the caller put and removed, and are at most "
        "those that were put, or may be gone. The size differs from the bytes cached by at most "
        "one entry for each thread that is putting, and by removals under way.",
        "serves": "HIT: a call of serve is under way.",
        "miss": "The answer says nothing.",
        "fork": "The answer says nothing.",
        "serve": "Any answer about the entries that it puts is legal.",
    }
    spans: ClassVar[frozenset[str]] = range_answers.Model.spans | PASSES | HIDDEN
    # The size may be read before what others free, and the other counters after what they put then.
    fresh_spans: ClassVar[frozenset[str]] = range_answers.Model.fresh_spans | {"stats"}

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        super().__init__(settings, threads)
        # Largest sizes that a thread may see; and, of changes under way, the new one and those
        # beside it.
        self.sizes = [frozenset({settings["max_size"]}) for _ in range(threads)]
        self.changes: dict[int, tuple[int, frozenset[int]]] = {}
        self.putting: frozenset[int] = frozenset()  # threads whose latest call was a put
        self.evicting: frozenset[int] = frozenset()  # and of these, those that may still evict
        self.serving: frozenset[int] = frozenset()
        self.was_above = False
        self.seen_so_far = [(0, 0, 0)] * threads  # the last answer of stats to each thread
        self.mine = [0] * threads  # entries put
        self.taken = [0] * threads  # entries that a thread's removals and passes answered
        self.bytes = 0  # put
        self.freed = 0  # bytes that any call answered
        self.freed_before: dict[int, int] = {}  # that, as it was when a thread's stats began

    def canonical(self) -> object:
        return (
            super().canonical(), tuple(self.sizes), frozenset(self.changes.items()), self.putting,
            self.evicting, self.serving, self.was_above, tuple(self.seen_so_far), tuple(self.mine),
            tuple(self.taken), self.bytes, self.freed, frozenset(self.freed_before.items()),
        )  # fmt: skip

    def hides(self, thread: int) -> bool:
        return 0 in self.sizes[thread]

    def covered(self, key: Key) -> int:
        return UNTOLD if self.evicting else super().covered(key)

    def count_removed(self, thread: int, cache: int, entries: int, size: int) -> None:
        super().count_removed(thread, cache, entries, size)
        self.taken[thread] += entries
        self.freed += size

    def goes_on(self, thread: int) -> None:
        """The thread's call before this one is over."""
        self.putting -= {thread}
        self.evicting -= {thread}

    def look_at_size(self) -> None:
        """If the size may be above the threshold now, every put that is not known to be over may
        evict.
        """
        largest = min(min(sizes) for sizes in self.sizes) << self.shift
        if self.bytes - self.freed <= largest * 98 // 100:
            return
        self.was_above = True
        self.evicting = self.putting
        if self.evicting:
            self.doubt(Span(-1, 0, self.n_keys - 1, (), takes=True, tells=False))

    # Calls that take their time -------------------------------------------------------------------

    def begins(
        self,
        operation: str,
        arguments: Sequence[int],
        *,
        thread: int = 0,
        result: Answer | None = None,
    ) -> bool:
        self.goes_on(thread)
        if operation == "stats":
            self.freed_before[thread] = self.freed
            return True
        if operation not in PASSES | HIDDEN:
            return super().begins(operation, arguments, thread=thread, result=result)
        if operation == "configure":
            size = arguments[0]
            beside = frozenset(new for new, _ in self.changes.values())
            self.changes = {
                who: (new, others | {size}) for who, (new, others) in self.changes.items()
            }
            self.changes[thread] = size, beside
            self.sizes = [sizes | {size} for sizes in self.sizes]
        elif operation == "serve":
            self.serving |= {thread}
            self.serve(arguments, thread)
        self.look_at_size()
        self.opens(thread, -1, 0, self.n_keys - 1, takes=True, tells=operation in PASSES)
        return True

    def serve(self, arguments: Sequence[int], thread: int) -> None:
        """Puts that no answer mentions: their keys may be in any state from here on."""
        cache, first, puts = arguments[0] % self.n_caches, arguments[1] % self.n_keys, arguments[2]
        # Each takes a number, or none where memory runs out.
        self.refused[thread] += puts
        self.strays += puts
        self.bytes += puts * (LARGEST << self.shift)
        for number in range(puts):
            self.estrange((cache, (first + number) % self.n_keys))

    def ends(self, operation: str, arguments: Sequence[int], thread: int, result: Answer) -> bool:
        status, words = result
        if thread not in self.open:
            return False
        if operation in PASSES:
            entries, size, _, missing = words
            self.count_removed(thread, -1, entries, size)
            self.dropped += entries + missing
            del self.open[thread]
            return (
                status == 0 and min(words) >= 0 and self.empty(self.dropped)
                and (operation == "free" or not entries or self.was_above)
            )  # fmt: skip
        if operation not in HIDDEN:
            return super().ends(operation, arguments, thread, result)
        del self.open[thread]
        self.serving -= {thread}
        if operation == "configure":
            if thread not in self.changes:
                return False
            new, others = self.changes.pop(thread)
            for who in range(len(self.sizes)) if self.fresh else [thread]:
                self.sizes[who] = others | {new}
        if operation == "trigger":
            return result == answer(MISS) or (result == answer(HIT) and self.was_above)
        return not any(words) and (operation == "serve" or status == 0)

    # Everything else ------------------------------------------------------------------------------

    def answers(
        self, operation: str, arguments: Sequence[int], thread: int, result: Answer
    ) -> bool:
        if operation not in self.spans:
            self.goes_on(thread)
        if result == answer(DISABLED) and (operation in PUTS or operation == "put_foreign"):
            self.numbers[thread] += 1
            return self.hides(thread)
        if operation == "serves":
            return result == answer(MISS) or (result == answer(HIT) and bool(self.serving))
        if operation == "stats":
            return (not self.fresh or thread in self.freed_before) and self.counts(thread, result)
        if not super().answers(operation, arguments, thread, result):
            return False
        if operation in PUTS and result[0] == OK:
            if self.sizes[thread] == {0}:
                return False
            self.mine[thread] += 1
            self.bytes += self.length(self.key(arguments))
            self.putting |= {thread}
            self.look_at_size()
        return True

    def counts(self, thread: int, result: Answer) -> bool:
        status, (size, put, evicted, evictions) = result
        before = self.seen_so_far[thread]
        self.seen_so_far[thread] = put, evicted, evictions
        entries = sum(map(len, self.put_so_far.values())) + self.strays
        surely = sum(self.length(key) for key in self.put_so_far if self.surely(key, thread))
        freed = self.freed_before.pop(thread) if self.fresh else sum(self.cut[thread].values())
        return (
            status == 0
            and max(before[0], self.mine[thread]) <= put <= entries
            and max(before[1], self.taken[thread]) <= evicted and self.empty(evicted)
            and evictions >= before[2]
            and surely - len(self.mine) * (LARGEST << self.shift) <= size <= self.bytes - freed
        )  # fmt: skip
