from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest
from prometheus_client import CollectorRegistry

from pulsar_ml import InvalidPositionError, Position, StorageError, UsageError
from pulsar_ml.managed_ledger import LedgerSettings, ManagedCursor, MemoryStorage
from pulsar_ml.managed_ledger.cursors.cursor_metadata import MAGIC, Omitted
from pulsar_ml.metrics import PrometheusCollector, Registry
from tests.managed_ledger.kit import SECONDS, Broker, open_broker, read

TWO_RANGES = LedgerSettings(
    managed_ledger_max_entries_per_ledger=5,
    managed_ledger_max_ack_state_in_bytes_to_persist=None,
    managed_ledger_max_unacked_ranges_to_persist=2,
    managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=1,
    dispatcher_pause_on_ack_state_persistent_enabled=True,
)


def filled(broker: Broker, *acknowledged: int) -> list[Position]:
    """Adds the entries "0" .. "11" in three ledgers, and acknowledges some."""
    cursor = broker.ledger.open_cursor("sub", earliest=True)
    positions = [broker.ledger.add_entry(str(number).encode()) for number in range(12)]
    for number in acknowledged:
        cursor.delete(positions[number])
    return positions


def all_read(broker: Broker) -> list[str]:
    cursor = broker.ledger.open_cursor("sub")
    return [text for _ in range(3) for text in read(cursor)]


def test_a_restart_delivers_what_was_not_acknowledged_and_what_was_left_out() -> None:
    storage = MemoryStorage()
    with open_broker(storage, settings=TWO_RANGES) as first:
        # Ranges 2..3, 5, 7 and 11, of which two are stored.
        filled(first, 0, 2, 3, 5, 7, 11)
        assert first.ledger.open_cursor("sub").flush() == Omitted(ranges=2)
    with open_broker(storage, settings=TWO_RANGES) as second:
        assert all_read(second) == ["1", "4", "6", "7", "8", "9", "10", "11"]
        assert second.ledger.open_cursor("sub").backlog == 8


def test_when_the_cursors_ledger_fails_less_is_kept() -> None:
    storage = MemoryStorage()
    with open_broker(storage, settings=TWO_RANGES) as first:
        filled(first, 1, 3, 5)
        first.storage.fail_appends = 2  # one now, and one when the ledger is closed
        assert first.ledger.open_cursor("sub").flush() == Omitted(ranges=2)
    with open_broker(storage, settings=TWO_RANGES) as second:
        assert all_read(second) == ["0", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]


def test_ranges_over_the_end_of_a_ledger_are_one() -> None:
    with open_broker(settings=TWO_RANGES) as broker:
        positions = filled(broker, 3, 4, 5, 6)
        cursor = broker.ledger.open_cursor("sub")
        assert cursor.acks.ranges() == [(positions[3], positions[6])]
        for number in (0, 1, 2):
            cursor.delete(positions[number])
        assert cursor.mark_delete_position == positions[6]


def test_dispatch_pauses_until_the_state_fits() -> None:
    with open_broker(settings=TWO_RANGES) as broker:
        positions = filled(broker, 1, 3, 5)
        cursor = broker.ledger.open_cursor("sub")
        calls: list[bool] = []
        # ``backlog`` takes the ledger's lock, so the listener must run outside it.
        cursor.on_dispatch_resumed(lambda: calls.append(cursor.backlog > 0))
        assert not cursor.may_dispatch() and cursor.may_dispatch(replay=True)
        cursor.delete(positions[7])
        assert calls == []
        cursor.delete(positions[4])
        assert calls == []
        cursor.delete(positions[6])
        assert calls == [True] and cursor.may_dispatch()


def test_the_size_of_a_cursors_metadata_is_a_gauge() -> None:
    with open_broker(settings=TWO_RANGES) as broker:
        filled(broker, 1, 3, 5)
        registry = Registry()
        registry.add_cursor_metadata(broker.factory.cursor_metadata_sizes)
        (gauge,) = registry.labelled
        assert gauge.labels == ("namespace", "topic", "subscription")
        assert list(gauge.read()) == [(("", "orders", "sub"), 96)]


TOPIC = "persistent://public/default/orders"


