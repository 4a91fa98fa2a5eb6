"""Two ordered maps whose pages come from one memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsar_ml.specs import Answer, answer, unknown

DONE, EXISTS, ABSENT, NO_MEMORY = range(4)

GREATEST = 2**63 - 1
LEDGERS = (0, 7, GREATEST)
LATE_LEDGERS = (1, 8, GREATEST - 1)  # of the own keys of threads 32 and above
BLOCKS = (0, 1, GREATEST >> 12)
PAGES = (0, 1, 63)
SHARED_SLOTS = (0, 1, 62, 63)
PLACES = 27

Position = tuple[int, int]


def position(place: int, slot: int, ledgers: Sequence[int] = LEDGERS) -> Position:
    """A place is one of 27 pages: the ledger changes fastest, then the block, then the page in it."""
    return ledgers[place % 3], BLOCKS[place // 3 % 3] << 12 | PAGES[place // 9] << 6 | slot


def shared_position(key: int) -> Position:
    """The position of a key that all threads contend for."""
    return position(key % PLACES, SHARED_SLOTS[key // PLACES])


def own_position(place: int, thread: int) -> Position:
    """The position in that page that only ``thread`` uses."""
    return position(place, 2 + thread % 32, LEDGERS if thread < 32 else LATE_LEDGERS)


class Model:
    """Who put each position, by map. A page exists while one of its positions is taken."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.pages = settings["limit"] - 1
        self.places = min(PLACES, 1 << settings["spread"])
        self.maps: list[dict[Position, int]] = [{}, {}]

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "iterate":
            first, last, which = arguments
            return self.iterate(which, shared_position(first), shared_position(last))
        if operation == "iterate_all":
            return self.iterate(arguments[0], (0, 0), (GREATEST, GREATEST))
        key, which = arguments
        key += key % PLACES % self.places - key % PLACES  # the place in use that it stands for
        name = operation.removesuffix("_own")
        at = shared_position(key) if name == operation else own_position(key, thread)
        taken = self.maps[which]
        if name == "put":
            return self.put(taken, at, thread)
        if operation == "remove_foreign":
            return answer(ABSENT)
        if name not in ("find", "remove"):
            raise unknown("position_map", operation)
        if at not in taken:
            return answer(ABSENT)
        if name == "remove":
            del taken[at]
        return answer(DONE, taken[at] + 1) if operation == "find" else answer(DONE)

    def put(self, taken: dict[Position, int], at: Position, thread: int) -> Answer:
        if at in taken:
            return answer(EXISTS)
        pages = {(id(positions), page(used)) for positions in self.maps for used in positions}
        if (id(taken), page(at)) not in pages and len(pages) == self.pages:
            return answer(NO_MEMORY)
        taken[at] = thread
        return answer(DONE)

    def iterate(self, which: int, first: Position, last: Position) -> Answer:
        """The number of positions found, and a hash of them in their order."""
        found = [at for at in sorted(self.maps[which]) if first <= at <= last]
        seen = 0
        for ledger_id, entry_id in found:
            seen = (seen * 1000003 + (ledger_id ^ entry_id)) % 2**64
        return answer(DONE, len(found), seen)


def page(at: Position) -> Position:
    return at[0], at[1] >> 6
