"""The ledgers of a log with their sizes, and arithmetic of positions. No locks."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from pulsar_ml.managed_ledger.storage.interface import LedgerProperties
from pulsar_ml.positions import Position

EARLIEST = Position(-1, -1)


def after(position: Position) -> Position:
    """The position with the next entry id of the same ledger; an entry there need not exist."""
    return Position(position.ledger_id, position.entry_id + 1)


class Ledgers:
    """The ledgers of a log in ascending order, with their entry counts and bytes.

    Not thread-safe.
    """

    def __init__(self, ledgers: Iterable[LedgerProperties] = ()) -> None:
        self.sizes = {ledger.ledger_id: [ledger.entries, ledger.length] for ledger in ledgers}
        self.order = sorted(self.sizes)

    def begin(self, ledger_id: int) -> None:
        self.sizes[ledger_id] = [0, 0]
        insort(self.order, ledger_id)

    def add(self, ledger_id: int, length: int) -> None:
        """Counts a new entry of ``length`` bytes."""
        size = self.sizes[ledger_id]
        size[0] += 1
        size[1] += length

    def ids(self) -> list[int]:
        return list(self.order)

    def entries(self, ledger_id: int) -> int:
        return self.sizes[ledger_id][0]

    def length(self, ledger_id: int) -> int:
        return self.sizes[ledger_id][1]

    def contains(self, position: Position) -> bool:
        return (
            position.ledger_id in self.sizes
            and 0 <= position.entry_id < self.sizes[position.ledger_id][0]
        )

    def last(self) -> Position:
        """The position of the last entry; EARLIEST when there is none."""
        for ledger_id in reversed(self.order):
            if self.entries(ledger_id):
                return Position(ledger_id, self.entries(ledger_id) - 1)
        return EARLIEST

    def last_up_to(self, position: Position) -> Position:
        """The given position, or the last entry of its ledger when that comes first."""
        if position.ledger_id not in self.sizes:
            return position
        return Position(
            position.ledger_id, min(position.entry_id, self.entries(position.ledger_id) - 1)
        )

    def first_at_or_after(self, position: Position) -> Position | None:
        """The first entry that is not before a position; None when there is none yet."""
        for ledger_id in self.order[bisect_left(self.order, position.ledger_id) :]:
            first = max(position.entry_id, 0) if ledger_id == position.ledger_id else 0
            if first < self.entries(ledger_id):
                return Position(ledger_id, first)
        return None

    def ends_after(self, position: Position) -> list[tuple[Position, int]]:
        """The ends of ledgers from a position on, as (last entry, id of the following ledger).

        When the ledger of the position is deleted, the position counts as its last entry.
        """
        ids = [
            i for i in self.order[bisect_left(self.order, position.ledger_id) :] if self.entries(i)
        ]
        ends = []
        for following in ids:
            if following != position.ledger_id:
                ends.append((position, following))
            position = Position(following, self.entries(following) - 1)
        return ends

    def count_after(self, position: Position) -> int:
        """The number of entries behind a position."""
        count = 0
        for ledger_id in self.order[bisect_left(self.order, position.ledger_id) :]:
            passed = position.entry_id + 1 if ledger_id == position.ledger_id else 0
            count += max(self.entries(ledger_id) - max(passed, 0), 0)
        return count

    def passed(self, position: Position, *, keep: int | None) -> list[int]:
        """The first ledgers whose entries are all at or before a position; never ``keep``."""
        found = []
        for ledger_id in self.order:
            if ledger_id == keep or Position(ledger_id, self.entries(ledger_id) - 1) > position:
                break
            found.append(ledger_id)
        return found

    def trim(self, position: Position, *, keep: int | None) -> list[int]:
        """Removes the passed ledgers and returns their ids."""
        gone = self.passed(position, keep=keep)
        for ledger_id in gone:
            self.order.remove(ledger_id)
            del self.sizes[ledger_id]
        return gone