def test_the_gauge_has_the_labels_of_the_proposal_and_the_exact_size() -> None:
    with open_broker(settings=TWO_RANGES) as broker:
        ledger = broker.factory.open(TOPIC)
        cursor = ledger.open_cursor("sub", earliest=True)
        positions = [ledger.add_entry(b"x") for _ in range(4)]
        registry = Registry()
        registry.add_cursor_metadata(broker.factory.cursor_metadata_sizes)
        collector = CollectorRegistry()
        collector.register(PrometheusCollector(registry, cluster="eu-west"))
        labels = {
            "cluster": "eu-west",
            "namespace": "public/default",
            "topic": TOPIC,
            "subscription": "sub",
        }

        def size() -> float | None:
            return collector.get_sample_value("pulsar_cursor_metadata_size_in_memory_bytes", labels)

        assert size() == 0
        cursor.delete(positions[1])
        cursor.delete_index(positions[3], 2, batch_size=70)
        cursor.put_property("key", "value")
        cursor.mark_delete(positions[0], sequence_ids={"producer": 7})
        # The range is behind the mark by now. A batch takes three words and two words of bits; a
        # text takes its length and its bytes.
        assert size() == (24 + 2 * 8) + (4 + 3 + 4 + 5) + (4 + 8 + 8)


def test_the_gauge_has_the_labels_of_a_managed_ledgers_name() -> None:
    with open_broker() as broker:
        broker.factory.open("public/default/persistent/orders").open_cursor("sub")
        assert broker.factory.cursor_metadata_sizes() == [(("public/default", TOPIC, "sub"), 0)]


def test_batches_properties_and_sequence_ids_come_back() -> None:
    storage = MemoryStorage()
    with open_broker(storage) as first:
        positions = filled(first, 2)
        cursor = first.ledger.open_cursor("sub")
        cursor.delete_index(positions[4], 0, batch_size=3)
        cursor.delete_index(positions[4], 2, batch_size=3)
        cursor.set_properties({"a": "1", "b": "2"})
        cursor.remove_property("b")
        cursor.mark_delete(positions[0], sequence_ids={"producer": 41})
        cursor.mark_delete(positions[1])
    with open_broker(storage) as second:
        cursor = second.ledger.open_cursor("sub")
        assert cursor.deleted_indexes(positions[4], batch_size=3) == [0, 2]
        assert (cursor.properties, cursor.sequence_ids) == ({"a": "1"}, {"producer": 41})
        cursor.delete_index(positions[4], 1, batch_size=3)
        assert all_read(second) == ["3", "5", "6", "7", "8", "9", "10", "11"]


def test_what_is_no_property_or_sequence_id_is_refused_and_changes_nothing() -> None:
    with open_broker() as broker:
        positions = filled(broker)
        cursor = broker.ledger.open_cursor("sub")
        with pytest.raises(UsageError, match="64-bit"):
            cursor.mark_delete(positions[3], sequence_ids={"producer": 2**63})
        with pytest.raises(UsageError, match="use a string"):
            cursor.put_property("key", 7)  # type: ignore[arg-type]
        with pytest.raises(InvalidPositionError, match="no message 3 of 3"):
            cursor.delete_index(positions[3], 3, batch_size=3)
        assert (cursor.backlog, cursor.properties, cursor.sequence_ids) == (12, {}, {})


def paused(broker: Broker) -> tuple[ManagedCursor, list[Position], list[str]]:
    """A cursor with one range too many, and the calls of its two listeners."""
    positions = filled(broker, 1, 3, 5)
    cursor = broker.ledger.open_cursor("sub")
    calls: list[str] = []
    cursor.on_dispatch_resumed(lambda: calls.append("messages"))
    cursor.on_dispatch_resumed(lambda: calls.append("delayed"))
    return cursor, positions, calls


def test_delayed_messages_wait_alike_and_take_no_wake_up_of_others() -> None:
    with open_broker(settings=TWO_RANGES) as broker:
        cursor, positions, calls = paused(broker)
        assert not cursor.may_dispatch() and not cursor.may_dispatch(delayed=True)
        cursor.delete(positions[2])
        assert calls == ["messages", "delayed"]
        assert cursor.may_dispatch(delayed=True) and cursor.may_dispatch()


