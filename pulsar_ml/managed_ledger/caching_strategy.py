"""Caching strategies: expected reads (PIP-430), and the slowest cursor, which it replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from pulsar_ml._core import ActiveManagedCursorContainer, ManagedCursorContainer
from pulsar_ml.managed_ledger.ledgers import after
from pulsar_ml.managed_ledger.settings import LedgerSettings
from pulsar_ml.positions import Position

EVERYTHING = Position(2**63 - 1, 0)  # behind every entry


class CachingStrategy(Protocol):
    """The active cursors of a managed ledger, and what they mean for its cache.

    All methods may be called from any number of threads.
    """

    def add(self, cursor: str, read: Position, mark_delete: Position) -> None:
        """Adds an active cursor at its read and mark-delete positions."""
        ...

    def move(self, cursor: str, read: Position, mark_delete: Position) -> None:
        """Updates the positions of an active cursor; no effect for another one."""
        ...

    def remove(self, cursor: str) -> None:
        """Removes a cursor that is active no longer."""
        ...

    def __contains__(self, cursor: object, /) -> bool: ...

    def expected_reads_of_added(self) -> int | None:
        """The expected reads of a new entry; None: do not cache it."""
        ...

    def expected_reads_of_stored(self, cursor: str) -> int:
        """The expected reads of an entry that a cursor reads from storage; 0: do not cache it."""
        ...

    def expected_reads_ahead(self, cursor: str, position: Position) -> int:
        """The expected reads of entries from a position on that are read ahead of a cursor."""
        ...

    def evictable_before(self) -> Position | None:
        """No active cursor needs entries before this position; None: leave it to eviction."""
        ...


class ExpectedReads:
    """Caches entries with the number of cursors that have yet to read them (PIP-430)."""

    def __init__(self, grace_ms: int, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.cursors = ActiveManagedCursorContainer(
            continue_caching_added_entries_after_last_active_cursor_leaves_ms=grace_ms,
            now_ns=clock(),
        )

    def add(self, cursor: str, read: Position, mark_delete: Position) -> None:
        self.cursors.add(cursor, read)

    def move(self, cursor: str, read: Position, mark_delete: Position) -> None:
        self.cursors.update_cursor(cursor, read)

    def remove(self, cursor: str) -> None:
        self.cursors.remove_cursor(cursor, now_ns=self.clock())

    def __contains__(self, cursor: object, /) -> bool:
        return cursor in self.cursors

    def expected_reads_of_added(self) -> int | None:
        if self.cursors.should_cache_added_entry(now_ns=self.clock()):
            return len(self.cursors)
        return None

    def expected_reads_of_stored(self, cursor: str) -> int:
        return self.cursors.number_of_cursors_at_same_position_or_before(cursor)

    def expected_reads_ahead(self, cursor: str, position: Position) -> int:
        return self.cursors.number_of_cursors_at_position_or_before(cursor, position)

    def evictable_before(self) -> Position | None:
        return None


class SlowestCursor:
    """Caches entries while a cursor is active, until the slowest one read or mark-deleted them.

    ``backlogged`` has the positions of cursors whose reads are cached because others have a backlog
    like their own; :meth:`cache_for` replaces these cursors.
    """

    def __init__(self, *, by_mark_delete: bool) -> None:
        self.by_mark_delete = by_mark_delete
        self.cursors = ManagedCursorContainer()
        self.backlogged: dict[str, Position] = {}

    def wanted_from(self, read: Position, mark_delete: Position) -> Position:
        return after(mark_delete) if self.by_mark_delete else read

    def add(self, cursor: str, read: Position, mark_delete: Position) -> None:
        self.cursors.add(cursor, self.wanted_from(read, mark_delete))

    def move(self, cursor: str, read: Position, mark_delete: Position) -> None:
        wanted = self.wanted_from(read, mark_delete)
        self.cursors.update_cursor(cursor, wanted)
        if cursor in self.backlogged:
            self.backlogged[cursor] = wanted

    def cache_for(self, cursors: Iterable[tuple[str, Position, Position]]) -> None:
        """Caches the reads of these backlogged cursors at (name, read, mark-delete position)."""
        self.backlogged = {
            name: self.wanted_from(read, mark_delete) for name, read, mark_delete in cursors
        }

    def remove(self, cursor: str) -> None:
        self.cursors.remove_cursor(cursor)

    def __contains__(self, cursor: object, /) -> bool:
        return cursor in self.cursors

    def expected_reads_of_added(self) -> int | None:
        return None if self.cursors.is_empty else 0

    def expected_reads_of_stored(self, cursor: str) -> int:
        return int(cursor in self.cursors or cursor in self.backlogged)

    def expected_reads_ahead(self, cursor: str, position: Position) -> int:
        return self.expected_reads_of_stored(cursor)

    def evictable_before(self) -> Position | None:
        slowest = self.cursors.slowest_cursor_position() or EVERYTHING
        return min([slowest, *self.backlogged.values()])


def caching_strategy(settings: LedgerSettings, clock: Callable[[], int]) -> CachingStrategy:
    """Creates the strategy that the settings select."""
    if settings.cache_eviction_by_expected_read_count:
        return ExpectedReads(
            settings.continue_caching_added_entries_after_last_active_cursor_leaves_millis, clock
        )
    return SlowestCursor(by_mark_delete=settings.cache_eviction_by_mark_deleted_position)
