"""Settings and metrics of a whole broker: one configuration makes it, one registry reads it."""

from __future__ import annotations

from pulsar_ml import EntryCacheManager
from pulsar_ml.config import CacheConfig, read_mapping
from pulsar_ml.managed_ledger import LedgerSettings, ManagedLedgerFactory, MemoryStorage
from pulsar_ml.metrics import Registry
from tests.managed_ledger.kit import SECONDS, texts


def made_of(config: CacheConfig) -> tuple[EntryCacheManager, ManagedLedgerFactory]:
    manager = EntryCacheManager(**config.manager_keywords())
    settings = LedgerSettings(**config.ledger_keywords())
    factory = ManagedLedgerFactory(MemoryStorage(), manager, settings=settings, **config.factory_keywords())
    return manager, factory


def test_settings_under_pulsars_names_reach_every_part() -> None:
    config = read_mapping(
        {
            "managedLedgerCacheSizeMB": "64",
            "managedLedgerMaxReadsInFlightSizeInMB": "2",
            "cacheEvictionByExpectedReadCount": "false",
            "cacheEvictionByMarkDeletedPosition": "true",
            "managedLedgerCursorBackloggedThreshold": "7",
        }
    ).config
    manager, factory = made_of(config)
    with manager, factory:
        assert manager.max_size == 64 << 20
        assert factory.limiter.max_bytes == 2 << 20
        assert factory.settings.cache_eviction_by_mark_deleted_position
        assert factory.settings.managed_ledger_cursor_backlogged_threshold == 7
        # Without expected reads there is no grace period.
        settings = factory.settings
        assert settings.continue_caching_added_entries_after_last_active_cursor_leaves_millis == 0


def test_metrics_of_a_broker_are_what_was_done() -> None:
    manager, factory = made_of(read_mapping({"managedLedgerMaxReadsInFlightSizeInMB": "1"}).config)
    registry = Registry()
    with manager, factory:
        ledger = factory.open("topic")
        registry.add_manager(manager)
        registry.add_ledgers(lambda: len(factory.ledgers))
        registry.add_inflight_reads(lambda: (factory.limiter.max_bytes, factory.limiter.remaining))
        registry.add_pending_reads(ledger.cache.pending.counts)
        cursor = ledger.open_cursor("a", earliest=True)
        written = [str(number) for number in range(10)]
        for data in written:
            ledger.add_entry(data.encode())
        manager.evict_bytes(5)  # the first five entries, of one byte each
        entries = cursor.read_entries(10).result(SECONDS)
        found = registry.read()
        assert found["ledgers"] == 1
        assert (found["hits"], found["pending_missed"], found["pending_entries_read"]) == (5, 5, 5)
        assert (found["inserted_entries"], found["evictions"]) == (15, manager.stats().evictions)
        assert found["inflight_used"] == found["inflight_limit"] - found["inflight_free"] > 0
        assert texts(entries) == written
        assert registry.read()["inflight_used"] == 0
