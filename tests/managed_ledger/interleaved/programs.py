"""Programs of a few threads on one managed ledger, each with what must hold in every schedule.

Ledgers have two entries and the mark-delete position is stored once a second of a clock that stands
still: the ends of ledgers and late positions are near.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.managed_ledger import Fault, LedgerSettings, ManagedCursor
from pulsar_ml.managed_ledger.cursors.cursor import CURSOR_PREFIX
from pulsar_ml.positions import Position
from tests.managed_ledger.kit import Broker, open_broker, texts

TWO_ENTRIES = LedgerSettings(
    managed_ledger_max_entries_per_ledger=2,
    managed_ledger_default_mark_delete_rate_limit=1.0,
)


def together(*works: Callable[[], object]) -> None:
    """Run functions in threads until all have ended."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def read_now(cursor: ManagedCursor, most: int = 10) -> list[str]:
    """Return what a read delivers at once; nothing while another read is under way."""
    with suppress(UsageError):
        return texts(cursor.read_entries(most).result(0))
    return []


def stored_mark(broker: Broker, cursor: str) -> Position:
    """Return the mark-delete position with which a restart begins."""
    text = broker.storage.properties("orders")[CURSOR_PREFIX + cursor]
    ledger_id, _, entry_id = text.partition(":")
    return Position(int(ledger_id), int(entry_id))


def two_appenders() -> None:
    """Two threads append: each entry has a position of its own, and is read once in its order."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        at: dict[str, Position] = {}

        def append(name: str) -> None:
            at[name] = broker.ledger.add_entry(name.encode())

        together(lambda: append("x"), lambda: append("y"))
        delivered = read_now(cursor) + read_now(cursor)
        assert delivered == sorted(at, key=lambda name: at[name]), (delivered, at)


def a_reader_of_new_entries() -> None:
    """A cursor reads while entries are added: it delivers them once, in order, without a hole."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        delivered: list[str] = []

        def add() -> None:
            broker.add(3)

        def consume() -> None:
            for _ in range(2):
                delivered.extend(read_now(cursor))

        together(add, consume)
        for _ in range(3):
            delivered.extend(read_now(cursor))
        assert delivered == ["0", "1", "2"], delivered


def two_reads_of_a_cursor() -> None:
    """Two threads read by one cursor: no entry is delivered twice."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        broker.add(2)
        delivered: list[str] = []
        consume: Callable[[], Any] = lambda: delivered.extend(read_now(cursor, 1))  # noqa: E731
        together(consume, consume)
        delivered += read_now(cursor, 1)
        delivered += read_now(cursor, 1)
        assert delivered in (["0", "1"], ["1", "0"]), delivered


def a_mark_on_the_last_entry_of_a_ledger() -> None:
    """Two cursors pass the end of a ledger: it is deleted once both have stored that."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursors = [broker.ledger.open_cursor(name) for name in "ab"]
        at = broker.add(3)
        together(*(lambda cursor=cursor: cursor.mark_delete(at[1]) for cursor in cursors))
        assert broker.ledger.ledger_ids == [2]
        for cursor in cursors:
            assert stored_mark(broker, cursor.name) == at[1]
            assert cursor.backlog == 1
            assert read_now(cursor) == ["2"]


def a_trim_with_a_late_cursor() -> None:
    """A cursor whose last marks the rate limit kept back is stored before its ledger goes."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        late, other = (broker.ledger.open_cursor(name) for name in ("late", "other"))
        at = broker.add(5)
        late.mark_delete(at[0])  # stored; the next ones are not

        together(lambda: late.mark_delete(at[3]), lambda: other.mark_delete(at[3]))
        assert broker.ledger.ledger_ids == [3]
        assert stored_mark(broker, "late") == at[3]
        assert stored_mark(broker, "other") == at[3]


def a_mark_beside_a_trim() -> None:
    """One thread marks while another one trims: what is stored is never behind what is deleted."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        at = broker.add(5)
        cursor.mark_delete(at[0])

        def mark() -> None:
            cursor.mark_delete(at[1])
            cursor.mark_delete(at[3])

        together(mark, broker.ledger.trim)
        last_gone = broker.ledger.ledger_ids[0] - 1
        assert stored_mark(broker, "a") >= Position(last_gone, 1)


def an_entry_queued_twice_for_replay() -> None:
    """Two threads queue one entry: it is delivered once."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        at = broker.add(2)
        (first, second) = cursor.read_entries(2).result(0)
        together(lambda: cursor.replay_later([first]), lambda: cursor.replay_later([first, at[1]]))
        expected = first.expected_reads
        first.release()
        second.release()
        delivered = texts(cursor.replay_entries(10).result(0))
        assert delivered == ["0", "1"], delivered
        assert texts(cursor.replay_entries(10).result(0)) == []
        assert expected == 2, expected  # this read, and that of the replay


def a_mark_beside_a_replay() -> None:
    """Entries that are marked while they are queued leave the queue."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        at = broker.add(3)
        together(lambda: cursor.replay_later(at), lambda: cursor.mark_delete(at[1]))
        assert cursor.replays.positions == {at[2]}
        assert texts(cursor.replay_entries(10).result(0)) == ["2"]


