"""Positions of entries, and the results of removals and evictions."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """The position of an entry in a managed ledger, ordered by ledger and then by entry.

    A stored entry has both ids >= 0. The bound of a range may have any signed 64-bit ids:
    ``Position(-1, 0)`` is before everything, and ``Position(7, -1)`` is before all of ledger 7. All
    functions that take a position accept a plain ``(ledger_id, entry_id)`` tuple, too.

    Origin: ``org.apache.bookkeeper.mledger.Position``.
    """

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


class Removed(NamedTuple):
    """The number of entries that an invalidation removed from a cache, and their bytes."""

    entries: int
    bytes: int


class Evicted(NamedTuple):
    """The result of an eviction pass.

    ``entries`` and ``bytes`` were removed; ``requeued`` wrappers went back to the tail of the
    queue; ``missing`` wrappers, which an earlier invalidation had emptied, were dropped.
    """

    entries: int
    bytes: int
    requeued: int
    missing: int
