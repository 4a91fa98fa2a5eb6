"""What range caches may answer while others change them: which incarnations a hit may show, when one is due.

The model ``range_cache`` says what each call answers when nothing runs beside it; this one says what all
schedules have in common. Of each key it knows the incarnations that were put, and whether the last one is
there, gone, or perhaps gone, because a removal that covers it is under way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer

MISS, HIT, LAST = 0, 1, 2
OK, EXISTS = 0, 1
PLACES = 16

THERE, PERHAPS, GONE = range(3)

PUTS = frozenset({"put", "put_late", "put_alone"})
LOOKS = frozenset({"get", "hold", "dispatch"})
REMOVALS = frozenset({"remove_range", "clear"})
KEPT = frozenset({"release", "drop", "expect"})

Key = tuple[int, int]  # cache and key


class Model:
    """The operations of the subject ``range_cache``. None of them is linearizable as a whole."""

    fresh = False
    weak: ClassVar[Mapping[str, str]] = {
        "put": "OK: the position was free at one moment of the call. EXISTS: it was taken at one moment, "
        "perhaps by an entry that is gone by now.",
        "put_late": "As put.",
        "put_alone": "As put.",
        "put_foreign": "Nothing is put.",
        "get": "A hit is an incarnation that was put under the key, never one before what the caller put "
        "or saw there. A miss of what the caller put or saw last needs a removal that covers the "
        "key.",
        "hold": "As get.",
        "dispatch": "As get.",
        "release": "The incarnation that the thread kept at the place; the expected reads are as of some "
        "moment.",
        "drop": "As release.",
        "expect": "As release.",
        "exists": "As get, without the incarnation.",
        "read_range": "Each entry by itself; keys that never were put are not in it.",
        "visit": "Each entry by itself.",
        "remove_range": "Each entry by itself: what was there when it began is gone when it ends.",
        "clear": "As remove_range, of all keys.",
        "size": "Not below 0; bytes of entries that come and go meanwhile are counted or not.",
        "sweep": "No entry goes, only wrappers that are empty already.",
    }
    spans = REMOVALS | {"visit"}

    def __init__(self, settings: Mapping[str, int], threads: int = 1) -> None:
        self.n_caches = settings["caches"]
        self.n_keys = settings["keys"]
        self.put_so_far: dict[Key, tuple[int, ...]] = {}
        self.state: dict[Key, int] = {}
        self.known: list[dict[Key, int]] = [{} for _ in range(threads)]  # places in put_so_far
        self.numbers = [0] * threads
        self.held: list[dict[int, int]] = [{} for _ in range(threads)]
        self.open: dict[int, tuple[int, int, int, frozenset[tuple[Key, int]]]] = {}  # removals, by thread

    def canonical(self) -> object:
        return (
            frozenset(self.put_so_far.items()),
            frozenset(self.state.items()),
            tuple(frozenset(known.items()) for known in self.known),
            tuple(self.numbers),
            tuple(frozenset(held.items()) for held in self.held),
            frozenset(self.open.items()),
        )

    def key(self, arguments: Sequence[int]) -> Key:
        return arguments[0] % self.n_caches, arguments[1] % self.n_keys

    # Removals ----------------------------------------------------------------------------------------

    def begins(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> None:
        cache, first, last = arguments[0] % self.n_caches, 0, self.n_keys - 1
        if operation == "remove_range":
            first = arguments[1] % self.n_keys
            last = min(first + arguments[2], last)
        there = frozenset(
            (key, len(so_far))
            for key, so_far in self.put_so_far.items()
            if key[0] == cache and first <= key[1] <= last
        )
        self.open[thread] = cache, first, last, there
        for key, _ in there:
            if self.state[key] == THERE:
                self.state[key] = PERHAPS

    def ends(self, operation: str, thread: int) -> bool:
        if thread not in self.open:
            return False
        there = self.open.pop(thread)[3]
        if operation in REMOVALS:
            for key, puts in there:
                if len(self.put_so_far[key]) == puts:  # what was there when it began
                    self.state[key] = GONE
        return True

    def covered(self, key: Key) -> bool:
        return any(
            cache == key[0] and first <= key[1] <= last for cache, first, last, _ in self.open.values()
        )

    # Everything else ---------------------------------------------------------------------------------

    def concurrent(self, operation: str, arguments: Sequence[int], *, thread: int = 0, given: Answer) -> bool:
        status, words = given
        if operation in self.spans:
            return self.ends(operation, thread)
        if operation in PUTS:
            return self.put(self.key(arguments), thread, status, words[0])
        if operation in LOOKS or operation == "exists":
            if status == HIT and operation != "exists":
                return self.seen(operation, arguments, thread, words[0])
            return status == HIT or self.missed(self.key(arguments), thread)
        if operation in KEPT:
            place = arguments[0] % PLACES
            kept = self.held[thread].get(place)
            if operation != "expect":
                self.held[thread].pop(place, None)
            return (
                given == (MISS, (0, 0, 0, 0)) if kept is None else status in (HIT, LAST) and words[0] == kept
            )
        return operation != "size" or words[0] >= 0

    def put(self, key: Key, thread: int, status: int, incarnation: int) -> bool:
        so_far = self.put_so_far.get(key, ())
        if status != OK:
            # Taken at one moment; for a thread that sees old values, perhaps long ago.
            return status != EXISTS or (bool(so_far) and not (self.fresh and self.state[key] == GONE))
        if so_far and self.state[key] == THERE:
            return False
        if incarnation >> 40 != thread or incarnation & ((1 << 40) - 1) <= self.numbers[thread]:
            return False
        self.numbers[thread] = incarnation & ((1 << 40) - 1)
        self.put_so_far[key] = (*so_far, incarnation)
        self.state[key] = PERHAPS if self.covered(key) else THERE
        self.known[thread][key] = len(so_far)
        return True

    def seen(self, operation: str, arguments: Sequence[int], thread: int, incarnation: int) -> bool:
        key = self.key(arguments)
        so_far = self.put_so_far.get(key, ())
        if incarnation not in so_far:
            return False
        index = so_far.index(incarnation)
        if index < self.known[thread].get(key, 0):
            return False
        if self.fresh and (index < len(so_far) - 1 or self.state[key] == GONE):
            return False
        self.known[thread][key] = index
        if operation != "get" and arguments[2] >= 0:
            self.held[thread][arguments[2] % PLACES] = incarnation
        return True

    def missed(self, key: Key, thread: int) -> bool:
        so_far = self.put_so_far.get(key, ())
        if not so_far or self.state[key] != THERE:
            return True
        return not self.fresh and self.known[thread].get(key, -1) < len(so_far) - 1
