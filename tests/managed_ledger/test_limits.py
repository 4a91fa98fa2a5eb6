"""The in-flight read limiter under a managed ledger."""

from __future__ import annotations

from concurrent.futures import Future

from pulsar_ml import ClosedError, Entry, ReadLimitError, ReadTimeoutError
from pulsar_ml.managed_ledger import Fault
from pulsar_ml.managed_ledger.entry_cache import DEFAULT_ENTRY_SIZE, estimated_size
from tests.managed_ledger.kit import SECONDS, World, noticed, texts, world

SIZE = 36
ENTRY = SIZE + 64  # bytes of permits for an entry


def two_reads(made: World) -> tuple[Future[list[Entry]], Future[list[Entry]]]:
    cursors = [made.ledger.open_cursor(name, earliest=True) for name in "ab"]
    made.add(6, size=SIZE)
    return cursors[0].read_entries(6), cursors[1].read_entries(6)


def test_an_estimate_is_the_average_and_a_share_of_overhead() -> None:
    assert estimated_size(3, 100) == 3 * 164
    with world() as made:
        assert made.ledger.cache.average_inserted() == DEFAULT_ENTRY_SIZE
        made.ledger.open_cursor("a")
        made.add(2, size=30_000)
        assert made.ledger.cache.average_inserted() == 30_000
        assert made.ledger.average_entry_size(1) == 30_000


def test_the_average_of_a_ledger_is_at_least_one_byte() -> None:
    with world() as made:
        made.ledger.open_cursor("a")
        made.ledger.add_entry(b"x")
        for _ in range(3):
            made.ledger.add_entry(b"")
        assert made.ledger.average_entry_size(1) == 1


def test_permits_go_back_with_the_last_copy() -> None:
    with world(limit=6 * ENTRY) as made:
        first, second = two_reads(made)
        entries = first.result(SECONDS)
        assert made.factory.limiter.remaining == 0
        for entry in entries[:-1]:
            entry.release()
        assert made.factory.limiter.remaining == 0
        assert not second.done()
        entries[-1].release()
        assert len(texts(second.result(SECONDS))) == 6


def test_a_waiting_read_continues_once_and_is_not_asked_for_again() -> None:
    """#23901: threads spun on the limit. Here the second read is asked for once and told once."""
    with world(limit=6 * ENTRY) as made:
        first, second = two_reads(made)
        made.evict()
        assert made.storage.reads == []
        texts(first.result(SECONDS))
        assert made.storage.reads == [(1, 0, 5)]
        texts(second.result(SECONDS))


def test_permits_of_a_failed_read_go_back() -> None:
    with world(limit=6 * ENTRY) as made:
        cursor = made.ledger.open_cursor("a", earliest=True)
        made.add(6, size=SIZE)
        made.evict()
        made.storage.plan(Fault.FAIL)
        assert cursor.read_entries(6).exception(SECONDS) is not None
        assert made.factory.limiter.remaining == 6 * ENTRY


def test_a_read_that_waits_too_long_fails() -> None:
    with world(limit=6 * ENTRY, acquire_timeout_millis=10) as made:
        first, second = two_reads(made)
        made.clock.pass_millis(10)
        made.factory.expire()
        assert isinstance(second.exception(SECONDS), ReadTimeoutError)
        texts(first.result(SECONDS))


def test_a_full_queue_refuses_a_read() -> None:
    with world(limit=6 * ENTRY, acquire_queue_size=0) as made:
        first, second = two_reads(made)
        assert isinstance(second.exception(SECONDS), ReadLimitError)
        texts(first.result(SECONDS))


def test_permits_are_not_lost_when_the_executor_rejects_a_read() -> None:
    """#26296: the permits were deducted and the read dropped."""
    with world(limit=6 * ENTRY) as made:
        first, second = two_reads(made)
        made.executor.open = False
        with noticed() as reported:
            texts(first.result(SECONDS))
        assert "takes nothing" in str(second.exception(SECONDS))
        assert len(reported) == 1
        assert made.factory.limiter.remaining == 6 * ENTRY


def test_a_closed_factory_fails_what_waits() -> None:
    with world(limit=6 * ENTRY) as made:
        first, second = two_reads(made)
        made.factory.close()
        assert isinstance(second.exception(SECONDS), ClosedError)
        texts(first.result(SECONDS))
