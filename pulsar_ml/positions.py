"""Positions: which entry of a managed ledger is meant."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """An entry of a managed ledger, ordered first by ledger, then by entry.

    A stored entry has both ids >= 0. As the bound of a range either id may be any signed 64-bit
    number: ``Position(-1, 0)`` is before everything, ``Position(7, -1)`` is before all of ledger 7.
    A plain ``(ledger_id, entry_id)`` tuple serves wherever a position is asked for.

    Origin: ``org.apache.bookkeeper.mledger.Position``.
    """

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


class Removed(NamedTuple):
    """What an invalidation took out of a cache: entries, and the bytes counted for them."""

    entries: int
    bytes: int


class Evicted(NamedTuple):
    """What an eviction pass did.

    ``entries`` and ``bytes`` were removed; ``requeued`` wrappers were kept and went to the tail;
    ``missing`` wrappers had been emptied by an invalidation before and were dropped.
    """

    entries: int
    bytes: int
    requeued: int
    missing: int