def an_acknowledgement_beside_a_replay() -> None:
    """A single entry that is acknowledged while it is queued is not delivered."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        at = broker.add(3)
        together(lambda: cursor.replay_later(at), lambda: cursor.delete(at[1]))
        assert texts(cursor.replay_entries(10).result(0)) == ["0", "2"]


def two_replays() -> None:
    """Two threads take from the replay queue: each entry is delivered by one of them."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        cursor.replay_later(broker.add(2))
        delivered: list[str] = []
        take: Callable[[], Any] = lambda: delivered.extend(  # noqa: E731
            texts(cursor.replay_entries(1).result(0))
        )
        together(take, take)
        assert sorted(delivered) == ["0", "1"], delivered


def a_seek_before_the_mark() -> None:
    """A seek to the beginning beside a mark: acknowledged entries do not come back."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        at = broker.add(4)
        together(lambda: cursor.seek(at[0]), lambda: cursor.mark_delete(at[1]))
        assert cursor.read_position > at[1], cursor.read_position
        assert read_now(cursor) == ["2", "3"]


def a_seek_beside_a_read() -> None:
    """A seek back while the storage answers: the next read begins where the seek went."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        at = broker.add(2)
        broker.evict()
        broker.storage.plan(Fault.STALL)
        result = cursor.read_entries(2)
        together(broker.storage.resume, lambda: cursor.seek(at[0]))
        early = texts(result.result(0))
        assert early in ([], ["0", "1"])
        assert read_now(cursor) == ["0", "1"]


def two_openers() -> None:
    """Two threads open one cursor: they get the same one."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        found: list[ManagedCursor] = []

        def opens() -> None:
            found.append(broker.ledger.open_cursor("a"))

        together(opens, opens)
        assert found[0] is found[1]
        assert list(broker.ledger.cursors.values()) == [found[0]]


def two_openers_of_a_ledger() -> None:
    """Two threads open one managed ledger: they get the same one."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        found: list[object] = []
        opens: Callable[[], Any] = lambda: found.append(broker.factory.open("other"))  # noqa: E731
        together(opens, opens)
        assert found[0] is found[1]


def two_marks() -> None:
    """Two threads mark: the position is the later one, in memory and after a flush."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        at = broker.add(3)
        together(lambda: cursor.mark_delete(at[1]), lambda: cursor.mark_delete(at[0]))
        assert cursor.mark_delete_position == at[1]
        cursor.flush_if_dirty()
        assert stored_mark(broker, "a") == at[1]
        assert cursor.is_position_stored


def two_writers_of_the_position() -> None:
    """Two threads store the position while it moves: the storage never goes back."""
    settings = LedgerSettings(managed_ledger_default_mark_delete_rate_limit=0.0)
    with open_broker(settings=settings) as broker:
        cursor = broker.ledger.open_cursor("a")
        at = broker.add(2)
        together(lambda: cursor.mark_delete(at[0]), lambda: cursor.mark_delete(at[1]))
        assert stored_mark(broker, "a") == at[1]


def properties_of_two_threads() -> None:
    """Two threads set properties: none is lost."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        cursor = broker.ledger.open_cursor("a")
        together(lambda: cursor.put_property("x", "1"), lambda: cursor.put_property("y", "2"))
        assert cursor.properties == {"x": "1", "y": "2"}


def a_close_beside_an_append() -> None:
    """An entry whose append returned is in the storage; after the close none is added."""
    with open_broker(settings=TWO_ENTRIES) as broker:
        added: list[Position] = []

        def append() -> None:
            with suppress(Exception):
                added.append(broker.ledger.add_entry(b"x"))

        together(append, broker.ledger.close)
        stored = sum(each.entries for each in broker.storage.ledgers("orders"))
        assert stored == len(added)


PROGRAMS: tuple[Callable[[], None], ...] = (
    two_appenders,
    a_reader_of_new_entries,
    two_reads_of_a_cursor,
    a_mark_on_the_last_entry_of_a_ledger,
    a_trim_with_a_late_cursor,
    a_mark_beside_a_trim,
    an_entry_queued_twice_for_replay,
    a_mark_beside_a_replay,
    an_acknowledgement_beside_a_replay,
    two_replays,
    a_seek_before_the_mark,
    a_seek_beside_a_read,
    two_openers,
    two_openers_of_a_ledger,
    two_marks,
    two_writers_of_the_position,
    properties_of_two_threads,
    a_close_beside_an_append,
)
