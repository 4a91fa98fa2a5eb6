"""The in-flight read limiter under a managed ledger."""

from __future__ import annotations

from concurrent.futures import Future

from pulsar_ml import ClosedError, Entry, ReadLimitError, ReadTimeoutError
from pulsar_ml.managed_ledger import Fault
from pulsar_ml.managed_ledger.entry_cache import DEFAULT_ENTRY_SIZE, estimated_size
from tests.managed_ledger.kit import SECONDS, Broker, noticed, open_broker, texts

SIZE = 36
ENTRY = SIZE + 64  # bytes of permits for an entry


def two_reads(broker: Broker) -> tuple[Future[list[Entry]], Future[list[Entry]]]:
    cursors = [broker.ledger.open_cursor(name, earliest=True) for name in "ab"]
    broker.add(6, size=SIZE)
    return cursors[0].read_entries(6), cursors[1].read_entries(6)


def test_an_estimate_is_the_average_and_a_share_of_overhead() -> None:
    assert estimated_size(3, 100) == 3 * 164
    with open_broker() as broker:
        assert broker.ledger.cache.average_inserted() == DEFAULT_ENTRY_SIZE
        broker.ledger.open_cursor("a")
        broker.add(2, size=30_000)
        assert broker.ledger.cache.average_inserted() == 30_000
        assert broker.ledger.average_entry_size(1) == 30_000


def test_the_average_of_a_ledger_is_at_least_one_byte() -> None:
    with open_broker() as broker:
        broker.ledger.open_cursor("a")
        broker.ledger.add_entry(b"x")
        for _ in range(3):
            broker.ledger.add_entry(b"")
        assert broker.ledger.average_entry_size(1) == 1


def test_permits_go_back_with_the_last_copy() -> None:
    with open_broker(limit=6 * ENTRY) as broker:
        first, second = two_reads(broker)
        entries = first.result(SECONDS)
        assert broker.factory.limiter.remaining == 0
        for entry in entries[:-1]:
            entry.release()
        assert broker.factory.limiter.remaining == 0
        assert not second.done()
        entries[-1].release()
        assert len(texts(second.result(SECONDS))) == 6


def test_a_waiting_read_continues_once_and_is_not_asked_for_again() -> None:
    """#23901: threads spun on the limit. Here the second read is requested and completed once."""
    with open_broker(limit=6 * ENTRY) as broker:
        first, second = two_reads(broker)
        broker.evict()
        assert broker.storage.reads == []
        texts(first.result(SECONDS))
        assert broker.storage.reads == [(1, 0, 5)]
        texts(second.result(SECONDS))


def test_permits_of_a_failed_read_go_back() -> None:
    with open_broker(limit=6 * ENTRY) as broker:
        cursor = broker.ledger.open_cursor("a", earliest=True)
        broker.add(6, size=SIZE)
        broker.evict()
        broker.storage.plan(Fault.FAIL)
        assert cursor.read_entries(6).exception(SECONDS) is not None
        assert broker.factory.limiter.remaining == 6 * ENTRY


def test_a_read_above_the_limit_is_served_when_nothing_else_is_in_flight() -> None:
    with open_broker(limit=1000) as broker:
        cursor = broker.ledger.open_cursor("a", earliest=True)
        broker.add(10, size=200)
        broker.evict()
        entries = cursor.read_entries(10).result(SECONDS)
        assert broker.factory.limiter.remaining == 0
        assert len(texts(entries)) == 10
        assert broker.factory.limiter.remaining == 1000


def test_a_read_that_waits_too_long_fails() -> None:
    with open_broker(limit=6 * ENTRY, acquire_timeout_ms=10) as broker:
        first, second = two_reads(broker)
        broker.clock.pass_millis(10)
        broker.factory.expire()
        assert isinstance(second.exception(SECONDS), ReadTimeoutError)
        texts(first.result(SECONDS))


def test_a_full_queue_refuses_a_read() -> None:
    with open_broker(limit=6 * ENTRY, acquire_queue_size=0) as broker:
        first, second = two_reads(broker)
        assert isinstance(second.exception(SECONDS), ReadLimitError)
        texts(first.result(SECONDS))


def test_permits_are_not_lost_when_the_executor_rejects_a_read() -> None:
    """#26296: the permits were deducted and the read dropped."""
    with open_broker(limit=6 * ENTRY) as broker:
        first, second = two_reads(broker)
        broker.executor.open = False
        with noticed() as reported:
            texts(first.result(SECONDS))
        assert "closed" in str(second.exception(SECONDS))
        assert len(reported) == 1
        assert broker.factory.limiter.remaining == 6 * ENTRY


def test_a_closed_factory_fails_what_waits() -> None:
    with open_broker(limit=6 * ENTRY) as broker:
        first, second = two_reads(broker)
        broker.factory.close()
        assert isinstance(second.exception(SECONDS), ClosedError)
        texts(first.result(SECONDS))
