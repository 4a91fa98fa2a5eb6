from __future__ import annotations

from pulsar_ml import Position
from pulsar_ml.managed_ledger import LedgerSettings, MemoryStorage
from pulsar_ml.managed_ledger.cursor_metadata import LeftOut
from pulsar_ml.metrics import Registry
from tests.managed_ledger.kit import World, read, world

TWO_RANGES = LedgerSettings(
    managed_ledger_max_entries_per_ledger=5,
    managed_ledger_max_unacked_ranges_to_persist=2,
    managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=1,
    dispatcher_pause_on_ack_state_persistent_enabled=True,
)


def filled(of: World, *acknowledged: int) -> list[Position]:
    """Twelve entries "0" .. "11" in three ledgers, of which some are acknowledged."""
    cursor = of.ledger.open_cursor("sub", earliest=True)
    places = [of.ledger.add_entry(str(number).encode()) for number in range(12)]
    for number in acknowledged:
        cursor.delete(places[number])
    return places


def all_read(of: World) -> list[str]:
    cursor = of.ledger.open_cursor("sub")
    return [text for _ in range(3) for text in read(cursor)]


def test_a_restart_delivers_what_was_not_acknowledged_and_what_was_left_out() -> None:
    storage = MemoryStorage()
    with world(storage, settings=TWO_RANGES) as first:
        # Ranges 2..3, 5, 7 and 11, of which two are stored.
        filled(first, 0, 2, 3, 5, 7, 11)
        assert first.ledger.open_cursor("sub").flush() == LeftOut(ranges=2)
    with world(storage, settings=TWO_RANGES) as second:
        assert all_read(second) == ["1", "4", "6", "7", "8", "9", "10", "11"]
        assert second.ledger.open_cursor("sub").backlog == 8


def test_when_the_cursors_ledger_fails_less_is_kept() -> None:
    storage = MemoryStorage()
    with world(storage, settings=TWO_RANGES) as first:
        filled(first, 1, 3, 5)
        first.storage.fail_appends = 2  # now, and when it is closed
        assert first.ledger.open_cursor("sub").flush() == LeftOut(ranges=2)
    with world(storage, settings=TWO_RANGES) as second:
        assert all_read(second) == ["0", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]


def test_ranges_over_the_end_of_a_ledger_are_one() -> None:
    with world(settings=TWO_RANGES) as made:
        places = filled(made, 3, 4, 5, 6)
        cursor = made.ledger.open_cursor("sub")
        assert cursor.acks.ranges() == [(places[3], places[6])]
        for number in (0, 1, 2):
            cursor.delete(places[number])
        assert cursor.mark_delete_position == places[6]


def test_dispatch_pauses_until_the_state_fits() -> None:
    with world(settings=TWO_RANGES) as made:
        places = filled(made, 1, 3, 5)
        cursor = made.ledger.open_cursor("sub")
        told: list[bool] = []
        # Outside the ledger's lock: this takes it.
        cursor.on_resume = lambda: told.append(cursor.backlog > 0)
        assert not cursor.may_dispatch() and cursor.may_dispatch(replay=True)
        cursor.delete(places[7])
        assert told == []
        cursor.delete(places[4])
        assert told == []
        cursor.delete(places[6])
        assert told == [True] and cursor.may_dispatch()


def test_the_size_of_a_cursors_metadata_is_a_gauge() -> None:
    with world(settings=TWO_RANGES) as made:
        filled(made, 1, 3, 5)
        registry = Registry()
        registry.add_cursor_metadata(made.factory.cursor_metadata_sizes)
        (gauge,) = registry.labelled
        assert gauge.labels == ("namespace", "topic", "subscription")
        assert list(gauge.read()) == [(("", "orders", "sub"), 96)]
