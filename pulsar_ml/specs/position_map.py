"""Two ordered maps whose pages come from one memory."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, EXISTS, ABSENT, NO_MEMORY = range(4)

GREATEST = 2**63 - 1
LEDGERS = (0, 1, GREATEST)
LATE_LEDGERS = (3, 4, GREATEST - 1)  # of the own keys of threads 32 and above
BLOCKS = (0, 1, GREATEST >> 12)
PAGES = (0, 1, 63)
SHARED_SLOTS = (0, 1, 62, 63)
PLACES = 27

Position = tuple[int, int]


def position(place: int, slot: int, ledgers: Sequence[int] = LEDGERS) -> Position:
    """One of 27 pages: the ledger changes fastest, then the block, then the page in the block."""
    return ledgers[place % 3], BLOCKS[place // 3 % 3] << 12 | PAGES[place // 9] << 6 | slot


def shared_position(key: int) -> Position:
    """The position of a key that all threads contend for."""
    return position(key % PLACES, SHARED_SLOTS[key // PLACES])


def own_position(place: int, thread: int) -> Position:
    """The position in that page that only ``thread`` uses."""
    return position(place, 2 + thread % 32, LEDGERS if thread < 32 else LATE_LEDGERS)


class Model:
    """The owner of each position, by map. A page exists while one of its positions is taken."""

    fresh = False
    scarce = False
    weak: ClassVar[Mapping[str, str]] = {
        "put": "EXISTS: a handle was at the position at one moment; if it was removed since, the "
        "caller does not know of that. NO_MEMORY may also be answered while pages are being "
        "linked or unlinked.",
        "put_own": "NO_MEMORY as for put.",
        "remove": "ABSENT: the suite had recorded no finished put of the position. The caller's "
        "own puts are recorded, unless another removal took one and is under way.",
        "find": "A handle that was at the position at one moment, or ABSENT; the moment is not "
        "before the last change that the caller knows of.",
        "iterate": "Handles that were at positions of the interval, among them all that the "
        "caller knows to have been there during the whole call.",
        "iterate_all": "As iterate.",
        "put_across": "As put, on the other map.",
        "remove_across": "As remove, on the other map.",
    }
    spans = frozenset({"iterate", "iterate_all", "remove", "remove_across"})

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.threads = threads
        self.pages = settings["limit"] - 1
        self.places = min(PLACES, 1 << settings["spread"])
        self.maps: list[dict[Position, int]] = [{}, {}]
        # the threads that put each position so far
        self.ever: list[dict[Position, frozenset[int]]] = [{}, {}]
        self.scans: dict[
            int, tuple[set[Position], set[Position]]
        ] = {}  # by thread: surely seen, and perhaps
        self.scanned: dict[int, int] = {}  # by thread: the map
        self.removing: dict[int, tuple[int, Position]] = {}  # by thread: the map, and the position

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        operation, arguments = on_its_map(operation, arguments)
        if operation == "iterate":
            first, last, which = arguments
            return self.iterate(which, shared_position(first), shared_position(last))
        if operation == "iterate_all":
            return self.iterate(arguments[0], (0, 0), (GREATEST, GREATEST))
        if operation == "is_stored":
            return answer(DONE, min(arguments) >= 0)
        if operation in ("recall", "look"):
            return answer(DONE)
        key, which = arguments
        key += key % PLACES % self.places - key % PLACES  # the place in use that it stands for
        name = operation.removesuffix("_own")
        at = shared_position(key) if name == operation else own_position(key, thread)
        taken = self.maps[which]
        if name == "put":
            return self.put(which, at, thread)
        if operation == "remove_foreign":
            return answer(ABSENT)
        if name not in ("find", "remove"):
            raise unknown("position_map", operation)
        if at not in taken:
            return answer(ABSENT)
        if name == "remove":
            del taken[at]
            for by, (sure, _) in self.scans.items():
                if self.scanned[by] == which:
                    sure.discard(at)
        return answer(DONE, taken[at] + 1) if operation == "find" else answer(DONE)

    def shared(self, key: int) -> Position:
        """The position of a shared key, at the place in use that it stands for."""
        return shared_position(key + key % PLACES % self.places - key % PLACES)

    def put(self, which: int, at: Position, thread: int) -> Answer:
        taken = self.maps[which]
        if at in taken:
            return answer(EXISTS)
        pages = self.pages_used()
        if (which, page(at)) not in pages and len(pages) == self.pages:
            return answer(NO_MEMORY)
        taken[at] = thread
        self.ever[which][at] = self.ever[which].get(at, frozenset()) | {thread}
        for by, (_, perhaps) in self.scans.items():
            if self.scanned[by] == which:
                perhaps.add(at)
        return answer(DONE)

    def pages_used(self) -> set[tuple[int, Position]]:
        return {(which, page(at)) for which, taken in enumerate(self.maps) for at in taken}

    def iterate(self, which: int, first: Position, last: Position) -> Answer:
        """The number of positions found, and a hash of them in their order."""
        found = [at for at in sorted(self.maps[which]) if first <= at <= last]
        return answer(DONE, len(found), digest(found))

    def canonical(self) -> object:
        """Not in which order positions were put."""
        scans = [
            (thread, self.scanned[thread], frozenset(sure), frozenset(perhaps))
            for thread, (sure, perhaps) in sorted(self.scans.items())
        ]
        return (
            *(frozenset(taken.items()) for taken in self.maps),
            *(frozenset(ever.items()) for ever in self.ever),
            tuple(scans),
            tuple(sorted(self.removing.items())),
        )

    def begins(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> None:
        operation, arguments = on_its_map(operation, arguments)
        which = arguments[-1]
        if operation == "remove":
            self.removing[thread] = which, self.shared(arguments[0])
            return
        self.scanned[thread] = which
        known = self.maps[which] if self.fresh else own_positions(thread)
        perhaps = self.maps[which] if self.fresh else self.ever[which]
        self.scans[thread] = ({at for at in self.maps[which] if at in known}, set(perhaps))

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        operation, arguments = on_its_map(operation, arguments)
        if operation == "remove":
            which, at = self.removing.pop(thread, (-1, (0, 0)))
            if which >= 0 and result == answer(ABSENT) and self.maps[which].get(at) == thread:
                return (which, at) in self.removing.values()
            if which < 0 or result == answer(ABSENT):
                return which >= 0
            return self.step(operation, arguments, thread=thread) == result
        if operation in self.spans:
            return self.scan_ends(operation, arguments, thread, result)
        if operation in ("put", "put_own") and result == answer(NO_MEMORY):
            if self.scarce:
                # A page that holds a position of the caller's own needs no memory.
                key, which = arguments
                own = own_position(key % PLACES % self.places, thread)
                return operation == "put" or own not in self.maps[which]
            # Each other thread may have one page that no position is in, and each map keeps its
            # last branch. Without the threads the engine (c11, limits of 8 to 10) shows a put
            # refused for such a page.
            return len(self.pages_used()) + self.threads - 1 + len(self.maps) >= self.pages
        if not self.fresh and operation in ("find", "put"):
            key, which = arguments
            ever = self.ever[which].get(self.shared(key), frozenset())
            if operation == "find":
                return result == answer(ABSENT) or result in [answer(DONE, by + 1) for by in ever]
            if result == answer(EXISTS):
                return bool(ever)
        return self.step(operation, arguments, thread=thread) == result

    def scan_ends(
        self, operation: str, arguments: Sequence[int], thread: int, result: Answer
    ) -> bool:
        if thread not in self.scans:
            return False
        bounds = (0, 0), (GREATEST, GREATEST)
        if operation == "iterate":
            bounds = shared_position(arguments[0]), shared_position(arguments[1])
        sure, perhaps = (
            {at for at in some if bounds[0] <= at <= bounds[1]} for some in self.scans.pop(thread)
        )
        del self.scanned[thread]
        status, (count, seen, *rest) = result
        if status != DONE or any(rest) or not len(sure) <= count <= len(sure | perhaps):
            return False
        return any(
            digest(sorted(sure.union(more))) == seen
            for more in itertools.combinations(sorted(perhaps - sure), count - len(sure))
        )


def digest(found: Sequence[Position]) -> int:
    """One signed number for positions in their order."""
    seen = 0
    for ledger_id, entry_id in found:
        seen = ((seen * 1000003 + ledger_id) * 1000003 + entry_id) % 2**64
    return seen - 2**64 if seen >= 2**63 else seen


def on_its_map(operation: str, arguments: Sequence[int]) -> tuple[str, Sequence[int]]:
    """A call across as the call on the map that it is about."""
    if not operation.endswith("_across"):
        return operation, arguments
    key, which = arguments
    return operation.removesuffix("_across"), (key, 1 - which)


def own_positions(thread: int) -> set[Position]:
    return {own_position(place, thread) for place in range(PLACES)}


def page(at: Position) -> Position:
    return at[0], at[1] >> 6