def test_a_dispatcher_is_told_though_the_storage_fails() -> None:
    with open_broker(settings=TWO_RANGES) as broker:
        cursor, positions, calls = paused(broker)
        assert not cursor.may_dispatch()
        broker.storage.fail_properties = 1
        with pytest.raises(StorageError):
            cursor.mark_delete(positions[1])
        assert calls == ["messages", "delayed"]


def test_a_dispatcher_is_told_though_another_one_raises() -> None:
    with open_broker(settings=TWO_RANGES) as broker:
        cursor, positions, calls = paused(broker)
        assert not cursor.may_dispatch()
        cursor.resume_listeners.insert(0, lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            cursor.mark_delete(positions[1])
        assert calls == ["messages", "delayed"]


def test_properties_that_go_make_room() -> None:
    limits = LedgerSettings(
        managed_ledger_max_ack_state_in_bytes_to_persist=1024,
        managed_ledger_max_unacked_ranges_to_persist=0,
        dispatcher_pause_on_ack_state_persistent_enabled=True,
    )
    with open_broker(settings=limits) as broker:
        cursor, _, calls = paused(broker)
        # The number of ranges has no effect beside a limit of bytes.
        assert cursor.may_dispatch()
        cursor.put_property("key", "x" * 1000)
        assert not cursor.may_dispatch()
        cursor.remove_property("key")
        assert calls == ["messages", "delayed"]


def flushed(broker: Broker) -> int:
    """The number of times that the cursor's metadata were stored."""
    return broker.ledger.cursors["sub"].store.revision


def test_dirty_cursors_are_flushed_when_the_interval_is_over() -> None:
    with open_broker() as broker:
        positions = filled(broker, 2)
        cursor = broker.ledger.open_cursor("sub")
        broker.clock.pass_millis(59_999)
        broker.factory.expire()
        assert (flushed(broker), cursor.is_dirty) == (0, True)
        broker.clock.pass_millis(1)
        broker.storage.fail_appends = broker.storage.fail_properties = 1
        broker.factory.expire()
        assert cursor.is_dirty  # The storage refused it; the next interval tries again.
        broker.factory.expire()
        assert cursor.is_dirty
        broker.clock.pass_millis(60_000)
        broker.factory.expire()
        before = flushed(broker)
        assert not cursor.is_dirty and before > 0
        broker.clock.pass_millis(60_000)
        broker.factory.expire()
        assert flushed(broker) == before
        cursor.delete(positions[4])
        assert broker.ledger.flush_cursors() == 1 and flushed(broker) == before + 1


def test_what_the_metadata_store_had_no_room_for_is_stored_later() -> None:
    with open_broker(settings=TWO_RANGES) as broker:
        filled(broker, 1, 3)
        broker.storage.fail_appends = 1
        cursor = broker.ledger.open_cursor("sub")
        assert cursor.flush() == Omitted(ranges=1)
        assert cursor.is_dirty and broker.ledger.flush_cursors() == 1
        assert cursor.state.omitted == Omitted() and not cursor.is_dirty


def test_marks_are_stored_at_the_rate_of_the_settings_and_the_rest_by_a_flush() -> None:
    with open_broker() as broker:
        positions = filled(broker)
        cursor = broker.ledger.open_cursor("sub")

        def stored_mark() -> str:
            return broker.storage.properties("orders")["cursor/sub"]

        cursor.mark_delete(positions[0])
        cursor.mark_delete(positions[1])
        assert stored_mark() == str(positions[0])
        broker.clock.pass_millis(1000)
        cursor.mark_delete(positions[2])
        assert stored_mark() == str(positions[2])
        cursor.mark_delete(positions[3])
        assert cursor.is_dirty
        assert broker.ledger.flush_cursors() == 1
        assert stored_mark() == str(positions[3])


class WatchedStorage(MemoryStorage):
    """Sets an event when metadata of a cursor are appended."""

    def __init__(self) -> None:
        super().__init__()
        self.appended = threading.Event()

    def append(self, ledger_id: int, entry_id: int, data: bytes) -> Future[None]:
        if data.startswith(MAGIC):
            self.appended.set()
        return super().append(ledger_id, entry_id, data)


def test_the_thread_of_a_factory_flushes() -> None:
    storage = WatchedStorage()
    with open_broker(storage, check_interval_ms=1) as broker:
        filled(broker, 2)
        broker.clock.pass_millis(60_000)
        assert storage.appended.wait(SECONDS)
